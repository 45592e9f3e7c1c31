"""What a save refuses of a launch text, whichever form it comes from."""

from __future__ import annotations

from gpus_app.models import Host
from models_app.core.launch.findings import text_problem
from models_app.core.launch.llama_flags import LLAMA
from models_app.core.launch.locks import table_of
from models_app.core.launch.tokens import rules_for
from quartermaster_site.errors import Refused


def rules_of(host: Host) -> str:
    """How launch texts are split on a host."""
    return rules_for(host.os_family)


def check_arguments(host: Host, text: str, engine: str = "llama") -> None:
    """Raises Refused for a text with which no config of the host could be written."""
    problem = text_problem(table_of(engine) or LLAMA, text, rules_of(host))
    if problem:
        raise Refused(problem, fields={"customArgs": problem})
