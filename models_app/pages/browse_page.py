"""A folder of a host as the page for picking a path shows it: where one is, what lies there, what can be taken."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from quartermaster_site.jobs.models import Job

PURPOSES = {
    "folder": ("Pick a folder", False),
    "executable": ("Pick an executable", True),
    "file": ("Pick a file", True),
}
"""What is picked -> heading of the page, and whether it is a file."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One name. A folder is gone into by its path; `take_url` is empty for what cannot be picked here."""

    name: str
    path: str
    is_folder: bool
    is_readable: bool
    size_bytes: int
    take_url: str


@dataclass(frozen=True, slots=True)
class Listing:
    """What a finished job found in one folder."""

    path: str
    parent: str
    truncated: bool
    entries: tuple[Entry, ...]
    take_url: str
    """Picks this folder itself; "" where a file is wanted."""


def start_path(os_family: str) -> str:
    """Where browsing begins when nothing was typed."""
    return "C:\\" if os_family == "windows" else "/"


def joined(folder: str, name: str) -> str:
    """A path in the spelling of the system that the folder is on."""
    separator = "\\" if "\\" in folder else "/"
    return f"{folder.rstrip(separator)}{separator}{name}"


def listing_of(job: Job, *, purpose: str, back: str) -> Listing:
    """The listing in a job's result, with the addresses that take a path back to the form at `back`."""
    result: dict[str, Any] = job.result
    wants_file = PURPOSES[purpose][1]
    folder = result.get("path", "")
    entries = tuple(_entry(item, folder, wants_file, back) for item in result.get("entries", []))
    take_url = "" if wants_file or not folder else _take(back, folder)
    return Listing(folder, result.get("parent", ""), bool(result.get("truncated")), entries, take_url)


def _entry(item: dict[str, Any], folder: str, wants_file: bool, back: str) -> Entry:
    path, kind = joined(folder, item["name"]), item["kind"]
    take_url = _take(back, path) if wants_file and kind == "file" else ""
    return Entry(item["name"], path, kind == "folder", kind != "unreadable", item["size_bytes"], take_url)


def _take(back: str, path: str) -> str:
    separator = "&" if "?" in back else "?"
    return f"{back}{separator}{urlencode({'path': path})}"
