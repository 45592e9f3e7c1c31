"""A revision as its page shows it: numbered lines, findings with links to them, what was left out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from django.urls import reverse

from gpus_app.models import Dialect, Host
from models_app.core.export.dialects import DIALECTS
from models_app.core.export.findings import CheckFinding
from models_app.models import Revision
from models_app.selectors.entry_sight import EntrySight
from models_app.selectors.sight import IN_PARTS
from quartermaster_site.access.redaction import redact
from quartermaster_site.figures import counted, size

MOST_LINES = 4000
SEVERITIES = {
    "block": ("bad", "bad", "blocks"),
    "slug": ("bad", "bad", "blocks"),
    "confirm": ("warn", "warn", "to confirm"),
    "warn": ("warn", "warn", "warning"),
    "note": ("", "info", "note"),
}
"""Severity of a finding -> tone, icon, word."""
_TONES = ("bad", "warn", "")
"""The worst first."""

FILE_NAMES = {dialect.slug: dialect.file_name for dialect in DIALECTS}


@dataclass(frozen=True, slots=True)
class Line:
    """What looks like a secret is masked: raw keys and launch texts may hold one in clear."""

    number: int
    text: str
    css: str


@dataclass(frozen=True, slots=True)
class FindingLine:
    rule: str
    tone: str
    shape: str
    message: str
    where: str
    line: int | None
    url: str = ""
    """Of the model that it is about, where that is known."""


@dataclass(frozen=True, slots=True)
class Skipped:
    file: str
    reason: str


@dataclass(frozen=True, slots=True)
class ConfigView:
    """One revision, ready to print. `cut` says that more lines exist than are shown.

    `withheld` stands in place of a text that names hidden models, else it is empty. Then `names` are the entries seen.
    """

    tone: str
    headline: str
    details: str
    lines: tuple[Line, ...]
    line_count: int
    cut: bool
    size: str
    entries: int
    findings: tuple[FindingLine, ...]
    skipped: tuple[Skipped, ...]
    file_name: str
    written: bool
    write_held: str
    withheld: str = ""
    names: tuple[str, ...] = ()


def config_view(
    host: Host,
    revision: Revision | None,
    sight: EntrySight,
    found: Sequence[CheckFinding] = (),
    link_of: Callable[[str], str] = lambda name: "",
) -> ConfigView:
    """What a person sees of a revision. `found`: what the host says against writing it now, beside its own findings;
    `link_of` gives the address of a model, by its id.
    """
    if revision is None:
        return ConfigView("", "Nothing to write yet", "", (), 0, False, "", 0, (), (), "config.yaml", False, "")
    entries = [item for item in revision.summary.get("entries", []) if sight.sees(*_names(item))]
    stored = [item for item in revision.findings if isinstance(item, dict)]
    lines_of = (_finding(item, link_of) for item in (*(asdict(item) for item in found), *stored))
    told = (line for line in lines_of if not sight.names_hidden(f"{line.where} {line.message}"))
    findings = tuple(sorted(told, key=lambda line: _TONES.index(line.tone)))
    tone, headline = _verdict(revision, findings)
    marked = {item.line: item.tone or "note" for item in findings if item.line}
    lines = revision.text.splitlines() if sight.whole else []
    skipped = [item for item in _skipped(revision) if not sight.names_hidden(f"{item.file} {item.reason}")]
    return ConfigView(
        tone=tone,
        headline=headline,
        details=f"{counted(len(entries), 'entry', 'entries')}, {len(skipped):,} left out",
        lines=tuple(
            Line(number, str(redact(text)), _line_css(marked.get(number)))
            for number, text in enumerate(lines[:MOST_LINES], 1)
        ),
        line_count=len(lines),
        cut=len(lines) > MOST_LINES,
        size=size(len(revision.text.encode())) if sight.whole else "",
        entries=len(entries),
        findings=findings,
        skipped=tuple(skipped),
        file_name=FILE_NAMES.get(revision.dialect, "config.yaml"),
        written=revision.sha256 == host.written_sha256,
        write_held="Findings block it." if revision.state == Revision.State.BLOCKED else "",
        withheld="" if sight.whole else IN_PARTS,
        names=() if sight.whole else tuple(_names(item)[0] for item in entries),
    )


def _names(entry: Mapping[str, Any]) -> tuple[str, str]:
    """Id and model file of an entry, as the generator reported it."""
    return str(entry.get("id", "")), str(entry.get("file", ""))


def _skipped(revision: Revision) -> list[Skipped]:
    return [Skipped(str(item.get("file", "")), _reason(item)) for item in revision.summary.get("skipped", [])]


def _reason(item: Mapping[str, Any]) -> str:
    kind = str(item.get("class", ""))
    return f"{kind}: {item.get('reason', '')}" if kind else str(item.get("reason", ""))


def _finding(item: Mapping[str, Any], link_of: Callable[[str], str]) -> FindingLine:
    tone, shape, _ = SEVERITIES.get(str(item.get("severity")), SEVERITIES["warn"])
    line, where = item.get("line"), str(item.get("where", "") or "")
    return FindingLine(
        rule=str(item.get("rule", "")),
        tone=tone,
        shape=shape,
        message=str(item.get("message", "")),
        where=where,
        line=line if isinstance(line, int) and 0 < line <= MOST_LINES else None,
        url=link_of(where.removeprefix("models.")) if where.startswith("models.") else "",
    )


def _verdict(revision: Revision, findings: tuple[FindingLine, ...]) -> tuple[str, str]:
    blocking = sum(item.tone == "bad" for item in findings)
    warnings = sum(item.tone == "warn" for item in findings)
    if not blocking and revision.state == Revision.State.BLOCKED:
        return "bad", "Not to be written: findings block it"
    if blocking or revision.state == Revision.State.BLOCKED:
        return "bad", f"Not to be written: {counted(blocking, 'finding')} {'blocks' if blocking == 1 else 'block'} it"
    if warnings:
        return "warn", f"Valid, with {counted(warnings, 'warning')}"
    return "ok", f"Valid for {revision.get_dialect_display()}"


def _line_css(tone: str | None) -> str:
    return {"bad": "d", "warn": "w", "note": ""}.get(tone or "note", "")


def dialect_choices(host: Host) -> list[dict[str, object]]:
    return [
        {"slug": slug, "label": label, "on": slug == host.publish_dialect, "url": _target_url(host)}
        for slug, label in Dialect.choices
    ]


def _target_url(host: Host) -> str:
    return reverse("models:config-target", args=[host.slug])


def seen_words(seen: tuple[str, Revision | None] | None) -> str:
    """What lies on the host, as it was last looked at; "" where nobody looked."""
    if seen is None:
        return ""
    sha256, revision = seen
    if revision is not None:
        return f"the text of revision {revision.number}, whole"
    return "a text that Quartermaster did not write" if sha256 else "no file"
