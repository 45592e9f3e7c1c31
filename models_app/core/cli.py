"""The headless verbs. This is the one module of the core that reads arguments, environment and clock.

Each verb lives in `models_app/core/verbs/<name>.py` and is imported only when it is asked for, so that a wrong
argument is answered in a fraction of a second. Exit codes: 0 done, 1 a file failed, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from gpus_app.core.errors import QuartermasterError, UsageError
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
    return Path(configured).expanduser() if configured else Path.home() / ".local/share/quartermaster"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb; every expected failure becomes a sentence on standard error."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if not words or words[0] not in VERBS:
        return _usage(words)
    module = importlib.import_module(f"models_app.core.verbs.{words[0]}")
    parser = argparse.ArgumentParser(prog=f"quartermaster {words[0]}", description=VERBS[words[0]])
    module.add_arguments(parser)
    environment = Environment(
        data_dir=data_folder(os.environ),
        now=datetime.now(UTC),
        stdout=sys.stdout,
        stderr=sys.stderr,
        progress=sys.stderr.isatty(),
        platform="windows" if os.name == "nt" else "darwin" if sys.platform == "darwin" else "linux",
    )
    try:
        options = parser.parse_args(words[1:])
        return int(module.run(options, environment))
    except UsageError as error:
        print(f"quartermaster {words[0]}: {error}", file=sys.stderr)
        return 2
    except QuartermasterError as error:
        print(f"quartermaster {words[0]}: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        return 130


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
