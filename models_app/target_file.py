"""Writing a router's file on this machine: atomically, with a backup, never over somebody else's. Imports no Django."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import secrets
import stat
from dataclasses import dataclass
from pathlib import Path

from gpus_app.core.errors import QuartermasterError
from models_app.core.export.stamp import read_stamp

MAX_BYTES = 16 << 20
KEEP_BACKUPS = 5
NEW_FILE_MODE = 0o640
_CANNOT_RENAME = (errno.EBUSY, errno.EXDEV, errno.EPERM, errno.ETXTBSY)


class TargetRefused(QuartermasterError):
    """The file was not written; nothing on disk has changed."""


class ForeignFile(TargetRefused):
    """There is a file that is not ours."""


class Drift(TargetRefused):
    """The file was changed since we wrote it."""


@dataclass(frozen=True, slots=True)
class Written:
    path: str
    sha256: str
    backup: str
    in_place: bool
    """The file could not be renamed (a bind mount, for example) and was rewritten as it lies."""


def write_target(path: str, text: str, *, sha256: str, expected_sha256: str, adopt: bool) -> Written:
    """Put `text` at `path`.

    `sha256` is that of the text, `expected_sha256` that of the bytes we wrote last ("" for never). An existing file is
    replaced only when it is as we left it, or a person said so (`adopt`).
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
    if current is not None:
        _check_ours(target, current, expected_sha256, adopt)
        if current == data:
            return Written(str(target), sha256, "", in_place=False)
    backup = _back_up(target, current) if current is not None else ""
    in_place = _replace(target, data)
    return Written(str(target), sha256, backup, in_place)


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
        raise ForeignFile(f"{target} was not written by Quartermaster. Adopt it to have it replaced (after a backup).")
    if expected_sha256 or not stamp.intact:
        raise Drift(f"{target} was changed since it was written (its header says revision {stamp.revision}).")


def _back_up(target: Path, current: bytes) -> str:
    """Copy the old bytes beside the file under the next number; the newest five stay."""
    pattern = re.compile(re.escape(target.name) + r"\.bak-([0-9]{1,9})")
    numbers = sorted(int(found[1]) for entry in target.parent.iterdir() if (found := pattern.fullmatch(entry.name)))
    backup = target.with_name(f"{target.name}.bak-{(numbers[-1] if numbers else 0) + 1}")
    _write_new(backup, current, like=target)
    for number in numbers[: max(len(numbers) + 1 - KEEP_BACKUPS, 0)]:
        target.with_name(f"{target.name}.bak-{number}").unlink(missing_ok=True)
    return str(backup)


def _replace(target: Path, data: bytes) -> bool:
    """Rename a finished copy over the file; where that is impossible, rewrite it. Returns whether it was rewritten."""
    draft = target.with_name(f".{target.name}.{secrets.token_hex(6)}.tmp")
    try:
        _write_new(draft, data, like=target)
        try:
            os.replace(draft, target)
        except OSError as error:
            if error.errno not in _CANNOT_RENAME or not target.exists():
                raise
            _rewrite(target, data)
            return True
        _sync_folder(target.parent)
        return False
    except OSError as error:
        raise TargetRefused(f"{target} cannot be written: {error.strerror or error}.") from error
    finally:
        draft.unlink(missing_ok=True)


def _write_new(path: Path, data: bytes, *, like: Path) -> None:
    """A new file with the mode and, where allowed, the owner of `like`; on disk when this returns."""
    try:
        status: os.stat_result | None = like.stat()
    except FileNotFoundError:
        status = None
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as stream:
        if hasattr(os, "fchmod"):
            os.fchmod(descriptor, stat.S_IMODE(status.st_mode) if status else NEW_FILE_MODE)
        if status and hasattr(os, "fchown") and (status.st_uid, status.st_gid) != (os.geteuid(), os.getegid()):
            _keep_owner(descriptor, status)
        stream.write(data)
        stream.flush()
        os.fsync(descriptor)


def _keep_owner(descriptor: int, status: os.stat_result) -> None:
    try:
        os.fchown(descriptor, status.st_uid, status.st_gid)
    except PermissionError:
        # Only root may give files away; the group alone is often allowed, and is what a router reads by.
        try:
            os.fchown(descriptor, -1, status.st_gid)
        except PermissionError:
            return


def _rewrite(target: Path, data: bytes) -> None:
    with target.open("r+b") as stream:
        stream.write(data)
        stream.truncate()
        stream.flush()
        os.fsync(stream.fileno())


def _sync_folder(folder: Path) -> None:
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
