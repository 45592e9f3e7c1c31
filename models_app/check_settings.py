"""The section of a host's settings about checks against llama.cpp: the program, and what its results may change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any

from gpus_app.models import Host
from gpus_app.selectors import section
from gpus_app.services import is_absolute
from models_app.core.launch.fit_params import PROGRAM
from quartermaster_site.errors import Refused

SECTION = "checks"
PROGRAM_KEY = "fitParams"
EXTRA_KEY = "measuredExtra"


@dataclass(frozen=True, slots=True)
class CheckSettings:
    """The section as pages show it."""

    program: str
    """Path of llama-fit-params on the host; blank: the one beside the server."""
    keeps_extra_free: bool
    """Whether plans keep free what was measured beyond their projection."""
    version: int
    changed_by: str
    changed_at: datetime | None


def check_settings_of(host: Host) -> CheckSettings:
    row = section(host, SECTION)
    return CheckSettings(
        program=str(row.values.get(PROGRAM_KEY, "")),
        keeps_extra_free=bool(row.values.get(EXTRA_KEY, True)),
        version=row.version,
        changed_by=str(row.changed_by or "") if row.version else "",
        changed_at=row.changed_at if row.version else None,
    )


def cleaned(values: Mapping[str, Any], os_family: str) -> dict[str, Any]:
    """What is stored: nothing for a default. Raises Refused."""
    path = str(values.get(PROGRAM_KEY) or "").strip()
    kept: dict[str, Any] = {}
    if path:
        name = (PureWindowsPath if os_family == "windows" else PurePosixPath)(path).name
        if not is_absolute(path, os_family) or len(path) > 1024 or not path.isprintable():
            raise _refused("Write the whole path of the program.")
        if not name.startswith(PROGRAM):
            raise _refused(f"The name of the program must begin with {PROGRAM}.")
        kept[PROGRAM_KEY] = path
    if not values.get(EXTRA_KEY, True):
        kept[EXTRA_KEY] = False
    return kept


def _refused(text: str) -> Refused:
    return Refused(text, fields={PROGRAM_KEY: text})
