"""The headless verbs. This is the one module of the core that reads arguments, environment and clock.

Each verb lives in `models_app/core/verbs/<name>.py` and is imported only when it is asked for, so that a wrong
argument is answered in a fraction of a second. Exit codes: 0 done, 1 a file failed, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import os
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from gpus_app.core.errors import QuartermasterError, UsageError
from models_app.core.spawn_guard.options import beside
from models_app.core.verbs.environment import Environment

VERBS = {
    "inspect": "header facts of model files",
    "project": "bytes of exactly this launch: no search, no budget",
    "plan": "the search: projection, placement, command, reasons",
    "generate": "a folder of models in, a router's config out",
    "check": "findings of validation that need nothing but the file",
}


def data_folder(environ: dict[str, str] | os._Environ[str]) -> Path:
    """Where this user's Quartermaster keeps its state (`QM_DATA_DIR`)."""
    configured = environ.get("QM_DATA_DIR", "").strip()
    try:
        return Path(configured).expanduser() if configured else Path.home() / ".local/share/quartermaster"
    except RuntimeError as error:
        raise UsageError("the home folder cannot be found; set QM_DATA_DIR to a folder") from error


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb; every expected failure becomes a sentence on standard error."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    _open_streams()
    if not words or words[0] not in VERBS:
        return _usage(words)
    try:
        code = _run(words)
        sys.stdout.flush()
        return code
    except UsageError as error:
        return _failed(words[0], str(error), 2)
    except QuartermasterError as error:
        return _failed(words[0], str(error), 1)
    except BrokenPipeError:
        _discard_output()
        return 1
    except OSError as error:
        _discard_output()
        place = f"{error.filename}: " if error.filename else "the answer cannot be written: "
        return _failed(words[0], f"{place}{error.strerror or error}", 1)
    except KeyboardInterrupt:
        _discard_output()
        return 130


def _run(words: Sequence[str]) -> int:
    module = importlib.import_module(f"models_app.core.verbs.{words[0]}")
    parser = argparse.ArgumentParser(prog=f"quartermaster {words[0]}", description=VERBS[words[0]])
    module.add_arguments(parser)
    environment = Environment(
        data_dir=data_folder(os.environ),
        now=datetime.now(UTC),
        stdout=sys.stdout,
        stderr=sys.stderr,
        progress=sys.stderr.isatty(),
        variables=dict(os.environ),
        platform="windows" if os.name == "nt" else "darwin" if sys.platform == "darwin" else "linux",
        guard_program=guard if os.access(guard := beside(sys.executable), os.X_OK) else "",
    )
    return int(module.run(parser.parse_args(words[1:]), environment))


def _failed(verb: str, sentence: str, code: int) -> int:
    with contextlib.suppress(OSError):
        note = "\r\x1b[K" if sys.stderr.isatty() else ""  # takes back the progress that was shown
        print(f"{note}quartermaster {verb}: {sentence}", file=sys.stderr)
    return code


def _open_streams() -> None:
    """A stream that the caller closed swallows what is written; left closed, the next file opened would be it.

    What a terminal's encoding cannot show is escaped.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - for the rest of the process
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _discard_output() -> None:
    """Nothing more is written at exit to a standard output that takes nothing."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _usage(words: list[str]) -> int:
    wanted = bool(words) and words[0] in ("-h", "--help")
    out = sys.stdout if wanted else sys.stderr
    if words and not wanted:
        print(f"quartermaster: unknown verb {words[0]!r}", file=out)
    print("usage: quartermaster VERB [options]", file=out)
    for name, summary in VERBS.items():
        print(f"  {name:<10} {summary}", file=out)
    return 0 if wanted else 2


if __name__ == "__main__":
    raise SystemExit(main())
