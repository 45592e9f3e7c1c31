"""A read-only look into a folder of this machine, for picking model folders. Imports no Django."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from gpus_app.core.errors import QuartermasterError
from models_app.core.discovery.hostile_names import unsafe_reason
from quartermaster_site import env

MAX_ENTRIES = 4000


class NotListed(QuartermasterError):
    """A folder that cannot, or must not, be listed."""


def list_folder(path: str, permitted: Iterable[str]) -> dict[str, Any]:
    """Folders first, then names without regard to case. Only inside the permitted folders, links resolved.

    A folder above them shows the way to them and nothing else. Of a file its folder is listed.
    """
    permitted = list(permitted)
    if reason := unsafe_reason(path):
        raise NotListed(f"This path cannot be used: {reason}.")
    real = os.path.realpath(path)
    if os.path.isfile(real):
        real = os.path.dirname(real)
    if not os.path.isabs(path) or not is_inside(real, permitted):
        if ways := _ways_to(permitted, path):
            return {"path": os.path.normpath(path), "parent": "", "entries": ways, "truncated": False}
        raise NotListed(f"{path} is outside the folders that this host lets people see.")
    entries: list[dict[str, Any]] = []
    truncated = False
    try:
        with os.scandir(real) as found:
            for entry in found:
                if len(entries) >= MAX_ENTRIES:
                    truncated = True
                    break
                if not unsafe_reason(entry.name):
                    entries.append(_describe(entry))
    except OSError as error:
        raise NotListed(f"{path} cannot be listed: {error.strerror}.") from error
    entries.sort(key=lambda item: (item["kind"] != "folder", item["name"].casefold(), item["name"]))
    parent = os.path.dirname(real)
    reachable = parent != real and is_inside(parent, permitted)
    return {"path": real, "parent": parent if reachable else "", "entries": entries, "truncated": truncated}


def scan_roots() -> tuple[str, ...]:
    """Folders in which this host scans, and has what people name for its models; () when nothing is limited."""
    return env.browse_roots() if env.text("QM_BROWSE_ROOTS") else ()


def sight(permitted: Sequence[str]) -> Callable[[str], bool] | None:
    """Which paths without links a walk may list: `may_see` of `list_files`. None where nothing is limited."""
    return (lambda real: is_inside(real, permitted)) if permitted else None


def is_inside(real: str, permitted: Iterable[str]) -> bool:
    """Whether a path without links lies in one of the folders, whose own links are resolved here."""
    return any(_inside(real, os.path.realpath(root)) for root in permitted)


def _inside(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip(os.sep) + os.sep)


def _ways_to(permitted: Iterable[str], path: str) -> list[dict[str, Any]]:
    """The folders right below `path` through which the permitted ones are reached; no disk is asked."""
    above = os.path.normpath(path)
    below = {root[len(above.rstrip(os.sep)) + 1 :].split(os.sep)[0] for root in permitted if _inside(root, above)}
    return [{"name": name, "kind": "folder", "size_bytes": 0, "mtime": 0} for name in sorted(below) if name]


def _describe(entry: os.DirEntry[str]) -> dict[str, Any]:
    try:
        status = entry.stat()
        kind = "folder" if entry.is_dir() else "file"
    except OSError:
        return {"name": entry.name, "kind": "unreadable", "size_bytes": 0, "mtime": 0}
    return {"name": entry.name, "kind": kind, "size_bytes": status.st_size, "mtime": int(status.st_mtime)}
