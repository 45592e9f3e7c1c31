"""What of a listing is gone by the time it is read: an unplugged drive, an unmounted share, a deleted file.

Asks the disk only about what could not be read, and about the roots at the end. A folder is lost when it cannot be
listed any more or when another one is at its place: an empty mount point says nothing about the files of the drive.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from models_app.core.catalog import FileEntry, Finding
from models_app.core.discovery.hostile_names import printable
from models_app.core.discovery.listing import Listing
from models_app.core.discovery.walk import folder_identity, why

REPLACED = "another folder is in its place"


@dataclass
class Vanishing:
    """Folders that were lost and files that were deleted since `listing` was made."""

    listing: Listing
    _folders: dict[str, Finding] = field(default_factory=dict)
    _files: set[str] = field(default_factory=set)

    @property
    def count(self) -> int:
        return len(self._folders) + len(self._files)

    def holds(self, path: str) -> bool:
        """Whether it is known already that this file is out of reach."""
        return bool(self._folders) and any(folder in self._folders for folder in _above(path))

    def explains(self, path: str, parts: Sequence[FileEntry]) -> bool:
        """Whether a file that could not be read is not to be judged: its folder is lost, or it is deleted.

        `parts` are all files that are read with it; without one of them the others say nothing.
        """
        listed = [folder for folder in (*reversed(list(_above(path))), path) if folder in self.listing.folders]
        if self._is_lost(listed):
            return True
        if all(map(_exists, (path, *(part.path for part in parts)))):
            return False
        self._files.update(part.path for part in parts)
        return True

    def check_roots(self) -> None:
        """Roots that went away after their last file was read."""
        for part in self.listing.roots:
            if part.root.path in self.listing.folders:
                self._is_lost([part.root.path])

    def remaining(self) -> Listing:
        """The listing as it would have been, had the lost folders been unreadable and the files not there."""
        if not self.count:
            return self.listing
        roots = (replace(part, files=tuple(filter(self._is_left, part.files))) for part in self.listing.roots)
        packages = self.listing.package_bytes
        return replace(
            self.listing,
            roots=tuple(roots),
            findings=(*self.listing.findings, *self._folders.values()),
            package_bytes={path: size for path, size in packages.items() if not self.holds(os.path.join(path, ""))},
            unread=(*self.listing.unread, *map(printable, self._folders)),
        )

    def _is_left(self, entry: FileEntry) -> bool:
        return entry.path not in self._files and not self.holds(entry.path)

    def _is_lost(self, folders: Iterable[str]) -> bool:
        """Whether one of these folders is lost; from the root down, the first is noted."""
        roots = {part.root.path for part in self.listing.roots}
        for folder in folders:
            if folder in self._folders:
                return True
            reason = self._reason(folder)
            if reason:
                is_root = folder in roots
                kind, level = ("root-missing", "error") if is_root else ("folder-unreadable", "warning")
                name = "models folder" if is_root else "folder"
                text = f"this {name} went away while it was read: {reason}"
                self._folders[folder] = Finding(kind, printable(folder), text, level)
                return True
        return False

    def _reason(self, folder: str) -> str:
        try:
            identity = folder_identity(folder)
            with os.scandir(folder):
                pass
        except OSError as error:
            return why(error)
        return "" if identity == self.listing.folders[folder] else REPLACED


def _above(path: str) -> Iterator[str]:
    """The folders that a path lies in, the nearest first."""
    while (folder := os.path.dirname(path)) != path:
        yield folder
        path = folder


def _exists(path: str) -> bool:
    """A file that may not be looked at is there."""
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError):
        return True
    return True
