"""The wish to stop: noted by a signal handler at any moment of the main loop, without a lock."""

import subprocess
import sys
import time
from pathlib import Path

from quartermaster_site.stop_request import StopRequest

ROOT = Path(__file__).resolve().parent.parent.parent

_INTERRUPTED = """
import signal
from quartermaster_site.stop_request import StopRequest
asked = StopRequest()
signal.signal(signal.SIGALRM, lambda *_: asked.set())
for round in range(1000):
    asked.clear()
    signal.setitimer(signal.ITIMER_REAL, (1 + round % 50) * 1e-6)
    asked.wait(0.001)
"""


def test_a_signal_at_any_moment_of_a_look_blocks_nothing():
    """With `threading.Event` this stands still: the handler asks for the lock that the interrupted `wait()` holds."""
    subprocess.run([sys.executable, "-c", _INTERRUPTED], cwd=ROOT, timeout=30, check=True)


def test_a_wait_ends_with_its_time_or_the_wish():
    asked = StopRequest()
    started = time.monotonic()
    assert not asked.wait(0.15)
    assert 0.15 <= time.monotonic() - started < 2
    asked.set()
    assert asked.is_set()
    assert asked.wait(60)
    asked.clear()
    assert not asked.is_set()
    assert not asked.wait(0)
