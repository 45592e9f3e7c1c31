"""Where builds lie and when one counts as installed (classes.md 16.1)."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MANIFEST = ".qm-install.json"
MAX_SEGMENT = 64
MAX_MANIFEST_BYTES = 1 << 16
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")
_TEXTS = ("component", "version", "variant", "exe")


@dataclass(frozen=True, slots=True)
class Build:
    """One installed build. `exe` is absolute; the size is that of the whole folder."""

    component: str
    version: str
    variant: str
    exe: str
    size_bytes: int


def segment(text: str) -> str:
    """One folder name out of any text: it never leaves the folder that it is put in."""
    name = _UNSAFE.sub("_", text)[:MAX_SEGMENT]
    return name if name.strip("._- ") else "unknown"


def install_dir(root: str, component: str, version: str, variant: str) -> str:
    """`<root>/bin/<component>/<version>-<variant>`."""
    return os.path.join(root, "bin", segment(component), segment(f"{segment(version)}-{segment(variant)}"))


def installed_build(folder: str) -> Build | None:
    """The build in a folder: one whose manifest can be read and whose executable is there. None for anything else."""
    manifest = _manifest(Path(folder) / MANIFEST)
    if manifest is None:
        return None
    root = os.path.realpath(folder)
    exe = os.path.realpath(os.path.join(root, manifest["exe"]))
    if not exe.startswith(root + os.sep) or not os.path.isfile(exe):
        return None
    return Build(manifest["component"], manifest["version"], manifest["variant"], exe, folder_bytes(root))


def _manifest(path: Path) -> dict[str, str] | None:
    try:
        with path.open("rb") as stream:
            content: Any = json.loads(stream.read(MAX_MANIFEST_BYTES + 1))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(content, dict) or not all(isinstance(content.get(name), str) for name in _TEXTS):
        return None
    return content if content["exe"] else None


def folder_bytes(folder: str) -> int:
    """Bytes of all files below a folder; links count nothing."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(place, name)
            if not os.path.islink(path):
                total += os.path.getsize(path)
    return total
