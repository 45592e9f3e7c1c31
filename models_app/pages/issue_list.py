"""Findings as a table: what, why it matters, how to fix it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePosixPath, PureWindowsPath
from urllib.parse import urlencode

from django.urls import reverse

from gpus_app.models import OsFamily
from models_app.core.settings_files.table import safe_cell
from models_app.models import Finding

LEVELS = {"error": ("bad", "error", "bad"), "warning": ("warn", "warning", "warn"), "info": ("", "note", "info")}
"""Level -> tone, word, icon."""

TEXTS = {
    "shards-missing": ("Incomplete shard set", "Finish the download, then scan again."),
    "header-unreadable": ("Header unreadable", "Download the file again, or remove it."),
    "not-servable": ("Not a model that can be served", "Nothing to do, unless it should be one."),
    "package-incomplete": ("Incomplete package", "Add the files that are missing, then scan again."),
    "drift": ("Router's file changed", "Decide on the Drift page: keep ours, take it, or manage the file by hand."),
    "root-missing": ("Folder missing", "Mount the drive or correct the path, then scan again. Nothing was removed."),
    "root-unreadable": ("Folder unreadable", "Give the worker the right to read it, then scan again."),
    "folder-unreadable": ("Folder unreadable", "Give the worker the right to read it, then scan again."),
    "incomplete": ("File cut short", "Finish the download, then scan again."),
    "file-unreadable": (
        "File unreadable",
        "Restore what it links to, or the right to read it, then scan again; or remove it.",
    ),
    "unsafe-name": ("Name that cannot be used", "Rename it, then scan again."),
    "outside": (
        "Not looked at",
        "Name its folder in QM_BROWSE_ROOTS on that machine, or remove it here. Nothing was removed.",
    ),
    "folder-repeated": ("Folder met twice", "Nothing to do: its files are listed once."),
    "flag-unknown": (
        "Its executable does not know a flag",
        "Update the executable, pin the model to another one, or reset the setting behind the flag.",
    ),
    "duplicate-id": ("Two files with one id", "Rename or move one of them; the id tells them apart until then."),
    "not-served": ("Not served", "See the reason, then scan again."),
    "left-out": ("Left out of the config file", "Mend what the reason names, or have another router serve it."),
    "other-ggml": ("Not a model that can be served", "Remove it, or use the GGUF form of the model."),
    "package-part": ("Part of an audio model", "Nothing to do: the model is served as a whole."),
    "model-folder-part": ("Part of a model folder", "Nothing to do, unless the folder itself should be served."),
    "component-missing": (
        "Component missing",
        "Put such a file into one of the folders and scan again, or pin one.",
    ),
    "component-ambiguous": ("Equal candidates", "Pin one, on the Components page or for this model."),
    "pin-gone": ("Pinned file gone", "Restore the file, or pin another on the Components page."),
    "dropped-encoder": ("Encoder or VAE, not a model", "Nothing to do: it serves other models."),
    "dropped-fastmtp": ("FastMTP head", "Remove it: the full head is in the main file."),
    "component-unknown": ("Not recognised", "Remove it or leave it: nothing here loads it."),
    "adapter": ("Adapter, not a model", "Nothing to do: name it in the settings of a model."),
    "not-a-model": ("Not a model", "Nothing to do: it serves other models, or nothing here loads it."),
    "not-a-model-folder": ("Not a language model folder", "Nothing to do, unless it should be one."),
    "pipeline-component": (
        "Part of a diffusers pipeline",
        "Nothing to do: only single files of a pipeline are served.",
    ),
    "older-snapshot": ("Older snapshot", "Delete it with the hub's own tool to free the space."),
    "inside-package": ("Inside a 3D package", "Nothing to do: the package is served as a whole."),
    "skip-pattern": ("Left out by a pattern", "Change the skip patterns if it should be served."),
}
"""Kind -> title, remedy. A kind that is not here is shown by its slug."""

LISTED_COMPONENTS = ("dropped-encoder", "dropped-fastmtp", "pin-gone")
"""Kinds about files that the Components page has."""
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
    pk: int
    tone: str
    word: str
    shape: str
    object: str
    folder: str
    host: str
    url: str
    title: str
    text: str
    offset: int | None
    remedy: str
    since: datetime
    scan: int | None
    may_wait: bool
    """Can it be acknowledged? What keeps a model from being served stays until it is mended."""
    seen_by: str
    may_operate: bool
    """May who looks at it acknowledge it?"""


def finding_row(finding: Finding, *, may_operate: bool = False) -> FindingRow:
    tone, word, shape = LEVELS.get(finding.level, LEVELS["warning"])
    title, remedy = TEXTS.get(finding.kind, (finding.kind.replace("-", " ").capitalize(), "See the text."))
    on_windows = finding.host.os_family == OsFamily.WINDOWS
    path = PureWindowsPath(finding.path) if on_windows else PurePosixPath(finding.path)
    return FindingRow(
        pk=finding.pk,
        tone=tone,
        word=word,
        shape=shape,
        object=getattr(finding, "object_name", "") or path.name or finding.path,
        folder=path.parent.as_posix(),
        host=str(finding.host),
        url=_address(finding),
        title=title,
        text=_below_title(finding.text),
        offset=finding.offset,
        remedy=remedy,
        since=finding.since,
        scan=finding.first_scan_id,
        may_wait=finding.level != "error",
        seen_by=finding.seen_by if finding.seen_text == finding.text else "",
        may_operate=may_operate,
    )


CSV_COLUMNS = ("severity", "kind", "what", "text", "path", "host", "how to fix", "since")


def csv_row(finding: Finding) -> list[str]:
    """The cells of CSV_COLUMNS. A cell that a spreadsheet would run as a formula is marked as text."""
    row = finding_row(finding)
    since = finding.since.isoformat(timespec="seconds")
    cells = (row.word, finding.kind, row.title, finding.text, finding.path, finding.host.slug, row.remedy, since)
    return [safe_cell(cell) for cell in cells]


def _address(finding: Finding) -> str:
    """Where it can be mended or looked at; "" where only the disk can."""
    if finding.row_id:
        page = "models:model-files" if finding.kind.startswith("component-") else "models:model-show"
        return reverse(page, args=[finding.row_id])
    if finding.kind in LISTED_COMPONENTS:
        name = PurePosixPath(finding.path.replace("\\", "/")).name
        return f"{reverse('models:component-list')}?{urlencode({'q': name})}"
    if finding.kind == "drift":
        return reverse("models:config-drift", args=[finding.host.slug])
    if finding.kind.startswith("root-"):
        return reverse("models:host-folders", args=[finding.host.slug])
    return ""


def _below_title(text: str) -> str:
    for start in _SAID_BY_TITLE:
        text = text.removeprefix(start)
    return text.replace("this models folder", "it", 1) if text.startswith("this models folder") else text
