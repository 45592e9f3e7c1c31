"""The wish to stop, as a signal handler may note it down."""

from __future__ import annotations

import time

_LOOK_SECONDS = 0.1


class StopRequest:
    """A flag that a signal handler sets and the main loop waits for.

    Not `threading.Event`: its `set()` takes the lock that `wait()` holds for a moment, so a signal that comes
    just then, in the same thread, waits for itself for ever.
    """

    def __init__(self) -> None:
        self._asked = False

    def is_set(self) -> bool:
        return self._asked

    def set(self) -> None:
        self._asked = True

    def clear(self) -> None:
        self._asked = False

    def wait(self, seconds: float) -> bool:
        """Sleep, at most until a tenth of a second after the wish; whether it was uttered."""
        end = time.monotonic() + seconds
        while not self._asked and (left := end - time.monotonic()) > 0:
            time.sleep(min(left, _LOOK_SECONDS))
        return self._asked
