"""Writing a router's file on this machine: atomically, with a backup, never over somebody else's. Imports no Django."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import shutil
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from gpus_app.core.errors import QuartermasterError
from gpus_app.core.router_files import SUFFIXES, is_router_file
from models_app.browsing import is_inside
from models_app.core.discovery.hostile_names import unsafe_reason
from models_app.core.errors import ExportError
from models_app.core.export.stamp import read_stamp
from models_app.core.export.target import replace_file, write_companion

MAX_BYTES = 16 << 20
KEEP_BACKUPS = 5
_UNFINISHED = ".tmp"
_CANNOT_RENAME = (errno.EBUSY, errno.EXDEV, errno.EPERM, errno.ETXTBSY)


_REPLACE = "Write again and say there that it may be replaced; its text is kept as a backup."


class TargetRefused(QuartermasterError):
    """The file was not written; nothing on disk has changed."""


class ForeignFile(TargetRefused):
    """There is a file that is not ours."""

    advice = _REPLACE


class Drift(TargetRefused):
    """The file was changed since we wrote it."""

    advice = _REPLACE


class FilesGone(TargetRefused):
    """Files that the text names are not there."""

    advice = (
        "Put them back, or scan again: the next text leaves out models that are gone. Entries that are kept by hand are"
        " changed under By hand, programs under Backends."
    )


def require_place(path: str, permitted: Iterable[str]) -> None:
    """Raises TargetRefused for what is no router's file in the permitted folders, links resolved.

    Whoever sets the target of a host could have any of its files read or replaced otherwise.
    """
    real = "" if unsafe_reason(path) else os.path.realpath(path)
    if not real or not is_router_file(real):
        raise TargetRefused(f"{path} is no name of a router's file: it must end in {', '.join(SUFFIXES)}.")
    if not is_inside(real, permitted):
        raise TargetRefused(f"{path} lies outside the folders in which this host has router files (QM_TARGET_ROOTS).")


def require_seen(paths: Iterable[str], permitted: Sequence[str]) -> None:
    """Raises TargetRefused for adapters, and folders of them, outside the permitted folders, links resolved.

    A setting of the host names them, and a server lists and opens what is there.
    """
    for path in paths:
        if permitted and (unsafe_reason(path) or not is_inside(os.path.realpath(path), permitted)):
            raise TargetRefused(f"{path} is for LoRA, and outside what this host lets people see (QM_BROWSE_ROOTS).")


def require_files(paths: Iterable[str]) -> None:
    """V-07, at the last moment: whatever the text starts must be there. Raises FilesGone."""
    gone = [path for path in paths if not _is_there(path)]
    if gone:
        more = f" and {len(gone) - 3} more" if len(gone) > 3 else ""
        raise FilesGone(f"Not there: {', '.join(gone[:3])}{more}.")


def _is_there(path: str) -> bool:
    """A program may come with words of its own behind it (`/usr/bin/python3 server.py`)."""
    return os.path.exists(path) or (" " in path and os.path.exists(path.split(" ")[0]))


@dataclass(frozen=True, slots=True)
class Written:
    path: str
    sha256: str
    backup: str
    in_place: bool
    """The file could not be renamed (a bind mount, for example) and was rewritten as it lies."""


def write_target(
    path: str,
    text: str,
    *,
    sha256: str,
    expected_sha256: str,
    adopt: bool,
    companions: Sequence[tuple[str, str]] = (),
    keep_backups: int = KEEP_BACKUPS,
) -> Written:
    """Put `text` at `path`.

    `sha256` is that of the text, `expected_sha256` that of the bytes we wrote last ("" for never). An existing file is
    replaced only when it is as we left it, or a person said so (`adopt`). `companions` are files that the text needs,
    by their path from its folder: each is replaced whole before the text is.
    """
    data = text.encode()
    if hashlib.sha256(data).hexdigest() != sha256:
        raise TargetRefused("The text does not match its hash: it was damaged on the way.")
    if len(data) > MAX_BYTES:
        raise TargetRefused(f"The text has {len(data):,} bytes; at most {MAX_BYTES:,} are written.")
    if not os.path.isabs(path):
        raise TargetRefused(f"{path} is not an absolute path.")
    target = Path(os.path.realpath(path))
    _check_folder(target.parent)
    current = _current(target)
    if current is None:
        if expected_sha256 and not adopt:
            raise Drift(f"{target} was removed since it was written.")
    elif current != data:
        _check_ours(target, current, expected_sha256, adopt)
    _write_companions(target.parent, companions)
    if current == data:  # a write that was cut off behind the rename, or nothing to do
        return Written(str(target), sha256, "", in_place=False)
    _sweep(target)
    backup = _back_up(target, keep_backups) if current is not None else ""
    in_place = _replace(target, data, current)
    return Written(str(target), sha256, backup, in_place)


def _write_companions(folder: Path, companions: Iterable[tuple[str, str]]) -> None:
    for name, text in companions:
        parts = PurePosixPath(name).parts
        if not parts or ".." in parts or PurePosixPath(name).is_absolute() or "\\" in name or ":" in name:
            raise TargetRefused(f"{name!r} is no name of a file beside the config.")
        try:
            write_companion(str(folder.joinpath(*parts)), text)
        except ExportError as error:
            raise TargetRefused(f"{error}.") from error


@dataclass(frozen=True, slots=True)
class Seen:
    """What lies at a path. `sha256` is "" for nothing; `problem` says why it cannot be read."""

    sha256: str = ""
    size_bytes: int = 0
    problem: str = ""
    modified_seconds: float = 0.0
    data: bytes = field(default=b"", repr=False)

    @property
    def text(self) -> str:
        return self.data.decode("utf-8", "replace")


def look(path: str) -> Seen:
    """Whose bytes these are can be told by their hash."""
    target = Path(os.path.realpath(path))
    try:
        data = _current(target)
        modified = target.stat().st_mtime if data is not None else 0.0
    except TargetRefused as error:
        return Seen(problem=str(error))
    except OSError:  # gone between the two questions
        return Seen()
    if data is None:
        return Seen()
    return Seen(hashlib.sha256(data).hexdigest(), len(data), modified_seconds=modified, data=data)


def _check_folder(folder: Path) -> None:
    if not folder.is_dir():
        raise TargetRefused(f"The folder {folder} does not exist.")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise TargetRefused(f"The folder {folder} is not writable for the worker.")


def _current(target: Path) -> bytes | None:
    """The bytes that are there; None for no file."""
    try:
        status = target.stat()
        if not stat.S_ISREG(status.st_mode):
            raise TargetRefused(f"{target} is not a regular file.")
        if status.st_size > MAX_BYTES:
            raise ForeignFile(f"{target} has {status.st_size:,} bytes: that is no config of ours.")
        return target.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise TargetRefused(f"{target} cannot be read: {error.strerror}.") from error


def _check_ours(target: Path, current: bytes, expected_sha256: str, adopt: bool) -> None:
    if adopt or hashlib.sha256(current).hexdigest() == expected_sha256:
        return
    stamp = read_stamp(current.decode("utf-8", "replace"))
    if stamp is None:
        raise ForeignFile(f"{target} was not written by Quartermaster.")
    if expected_sha256 or not stamp.intact:
        raise Drift(f"{target} was changed since it was written (its header says revision {stamp.revision}).")


def _sweep(target: Path) -> None:
    """Take away what a write left that was killed. There is one write at a time for a file."""
    with contextlib.suppress(OSError):
        for entry in target.parent.iterdir():
            if entry.name.startswith(f".{target.name}.") and entry.name.endswith(_UNFINISHED):
                entry.unlink(missing_ok=True)


def _back_up(target: Path, keep: int) -> str:
    """Copy the old file beside itself under the next number; the newest `keep` stay."""
    pattern = re.compile(re.escape(target.name) + r"\.bak-([0-9]{1,9})")
    numbers = sorted(int(found[1]) for entry in target.parent.iterdir() if (found := pattern.fullmatch(entry.name)))
    backup = target.with_name(f"{target.name}.bak-{(numbers[-1] if numbers else 0) + 1}")
    unfinished = target.with_name(f".{target.name}.bak{_UNFINISHED}")  # half a backup would look like a whole one
    try:
        shutil.copy2(target, unfinished)
        os.rename(unfinished, backup)
    except OSError as error:
        with contextlib.suppress(OSError):
            unfinished.unlink(missing_ok=True)
        raise TargetRefused(f"{backup} cannot be written: {error.strerror or error}.") from error
    for number in numbers[: max(len(numbers) + 1 - max(keep, 1), 0)]:
        target.with_name(f"{target.name}.bak-{number}").unlink(missing_ok=True)
    return str(backup)


def _replace(target: Path, data: bytes, current: bytes | None) -> bool:
    """Rename a finished copy over the file; where that is impossible, rewrite it. Returns whether it was rewritten."""
    try:
        try:
            replace_file(target, data)
        except OSError as error:
            if error.errno not in _CANNOT_RENAME or current is None:
                raise
            _rewrite(target, data, current)
            return True
    except OSError as error:
        raise TargetRefused(f"{target} cannot be written: {error.strerror or error}.") from error
    return False


def _rewrite(target: Path, data: bytes, current: bytes) -> None:
    """Overwrite the file as it lies; when that fails half-way, put back what was there."""
    try:
        _overwrite(target, data)
    except OSError:
        with contextlib.suppress(OSError):
            _overwrite(target, current)
        raise


def _overwrite(target: Path, data: bytes) -> None:
    with target.open("r+b", buffering=0) as stream:
        rest = memoryview(data)
        while rest:
            rest = rest[stream.write(rest) :]
        stream.truncate()
        os.fsync(stream.fileno())
