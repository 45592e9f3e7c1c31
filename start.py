"""Starts a module for `./quartermaster`: `start.py MODULE ARGUMENTS…`. A Ctrl-C ends it with code 130 and no traceback.

Python answers a Ctrl-C during its own start with a traceback, before any code of ours runs. So the shell script has
the signal ignored for these first hundredths of a second, and it counts from here on.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
from types import FrameType

INTERRUPTED = 130  # 128 + SIGINT, as shells count


def main(module: str) -> int:
    """Run the module as `python -m` would; its exit code is ours."""
    interrupts: list[int] = []

    def interrupt(number: int, frame: FrameType | None) -> None:
        interrupts.append(number)
        raise KeyboardInterrupt

    def unraisable(problem: sys.UnraisableHookArgs) -> None:
        # Python swallows an interrupt that comes during one of its own callbacks, and would go on.
        if interrupts:
            os._exit(INTERRUPTED)
        sys.__unraisablehook__(problem)

    sys.unraisablehook = unraisable
    signal.signal(signal.SIGINT, interrupt)
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit:
        raise
    except BaseException:
        # An import that was interrupted may raise anything.
        if not interrupts:
            raise
        return INTERRUPTED
    finally:
        if signal.getsignal(signal.SIGINT) is interrupt:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
    return 0


if __name__ == "__main__":
    del sys.argv[0]
    raise SystemExit(main(sys.argv[0]))
