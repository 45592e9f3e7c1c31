"""Writing a router's file: the old text or the new one is there at every moment, never a part (config-yaml.md 12.8).

llama-swap watches time and size of its file, and a reload stops its models; so a file is left alone where only the time
in its first line would change.
"""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path

from models_app.core.errors import ExportError
from models_app.core.export.load import MAX_BYTES

NEW_FILE_MODE = 0o600
"""The file holds API keys in clear."""
GENERATED_MARK = " - generated"
"""In the first line, between the title and the time."""


@dataclass(frozen=True, slots=True)
class Written:
    """What a write did. `path` is where the text lies: a link's target."""

    path: str
    changed: bool
    replaced_foreign: bool = False
    """There was a text of somebody else."""


def without_time(text: str) -> str:
    """A text whose first line has lost its time."""
    title, newline, body = text.partition("\n")
    head, mark, _ = title.partition(GENERATED_MARK)
    return head + mark + newline + body


def write_target(path: str, text: str) -> Written:
    """Replace a file at once. Mode and owner of an existing file are kept. Raises `ExportError`."""
    try:
        target = Path(os.path.realpath(path))
        data = text.encode("utf-8")
        if target.exists() and not target.is_file():
            return _write_through(target, data)
        old = _existing(target)
        if old is not None and without_time(old) == without_time(text):
            return Written(str(target), changed=False)
        replace_file(target, data)
    except UnicodeEncodeError as error:
        raise ExportError(f"{path}: the text holds bytes that are not UTF-8") from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ExportError(f"{path} cannot be written: {reason}") from error
    foreign = bool(old) and GENERATED_MARK not in str(old).partition("\n")[0]
    return Written(str(target), changed=True, replaced_foreign=foreign)


def write_companion(path: str, content: str | bytes) -> None:
    """A file beside the config; its folder is made when it is missing. Raises `ExportError`."""
    data = content.encode("utf-8") if isinstance(content, str) else content
    try:
        target = Path(os.path.realpath(path))
        os.makedirs(target.parent, mode=0o700, exist_ok=True)
        if not target.is_file() or target.read_bytes() != data:
            replace_file(target, data)
    except (OSError, ValueError) as error:
        raise ExportError(f"{path} cannot be written: {getattr(error, 'strerror', None) or error}") from error


def _write_through(target: Path, data: bytes) -> Written:
    """A device or a pipe has no other text to protect, and must never be replaced by a file."""
    descriptor = os.open(target, os.O_WRONLY | getattr(os, "O_NONBLOCK", 0))  # fails where nobody reads a pipe
    with open(descriptor, "wb") as stream:
        os.set_blocking(descriptor, True)
        stream.write(data)
    return Written(str(target), changed=True)


def _existing(target: Path) -> str | None:
    """The present text, None where there is no file. Raises `ExportError` for what can be no config."""
    try:
        size = target.stat().st_size
        if size > MAX_BYTES:
            raise ExportError(f"{target} has {size:,} bytes: that is no config file, so it is left alone")
        return target.read_bytes().decode("utf-8", "replace")
    except FileNotFoundError:
        return None


def replace_file(target: Path, data: bytes) -> None:
    """Write a copy beside the file, force it to disk, rename it over. Raises OSError; then the old file stands."""
    descriptor, temporary = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".tmp", dir=target.parent)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            _keep_mode_and_owner(stream.fileno(), target)
            os.fsync(stream.fileno())
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    _sync_folder(target.parent)


def _keep_mode_and_owner(descriptor: int, target: Path) -> None:
    """The new file takes the old one's permissions. Only root may hand a file to another owner; a group often may."""
    try:
        status = os.stat(target)
    except FileNotFoundError:
        mode = NEW_FILE_MODE
    else:
        mode = stat.S_IMODE(status.st_mode)
        if hasattr(os, "fchown"):
            for owner in (status.st_uid, -1):
                with contextlib.suppress(PermissionError):
                    os.fchown(descriptor, owner, status.st_gid)
                    break
    if hasattr(os, "fchmod"):
        os.fchmod(descriptor, mode)


def _sync_folder(folder: Path) -> None:
    """Make the rename itself durable, where the system can."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
