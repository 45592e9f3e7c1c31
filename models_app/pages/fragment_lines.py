"""Raw fragments as a review lists them: where, which keys, by whom. Values stand in the text itself."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from gpus_app.models import Host
from models_app.core.export.fragments import form_of
from models_app.selectors.entry_sight import EntrySight
from models_app.services.fragments import fragment_rows

MOST_KEYS = 8


@dataclass(frozen=True, slots=True)
class FragmentLine:
    where: str
    keys: str
    author: str
    at: datetime


def fragment_lines(host: Host, dialect: str, sight: EntrySight) -> tuple[FragmentLine, ...]:
    """What is merged into a text of a dialect, as far as a person sees it, the top of the file first."""
    return tuple(
        FragmentLine(str(row), _some(list(row.fields)), str(row.changed_by or "somebody"), row.changed_at)
        for row in fragment_rows(host, form_of(dialect))
        if sight.whole or (row.served_id and sight.sees(row.served_id))
    )


def _some(keys: list[str]) -> str:
    more = f" and {len(keys) - MOST_KEYS} more" if len(keys) > MOST_KEYS else ""
    return ", ".join(keys[:MOST_KEYS]) + more
