"""The walk over models folders (discovery.md 2): names and sizes only, no file is opened.

The one exception is `refs/main` of a Hugging Face cache folder, 40 bytes that say which snapshot counts.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from models_app.core.catalog import FileEntry, Finding
from models_app.core.discovery.hostile_names import printable, unsafe_reason
from models_app.core.discovery.listing import Listing, RootFiles, is_kept
from models_app.core.discovery.roots import Root, without_repeats

PROGRESS_EVERY = 256
CACHE_PREFIX = "models--"
REF_LIMIT_BYTES = 256
OUTSIDE = "outside"
"""Kind of the finding about what lies where this machine lets nobody look."""
MAX_FINDINGS = 1000
"""Of one walk. A tree of hostile names must not fill a database with complaints."""
_LEADS_OUTSIDE = "left out: it leads outside the folders that this host lets people see"


def list_files(
    roots: Iterable[Root | str],
    *,
    platform: str,
    should_stop: Callable[[], bool] = lambda: False,
    on_progress: Callable[[int, str], None] = lambda seen, folder: None,
    may_see: Callable[[str], bool] | None = None,
) -> Listing:
    """List every model file below the roots. Never raises for what it finds on disk.

    `may_see` tells of a path without links whether it may be listed; without it, everything may.

    `on_progress` gets the number of entries seen so far and the folder being read; it and `should_stop` are called at
    least every 256 entries.
    """
    walk = _Walk(should_stop, on_progress, may_see)
    parts = []
    for root in without_repeats((_as_root(item) for item in roots), platform):
        root = Root(os.path.abspath(root.path), root.category)
        parts.append(RootFiles(root, tuple(walk.root(root.path))))
        if walk.stopped:
            break
    return Listing(
        platform=platform,
        roots=tuple(parts),
        findings=tuple(dict.fromkeys(walk.findings)),  # overlapping roots say everything twice
        package_bytes=walk.package_bytes,
        cache_commits=walk.cache_commits,
        folders=walk.folders,
        unread=tuple(walk.unread),
        unread_files=tuple(walk.unread_files),
        seen_count=walk.seen,
        stopped=walk.stopped,
    )


def _as_root(item: Root | str) -> Root:
    return item if isinstance(item, Root) else Root(item.strip())


@dataclass
class _Folder:
    """A folder still to be read: where it is, where it really is, and the package that it belongs to."""

    path: str
    real_path: str
    package: str = ""


@dataclass
class _Walk:
    should_stop: Callable[[], bool]
    on_progress: Callable[[int, str], None]
    may_see: Callable[[str], bool] | None = None
    findings: list[Finding] = field(default_factory=list)
    package_bytes: dict[str, int] = field(default_factory=dict)
    cache_commits: dict[str, str] = field(default_factory=dict)
    folders: dict[str, tuple[int, int]] = field(default_factory=dict)
    unread: list[str] = field(default_factory=list)
    unread_files: list[str] = field(default_factory=list)
    seen: int = 0
    stopped: bool = False
    _visited: dict[tuple[int, int], str] = field(default_factory=dict)

    def root(self, path: str) -> list[FileEntry]:
        """All kept files below one root. A missing root is a finding."""
        files: list[FileEntry] = []
        if self._is_outside(path):
            text = "this models folder lies outside the folders that this host lets people see (QM_BROWSE_ROOTS there)"
            self._unreadable(OUTSIDE, path, text, "error")
            return files
        try:
            status = os.stat(path)
        except (OSError, ValueError) as error:
            self._unreadable("root-missing", path, f"this models folder cannot be read: {why(error)}", "error")
            return files
        if not stat.S_ISDIR(status.st_mode):
            self._unreadable("root-missing", path, "this models folder is not a folder", "error")
            return files
        reason = unsafe_reason(path)
        if reason:
            self._unreadable("unsafe-name", path, f"this models folder cannot be used: {reason}", "error")
            return files
        self._visited = {}
        pending = [_Folder(path, os.path.realpath(path))]
        while pending and not self.stopped:
            folder = pending.pop()
            if self._first_visit(folder):
                pending.extend(reversed(self._read(folder, files)))
        return files

    def _first_visit(self, folder: _Folder) -> bool:
        """Guards against loops of links, and against listing one folder twice."""
        try:
            key = folder_identity(folder.path)
        except OSError as error:
            self._unreadable("folder-unreadable", folder.path, f"folder cannot be read: {why(error)}")
            return False
        earlier = self._visited.setdefault(key, folder.path)
        if earlier is folder.path:
            self.folders[folder.path] = key
            return True
        loops = folder.path.startswith(earlier.rstrip(os.sep) + os.sep)
        text = "link back to a folder above it" if loops else "the same folder as one listed before"
        self._note("folder-repeated", folder.path, f"not entered: {text} ({printable(earlier)})", "info")
        return False

    def _read(self, folder: _Folder, files: list[FileEntry]) -> list[_Folder]:
        """Add the files of one folder; returns its sub-folders in byte order."""
        self._check(folder.path)
        entries: list[os.DirEntry[str]] = []
        try:
            with os.scandir(folder.path) as iterator:
                for entry in iterator:
                    entries.append(entry)
                    self.seen += 1
                    if self.seen % PROGRESS_EVERY == 0:
                        self._check(folder.path)
                        if self.stopped:
                            return []
        except OSError as error:
            self._unreadable("folder-unreadable", folder.path, f"folder cannot be read: {why(error)}")
            return []
        entries.sort(key=lambda entry: entry.name)
        self._open_package(folder, entries)
        self._read_cache_ref(folder)
        subfolders = []
        for entry in entries:
            if _is_folder(entry):
                if self._is_safe(entry) and not self._leads_outside(entry):
                    subfolders.append(_Folder(entry.path, _real_folder(folder, entry), folder.package))
            elif folder.package or is_kept(entry.name):
                self._add(folder, entry, files)
            elif _leads_nowhere(entry):
                self.unread_files.append(printable(entry.path))  # perhaps to a folder of a drive that is away
        return subfolders

    def _open_package(self, folder: _Folder, entries: list[os.DirEntry[str]]) -> None:
        if not folder.package and any(entry.name == "pipeline.json" for entry in entries):
            folder.package = folder.path
            self.package_bytes[folder.path] = 0

    def _add(self, folder: _Folder, entry: os.DirEntry[str], files: list[FileEntry]) -> None:
        kept = is_kept(entry.name)
        try:
            status = entry.stat()
        except OSError as error:
            if kept:
                text = "broken link" if entry.is_symlink() else why(error)
                self._note("file-unreadable", entry.path, f"file cannot be read: {text}")
                self.unread_files.append(printable(entry.path))
            return
        if not stat.S_ISREG(status.st_mode):
            if kept:
                self._note("file-unreadable", entry.path, "not a regular file")
            return
        if folder.package:
            self.package_bytes[folder.package] += status.st_size
        if kept and self._is_safe(entry):
            real_path = _real_file(folder, entry)
            if entry.is_symlink() and self._is_outside(real_path):
                self._note(OUTSIDE, entry.path, _LEADS_OUTSIDE)
                self.unread_files.append(printable(entry.path))
                return
            files.append(FileEntry(entry.path, status.st_size, status.st_mtime_ns, real_path, status.st_ctime_ns))

    def _is_outside(self, path: str) -> bool:
        return self.may_see is not None and not self.may_see(os.path.realpath(path))

    def _leads_outside(self, entry: os.DirEntry[str]) -> bool:
        """Links, and what a system has in their place: each folder is looked at, where anything is limited."""
        is_outside = self._is_outside(entry.path)
        if is_outside:
            self._unreadable(OUTSIDE, entry.path, _LEADS_OUTSIDE)
        return is_outside

    def _read_cache_ref(self, folder: _Folder) -> None:
        if not os.path.basename(folder.path).startswith(CACHE_PREFIX):
            return
        try:
            with open(os.path.join(folder.path, "refs", "main"), "rb") as stream:
                commit = stream.read(REF_LIMIT_BYTES).decode("ascii", "replace").strip()
        except OSError:
            return
        self.cache_commits[folder.path] = commit

    def _is_safe(self, entry: os.DirEntry[str]) -> bool:
        # Commands are written with forward slashes, so a backslash inside a name would lead elsewhere.
        reason = unsafe_reason(entry.name) or ("the name contains a backslash" if "\\" in entry.name else "")
        if reason:
            self._note("unsafe-name", entry.path, f"left out: {reason}")
        return not reason

    def _check(self, folder: str) -> None:
        self.on_progress(self.seen, printable(folder))
        if self.should_stop():
            self.stopped = True

    def _unreadable(self, kind: str, path: str, text: str, level: str = "warning") -> None:
        self.unread.append(printable(path))
        self._note(kind, path, text, level)

    def _note(self, kind: str, path: str, text: str, level: str = "warning") -> None:
        if len(self.findings) < MAX_FINDINGS:
            self.findings.append(Finding(kind, printable(path), text, level))


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _leads_nowhere(entry: os.DirEntry[str]) -> bool:
    return entry.is_symlink() and not os.path.exists(entry.path)


def _real_folder(folder: _Folder, entry: os.DirEntry[str]) -> str:
    if entry.is_symlink():
        return os.path.realpath(entry.path)
    return os.path.join(folder.real_path, entry.name)


def _real_file(folder: _Folder, entry: os.DirEntry[str]) -> str:
    """Where the bytes are, "" when that is the path itself."""
    if entry.is_symlink():
        return os.path.realpath(entry.path)
    return "" if folder.real_path == folder.path else os.path.join(folder.real_path, entry.name)


def folder_identity(path: str) -> tuple[int, int]:
    """Device and number of a folder that may be entered, mounted by now if it is one that is mounted when needed."""
    status = os.stat(os.path.join(path, os.curdir))
    return status.st_dev, status.st_ino


def why(error: OSError | ValueError) -> str:
    """What is wrong with a path, in words."""
    match error:
        case FileNotFoundError():
            return "it does not exist"
        case PermissionError():
            return "permission denied"
        case OSError():
            return error.strerror or type(error).__name__
    return str(error)
