"""How often something was refused, per address: counted in memory, written down once a minute at most."""

from __future__ import annotations

import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock

from django.core.cache import cache

_MOST_KEYS = 10_000
_SECONDS = 60
_MOST_SECONDS = 3600


@dataclass(slots=True)
class _Entry:
    number: int = 0
    due: float = 0.0
    pause: float = _SECONDS


class Tally:
    """Safe between threads; the processes agree through the shared cache who writes.

    What goes on is written down less and less often, once an hour in the end: a monitor at a wrong address would fill
    the audit log otherwise.
    """

    def __init__(self, name: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._name, self._clock = name, clock
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        self._lock = Lock()

    def count(self, key: str) -> int:
        """Count one. How many there were since the last note where it is time for one, else 0."""
        now = self._clock()
        with self._lock:
            entry = self._entries.setdefault(key, _Entry())
            self._entries.move_to_end(key)
            if len(self._entries) > _MOST_KEYS:
                self._entries.popitem(last=False)
            entry.number += 1
            if now < entry.due:
                return 0
            went_on = entry.due > 0 and now < entry.due + 2 * entry.pause
            entry.pause = min(2 * entry.pause, _MOST_SECONDS) if went_on else _SECONDS
            entry.due = now + entry.pause
        if not cache.add(f"tally:{self._name}:{_digest(key)}", 1, _SECONDS):  # another process did
            return 0
        with self._lock:
            number, entry.number = entry.number, 0
        return number

    def pending(self) -> dict[str, int]:
        """What this process counted and did not write down yet."""
        with self._lock:
            return {key: entry.number for key, entry in self._entries.items() if entry.number}

    def clear(self) -> None:
        with self._lock:
            self._entries.clear()


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()
