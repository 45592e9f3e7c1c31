"""Remarks about a launch text, and the question before a doubtful one is stored, whichever form it comes from."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from gpus_app.models import Host
from models_app.core.launch.findings import TextFinding, text_findings
from models_app.core.launch.locks import table_of
from models_app.core.state.overrides import is_none
from models_app.services.arguments import rules_of
from quartermaster_site.access.audit import Actor, record


def remarks_on(
    host: Host,
    text: str,
    engine: str,
    *,
    flags: Collection[str] | None,
    is_moe: bool | None = None,
    has_tiers: bool = False,
) -> tuple[TextFinding, ...]:
    """Remarks about a text for a kind of backend, the worst first. `flags` is None where its help was not read."""
    table = table_of(engine)
    if table is None or is_none(text):
        return ()
    return text_findings(
        table,
        text,
        is_moe=is_moe,
        has_tiers=has_tiers,
        help_spellings=None if flags is None else tuple(sorted(flags)),
        rules=rules_of(host),
    )


def unconfirmed(findings: Iterable[TextFinding], confirmed: str) -> str:
    """The arguments that a save asks about before it stores them, with blanks between; "" where it need not.

    `confirmed` are those that the person was asked about already.
    """
    doubtful = {word for finding in findings if finding.confirm for word in finding.argument.split()}
    return "" if doubtful <= set(confirmed.split()) else " ".join(sorted(doubtful))


def note_confirmed(*, host: Host, subject: Any, label: str, confirmed: str, actor: Actor) -> None:
    """One line of audit: somebody had these arguments stored after being asked."""
    reason = f"stored after a question: {confirmed}"
    record(actor, "arguments.confirm", subject=subject, label=label, host_slug=host.slug, reason=reason)
