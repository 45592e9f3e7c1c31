"""Numbers as people read them: GiB, token counts, durations. Unknown is `-`, and what is shown adds up.

Pages get text from here, so that no template computes and two places never round the same figure differently.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

GIB = 1 << 30
UNKNOWN = "-"

_UNITS = ((GIB, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))
_AGES = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def gib(size_bytes: float | None, places: int = 2) -> str:
    """Bytes as GiB without the unit (`31.72`); None reads `-`. Halves round away from zero."""
    if size_bytes is None:
        return UNKNOWN
    return hundredths_text(_steps(size_bytes, places), places)


def gib_or_dash(size_bytes: float | None, places: int = 2) -> str:
    """As `gib`, but nothing at all also reads `-`: an empty cell of a table, not a measured zero."""
    return gib(size_bytes, places) if size_bytes else UNKNOWN


def size(size_bytes: float | None) -> str:
    """Bytes with the unit that keeps three figures: `15.41 GiB`, `312 MiB`, `40 KiB`, `17 bytes`."""
    if size_bytes is None:
        return UNKNOWN
    for unit_bytes, name in _UNITS:
        if size_bytes >= unit_bytes:
            places = 2 if unit_bytes == GIB else 0
            return f"{size_bytes / unit_bytes:,.{places}f} {name}"
    return f"{int(size_bytes)} bytes"


def share(parts_bytes: Sequence[float], places: int = 2, total_steps: int | None = None) -> list[int]:
    """Parts in steps of 10^-places GiB whose sum is the rounded sum: the largest remainders get the missing steps."""
    scale = 10**places / GIB
    exact = [part * scale for part in parts_bytes]
    steps = [int(value) for value in exact]
    wanted = _steps(sum(parts_bytes), places) if total_steps is None else total_steps
    missing = wanted - sum(steps)
    order = sorted(range(len(exact)), key=lambda index: (steps[index] - exact[index], index))
    if missing < 0:
        order.reverse()
    for index in order[: abs(missing)]:
        steps[index] += 1 if missing > 0 else -1
    return steps


def hundredths_text(steps: int, places: int = 2) -> str:
    """Steps of 10^-places GiB as text, with thousands separated."""
    return f"{steps / 10**places:,.{places}f}"


def count(number: int | None) -> str:
    """A whole number with separated thousands."""
    return UNKNOWN if number is None else f"{number:,}"


def duration(seconds: float | None) -> str:
    """`0:41`, `12:03` or `1:02:03`."""
    if seconds is None or seconds < 0:
        return UNKNOWN
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def age(seconds: float) -> str:
    """A span in its largest unit: `4 s`, `12 min`, `2 h`, `3 d`."""
    whole = max(0, int(seconds))
    for span, name in _AGES:
        if whole >= span:
            return f"{whole // span} {name}"
    return "0 s"


def ago(moment: datetime | None, now: datetime) -> str:
    """`4 s ago`; a moment that never came reads `never`."""
    return "never" if moment is None else f"{age((now - moment).total_seconds())} ago"


def counted(number: int, noun: str, plural: str = "") -> str:
    """`1 model`, `1,280 files`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def _steps(size_bytes: float, places: int) -> int:
    value = size_bytes * 10**places / GIB
    return int(value + 0.5) if value >= 0 else -int(0.5 - value)
