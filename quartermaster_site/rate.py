"""A limit on how often one person may ask for something costly, kept in this process's memory."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock

_MOST_KEYS = 10_000


@dataclass(slots=True)
class _Bucket:
    tokens: float
    at: float


class RateLimit:
    """A token bucket per key: `per_second` on average, `burst` at once. Safe between threads."""

    def __init__(self, per_second: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_second, self._burst, self._clock = per_second, burst, clock
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()
        self._lock = Lock()

    def wait_seconds(self, key: str) -> float:
        """0 when the call may go on, and it counts then; otherwise how long to wait, and it does not count."""
        now = self._clock()
        with self._lock:
            bucket = self._buckets.setdefault(key, _Bucket(float(self._burst), now))
            self._buckets.move_to_end(key)
            while len(self._buckets) > _MOST_KEYS:
                self._buckets.popitem(last=False)
            bucket.tokens = min(self._burst, bucket.tokens + (now - bucket.at) * self._per_second)
            bucket.at = now
            if bucket.tokens >= 1:
                bucket.tokens -= 1
                return 0.0
            return (1 - bucket.tokens) / self._per_second
