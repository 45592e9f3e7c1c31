"""`quartermaster-spawn [options] -- <argv>`: looks at a launch once more with what is free now, then becomes it.

A router runs it in front of a model's server. It reads devices and header, has `core.spawn_guard` decide, says so in
one line on standard error and replaces itself by the program, whose process id, signals and exit code are then its
own. Whatever goes wrong here, the program starts as planned: a guard that fails must cost nobody a model.

No Django, no broker, no database; what is needed is imported when it is needed.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from models_app.core.catalog import Header
    from models_app.core.readers.cache import HeaderCache
    from models_app.core.spawn_guard.facts import Decision, Facts, WantedFiles
    from models_app.core.spawn_guard.options import Guarded, GuardOptions

NAME = "quartermaster-spawn"
LONGEST_SECONDS = 2.0
REFUSED_CODE, USAGE_CODE, NOT_RUN_CODE, NOT_FOUND_CODE = 75, 2, 126, 127
"""75 is EX_TEMPFAIL: another time there may be room. The last two are those of a shell."""
MOST_CHARACTERS = 500


def main(arguments: Sequence[str] | None = None) -> int:
    """Becomes the program; returns only where there is nothing to start, or nothing may start."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    _ends_like_the_program()
    guarded = _read(words)
    if guarded is None or not guarded.argv:
        _say(f"{guarded.problem if guarded else 'the command cannot be read'}; usage: {NAME} [options] -- COMMAND")
        return USAGE_CODE
    decision = _decided_in_time(guarded)
    if isinstance(decision, str):
        _say(f"unchanged: {decision}")
        return _become(guarded.argv)
    _say(decision.text)
    return REFUSED_CODE if decision.outcome == "refused" else _become(decision.argv)


def _ends_like_the_program() -> None:
    """Python answers Ctrl-C with a traceback; until it is the program, the guard ends of it as any program does."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def _read(words: Sequence[str]) -> Guarded | None:
    from models_app.core.spawn_guard.options import read_guarded

    return read_guarded(words)


def _decided_in_time(guarded: Guarded) -> Decision | str:
    """The decision, or why there is none. A driver may hang: the thread that waits for it is left behind."""
    if guarded.problem:
        return guarded.problem
    answers: list[Decision | str] = []

    def decide() -> None:
        try:
            answers.append(_decision(guarded.argv, guarded.options))
        except BaseException as error:  # whatever it is, it must not keep the program from starting
            answers.append(f"{type(error).__name__}: {error}")

    thread = threading.Thread(target=decide, daemon=True)
    thread.start()
    thread.join(LONGEST_SECONDS)
    return answers[0] if answers else f"no decision within {LONGEST_SECONDS:g} s"


def _decision(argv: Sequence[str], options: GuardOptions) -> Decision:
    from models_app.core.spawn_guard.decision import decide, wanted_files

    return decide(argv, options, _facts(wanted_files(argv), options))


def _facts(wanted: WantedFiles, options: GuardOptions) -> Facts:
    from gpus_app.core.probes.machine import read_devices
    from models_app.core.spawn_guard.facts import Facts

    sizes = {path: size for path in (wanted.projector, wanted.drafter) if path and (size := _size(path)) is not None}
    cache = _cache(options.header_cache)
    try:
        header = _header(wanted.model, cache)
        projector = _header(wanted.projector, cache)
    finally:
        if cache is not None:
            cache.close()
    devices, failed = read_devices()
    return Facts(devices, os.environ, header, projector, sizes, failed)


def _size(path: str) -> int | None:
    try:
        return os.stat(path).st_size
    except (OSError, ValueError):
        return None


def _cache(path: str) -> HeaderCache | None:
    """The cache of the host, where it is there: none is made in a folder that may belong to somebody else."""
    from models_app.core.readers.cache import HeaderCache

    return HeaderCache(Path(path), in_memory=0) if path and os.path.isfile(path) else None


def _header(path: str, cache: HeaderCache | None) -> Header | None:
    """None for a file that cannot be read. The parsers are loaded only where the cache does not know the file."""
    from models_app.core.errors import HeaderError
    from models_app.core.readers.shard_names import shard_siblings

    def parsed() -> Header:
        from models_app.core.readers import read_header

        return read_header(path)

    if not path:
        return None
    try:
        return cache.read(shard_siblings(path) or (path,), parsed) if cache is not None else parsed()
    except HeaderError:
        return None


def _say(text: str) -> None:
    """One line on standard error, if anybody listens."""
    line = "".join(character if character.isprintable() else "?" for character in text)[:MOST_CHARACTERS]
    data = f"{NAME}: {line}\n".encode("utf-8", "replace")
    try:
        os.write(2, data)
    except OSError:
        return


def _become(argv: Sequence[str]) -> int:
    """Replaces this process. Python ignores SIGPIPE, and what is ignored would stay so in the program."""
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    try:
        os.execvp(argv[0], list(argv))  # noqa: S606 - an argument list, and no shell
    except FileNotFoundError as error:
        _say(f"{argv[0]} cannot be started: {error.strerror}")
        return NOT_FOUND_CODE
    except (OSError, ValueError) as error:
        _say(f"{argv[0]} cannot be started: {error}")
        return NOT_RUN_CODE


if __name__ == "__main__":
    raise SystemExit(main())
