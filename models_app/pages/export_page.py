"""The files that a host can be exported as: what each is, where it is to be had."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.urls import reverse

from gpus_app.models import Host
from models_app.core.settings_files.files import GENERATE_FILE_NAME
from models_app.core.state.sidecar import FILE_NAME
from models_app.selectors.host_files import TABLE_NAME

_ABOUT = {
    GENERATE_FILE_NAME: "Folders, groups, pinned components and rules, as people write them.",
    FILE_NAME: "Settings, overrides and variants of models, backends. Read together with the above.",
    TABLE_NAME: "Every override, one line a setting, for a spreadsheet.",
}
_ROUTERS_FILE = "The newest text for the router."


@dataclass(frozen=True, slots=True)
class ExportLine:
    name: str
    about: str
    url: str


def export_lines(host: Host, names: Iterable[str]) -> list[ExportLine]:
    """One line a file, in the order of the export."""
    return [
        ExportLine(name, _ABOUT.get(name, _ROUTERS_FILE), reverse("models:export-file", args=[host.slug, name]))
        for name in names
    ]


def archive_name(host: Host) -> str:
    return f"quartermaster-{host.slug}.zip"
