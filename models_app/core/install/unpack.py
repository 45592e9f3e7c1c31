"""Unpacking a downloaded archive: nothing leaves the folder, links come after the files (classes.md 16.1)."""

from __future__ import annotations

import os
import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import PurePosixPath
from typing import IO

from models_app.core.errors import QuartermasterError

MAX_ENTRIES = 50_000
MAX_TOTAL_BYTES = 16 << 30
MAX_LINK_BYTES = 4096
_EXECUTABLE = 0o111
_DRIVE_MARK = ":"


class ArchiveError(QuartermasterError):
    """An archive that cannot be unpacked or must not be. What was unpacked so far lies in the staging folder."""


@dataclass(frozen=True, slots=True)
class _Entry:
    name: str
    size_bytes: int
    executable: bool
    open: Callable[[], IO[bytes] | None]
    link: str | None = None
    """Where a link points; None for a file."""


def unpack(archive: str, folder: str) -> None:
    """Unpack a zip or tar.gz into an existing folder. Raises `ArchiveError`."""
    try:
        with _opened(archive) as entries:
            _unpack(entries, os.path.realpath(folder))
    except (OSError, EOFError, zlib.error, zipfile.BadZipFile, tarfile.TarError, RuntimeError, ValueError) as error:
        raise ArchiveError(f"{os.path.basename(archive)} cannot be unpacked: {error}") from error


@contextmanager
def _opened(archive: str) -> Iterator[Iterator[_Entry]]:
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as package:
            yield _zip_entries(package)
    else:
        with tarfile.open(archive, "r:*") as bundle:
            yield _tar_entries(bundle)


def _zip_entries(package: zipfile.ZipFile) -> Iterator[_Entry]:
    for info in package.infolist():
        if info.is_dir():
            continue
        mode = info.external_attr >> 16
        link = None
        if stat.S_ISLNK(mode):
            if info.file_size > MAX_LINK_BYTES:
                raise ArchiveError(f"{info.filename}: a link of {info.file_size:,} bytes")
            link = package.read(info).decode("utf-8")
        yield _Entry(info.filename, info.file_size, bool(mode & _EXECUTABLE), partial(package.open, info), link)


def _tar_entries(bundle: tarfile.TarFile) -> Iterator[_Entry]:
    for info in bundle:
        if info.isdir():
            continue
        if not (info.isreg() or info.issym()):
            raise ArchiveError(f"{info.name}: neither a file, a folder nor a symbolic link")
        link = info.linkname if info.issym() else None
        size = info.size if info.isreg() else 0
        yield _Entry(info.name, size, bool(info.mode & _EXECUTABLE), partial(bundle.extractfile, info), link)


def _unpack(entries: Iterator[_Entry], root: str) -> None:
    links: dict[str, str] = {}
    total_bytes = 0
    for count, entry in enumerate(entries, 1):
        total_bytes += entry.size_bytes
        if count > MAX_ENTRIES or total_bytes > MAX_TOTAL_BYTES:
            raise ArchiveError("it holds more than any build does")
        target = _inside(root, entry.name)
        if entry.link is None:
            _write(entry, target)
        else:
            links[target] = _link_target(root, target, entry.link)
    for target, points_to in _resolvable_first(links).items():
        _link(root, target, points_to)


def _inside(root: str, name: str) -> str:
    """The place of an entry. Raises `ArchiveError` for one that would leave the folder."""
    path = PurePosixPath(name.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts or _DRIVE_MARK in name or not path.parts:
        raise ArchiveError(f"{name}: it would leave the folder")
    return os.path.join(root, *path.parts)


def _link_target(root: str, place: str, link: str) -> str:
    """Where a link points, as a full path. Raises `ArchiveError` when that is outside."""
    if os.path.isabs(link) or "\\" in link or _DRIVE_MARK in link:
        raise ArchiveError(f"{os.path.basename(place)}: a link to an absolute path")
    points_to = os.path.normpath(os.path.join(os.path.dirname(place), link))
    if not points_to.startswith(root + os.sep):
        raise ArchiveError(f"{os.path.basename(place)}: a link that leaves the folder")
    return points_to


def _write(entry: _Entry, target: str) -> None:
    os.makedirs(os.path.dirname(target), exist_ok=True)
    source = entry.open()
    if source is None:
        raise ArchiveError(f"{entry.name}: it has no content")
    with source, open(target, "xb") as out:
        shutil.copyfileobj(source, out)
    if entry.executable:
        os.chmod(target, os.stat(target).st_mode | _EXECUTABLE)


def _resolvable_first(links: dict[str, str]) -> dict[str, str]:
    """Links in an order in which each finds its target: chains from their end."""
    ordered: dict[str, str] = {}
    for target in links:
        chain = []
        current = target
        while current in links and current not in ordered and current not in chain:
            chain.append(current)
            current = links[current]
        ordered |= {place: links[place] for place in reversed(chain)}
    return ordered


def _link(root: str, target: str, points_to: str) -> None:
    """A relative link; a copy where the system allows no links. Through another link it could still lead outside."""
    os.makedirs(os.path.dirname(target), exist_ok=True)
    try:
        os.symlink(os.path.relpath(points_to, os.path.dirname(target)), target)
    except (NotImplementedError, PermissionError):
        shutil.copy2(points_to, target)
    if not os.path.realpath(target).startswith(root + os.sep):
        os.unlink(target)
        raise ArchiveError(f"{os.path.basename(target)}: a link that leaves the folder")
