"""Findings as a table: what, why it matters, how to fix it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePosixPath

from django.urls import reverse

from models_app.models import Finding

LEVELS = {"error": ("bad", "error", "bad"), "warning": ("warn", "warning", "warn"), "info": ("", "note", "info")}
"""Level -> tone, word, icon."""

TEXTS = {
    "shards-missing": ("Incomplete shard set", "Finish the download, then scan again."),
    "header-unreadable": ("Header unreadable", "Download the file again, or remove it."),
    "not-servable": ("Not a model that can be served", "Nothing to do, unless it should be one."),
    "package-incomplete": ("Incomplete package", "Add the files that are missing, then scan again."),
    "root-missing": ("Folder missing", "Mount the drive or correct the path, then scan again. Nothing was removed."),
    "root-unreadable": ("Folder unreadable", "Give the worker the right to read it, then scan again."),
    "folder-unreadable": ("Folder unreadable", "Give the worker the right to read it, then scan again."),
    "incomplete": ("File cut short", "Finish the download, then scan again."),
    "file-unreadable": (
        "File unreadable",
        "Restore what it links to, or the right to read it, then scan again; or remove it.",
    ),
    "unsafe-name": ("Name that cannot be used", "Rename it, then scan again."),
    "folder-repeated": ("Folder met twice", "Nothing to do: its files are listed once."),
    "duplicate-id": ("Two files with one id", "Rename or move one of them; the id tells them apart until then."),
}
"""Kind -> title, remedy. A kind that is not here is shown by its slug."""

_SAID_BY_TITLE = (
    "unreadable header: ",
    "file cannot be read: ",
    "folder cannot be read: ",
    "this models folder cannot be read: ",
    "this models folder cannot be used: ",
)
"""How the core starts a text that stands alone; below a title it would say everything twice."""


@dataclass(frozen=True, slots=True)
class FindingRow:
    tone: str
    word: str
    shape: str
    object: str
    folder: str
    url: str
    title: str
    text: str
    offset: int | None
    remedy: str
    since: datetime
    scan: int | None


def finding_row(finding: Finding) -> FindingRow:
    tone, word, shape = LEVELS.get(finding.level, LEVELS["warning"])
    title, remedy = TEXTS.get(finding.kind, (finding.kind.replace("-", " ").capitalize(), "See the text."))
    path = PurePosixPath(finding.path.replace("\\", "/"))
    return FindingRow(
        tone=tone,
        word=word,
        shape=shape,
        object=path.name or finding.path,
        folder=str(path.parent),
        url=_address(finding),
        title=title,
        text=_below_title(finding.text),
        offset=finding.offset,
        remedy=remedy,
        since=finding.since,
        scan=finding.first_scan_id,
    )


def _address(finding: Finding) -> str:
    """Where it can be mended or looked at; "" where only the disk can."""
    if finding.row_id:
        return reverse("models:model-show", args=[finding.row_id])
    if finding.kind.startswith("root-"):
        return reverse("models:host-folders", args=[finding.host.slug])
    return ""


def _below_title(text: str) -> str:
    for start in _SAID_BY_TITLE:
        text = text.removeprefix(start)
    return text.replace("this models folder", "it", 1) if text.startswith("this models folder") else text
