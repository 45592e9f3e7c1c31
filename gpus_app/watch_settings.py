"""The watching section of a host's settings: how often its worker looks at the folders."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from quartermaster_site.errors import Refused

SECTION = "watching"
KEY = "pollSec"
DEFAULT_SECONDS = 30
LEAST_SECONDS = 10
"""As long as a file must have been quiet to be taken as whole."""
MOST_SECONDS = 24 * 3600


@dataclass(frozen=True, slots=True)
class WatchSettings:
    """The section as a page shows it."""

    seconds: int
    """0: the folders are not watched."""
    is_set: bool
    version: int
    changed_by: str
    changed_at: datetime | None


def seconds_of(values: Mapping[str, Any]) -> int:
    return int(values.get(KEY, DEFAULT_SECONDS))


def cleaned(seconds: int | None) -> dict[str, Any]:
    """What is stored: nothing for the default. Raises Refused."""
    if seconds is None or seconds == DEFAULT_SECONDS:
        return {}
    if seconds and not LEAST_SECONDS <= seconds <= MOST_SECONDS:
        text = f"Between {LEAST_SECONDS} and {MOST_SECONDS:,} seconds, or 0 to watch no folder."
        raise Refused(text, fields={KEY: text})
    return {KEY: seconds}
