"""Flags of planned commands that the registered executable does not know: it would not start."""

from __future__ import annotations

from collections.abc import Iterable

from models_app.core.catalog import Finding, Plan
from models_app.core.launch.llama_flags import LLAMA
from models_app.core.launch.validate import BACKEND_MISSING, UNKNOWN, validate_tokens
from models_app.services.planning import HostPlanner

UNKNOWN_FLAG = "flag-unknown"
LLAMA_ENGINES = ("", "llama")
"""Engines of plans that the table of llama-server's flags is for."""


def command_findings(planner: HostPlanner) -> Iterable[Finding]:
    """One finding for each model whose command its executable would refuse, as far as its help is known."""
    for path, flags in planner.flags.items():
        words = {word for plan in planner.planned[path] for word in _refused(plan, flags)}
        if words:
            text = f"the help of its executable does not name {', '.join(sorted(words))}: it will not start"
            yield Finding(UNKNOWN_FLAG, path, text, "warning")


def _refused(plan: Plan, flags: frozenset[str]) -> list[str]:
    if plan.engine not in LLAMA_ENGINES:
        return [word for word in plan.argv[1:] if word.startswith("--") and word not in flags]
    issues = validate_tokens(LLAMA, plan.argv[1:], tuple(flags))
    return [issue.token for issue in issues if issue.kind in (BACKEND_MISSING, UNKNOWN)]
