"""Flags of planned commands that the registered executable does not know, or that a person has to confirm."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from models_app.core.catalog import Finding, Plan
from models_app.core.launch.compose import CUSTOM
from models_app.core.launch.findings import doubtful_flags
from models_app.core.launch.llama_flags import LLAMA
from models_app.core.launch.locks import table_of
from models_app.core.launch.validate import BACKEND_MISSING, UNKNOWN, validate_tokens
from models_app.services.backend_facts import BackendFacts

UNKNOWN_FLAG = "flag-unknown"
LLAMA_ENGINES = ("", "llama")
"""Engines of plans that the table of llama-server's flags is for."""
ASKED_KINDS = ("llama", "tts", "sd", "ttscpp", "asr", "audiocpp", "sam", "trellis2")
"""Kinds of backends that refuse to start with a flag that their help does not name. The help of vllm names few."""


def refused_words(plans: Sequence[Plan], backend: BackendFacts) -> Sequence[str]:
    """What the executable of a model would refuse in its commands, as far as its help is known."""
    if backend.kind not in ASKED_KINDS or backend.flags is None:
        return ()
    return sorted({word for plan in plans for word in _refused(plan, backend.flags)})


def doubtful_of(plan: Plan, backend: BackendFacts) -> Sequence[str]:
    """Flags that a person put into this command and has to confirm (V-08), as typed."""
    table = table_of("llama" if plan.engine in LLAMA_ENGINES else plan.engine)
    words = [token.text for token in plan.tokens if token.source == CUSTOM]
    if table is None or not words:
        return ()
    flags = None if backend.flags is None else tuple(backend.flags)
    return doubtful_flags(table, words, flags)


def command_findings(refused: Mapping[str, Sequence[str]]) -> Iterable[Finding]:
    """One finding for each model (by path) whose command its executable would refuse."""
    for path, words in refused.items():
        text = f"the help of its executable does not name {', '.join(words)}: it will not start"
        yield Finding(UNKNOWN_FLAG, path, text, "warning")


def _refused(plan: Plan, flags: frozenset[str]) -> list[str]:
    if plan.engine not in LLAMA_ENGINES:
        return [word for word in plan.argv[1:] if word.startswith("--") and word not in flags]
    issues = validate_tokens(LLAMA, plan.argv[1:], tuple(flags))
    return [issue.token for issue in issues if issue.kind in (BACKEND_MISSING, UNKNOWN)]
