"""What a decision is made from, and what it says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gpus_app.core.readings import DeviceReading
from models_app.core.catalog import Header

UNCHANGED, CHANGED, REFUSED = "unchanged", "changed", "refused"


class LeaveAlone(Exception):
    """Why nothing is changed, as the rest of a sentence: the command starts as it is ("fails open")."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What was read for one start. `sizes` are bytes of files by path, only of those that are there."""

    readings: Sequence[DeviceReading] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    header: Header | None = None
    projector: Header | None = None
    sizes: Mapping[str, int] = field(default_factory=dict)
    failed: Sequence[str] = ()
    """Vendors of which not every device could be read."""


@dataclass(frozen=True, slots=True)
class Decision:
    """`argv` is what to start; of a refused launch the command as it was. `text` says what was done and why."""

    outcome: str
    argv: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True)
class WantedFiles:
    """Whose header, and whose sizes, a decision about this command needs; blank for none."""

    model: str = ""
    projector: str = ""
    drafter: str = ""
