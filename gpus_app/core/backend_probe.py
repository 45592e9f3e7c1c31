"""When a backend's device listing is asked for (sizing.md 15.1): bounded in time, and once per build of an executable.

Running the program and reading the clock are handed in, so that this stays a pure rule.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

PROBE_SECONDS = 15.0
ALL_PROBES_SECONDS = 20.0

ExecutableKey = tuple[str, int, int]
"""Path, size in bytes and mtime in nanoseconds."""

RunListing = Callable[[str, float], str | None]
"""Runs `<executable> --list-devices` within so many seconds; None when it failed and printed nothing."""


@dataclass(slots=True)
class ProbeAllowance:
    """Seconds that all probes of one process may take together."""

    left_seconds: float = ALL_PROBES_SECONDS

    def grant(self) -> float:
        """Seconds the next probe may take; 0 refuses it."""
        return max(0.0, min(PROBE_SECONDS, self.left_seconds))

    def spend(self, seconds: float) -> None:
        self.left_seconds = max(0.0, self.left_seconds - seconds)


@dataclass(slots=True)
class ListingCache:
    """Listings by executable, failures included: a build that hangs once must not hang every preview."""

    run: RunListing
    clock_seconds: Callable[[], float]
    allowance: ProbeAllowance = field(default_factory=ProbeAllowance)
    _known: dict[ExecutableKey, str | None] = field(default_factory=dict)

    def listing(self, executable: ExecutableKey) -> str | None:
        """The listing of this build, from memory where it was asked before; None where it can't be had."""
        if executable in self._known:
            return self._known[executable]
        seconds = self.allowance.grant()
        answer = None
        if seconds > 0:
            started = self.clock_seconds()
            answer = self.run(executable[0], seconds)
            self.allowance.spend(self.clock_seconds() - started)
        self._known[executable] = answer
        return answer
