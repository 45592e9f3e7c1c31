"""TRELLIS.2 packages (image to 3D) and the two companions that they need (discovery.md 6.2)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from models_app.core.catalog import FileEntry
from models_app.core.discovery.ladder import BIREFNET
from models_app.core.discovery.roots import Root

PIPELINE = "pipeline.json"
CHECKPOINTS = "ckpts"
DINO = "dino"


@dataclass(frozen=True, slots=True)
class Package:
    """One package folder. Its size is that of all files below it."""

    path: str
    size_bytes: int
    root: Root


@dataclass(frozen=True, slots=True)
class Companions:
    """Folder of the DINOv3 encoder (required) and file of BiRefNet (optional), "" when not found."""

    dino: str = ""
    birefnet: str = ""


def packages(root: Root, folders: Mapping[str, list[FileEntry]], package_bytes: Mapping[str, int]) -> list[Package]:
    """Folders that hold a non-empty `pipeline.json` and a `ckpts` folder with safetensors."""
    return [
        Package(folder, package_bytes.get(folder, 0), root)
        for folder, entries in folders.items()
        if any(os.path.basename(entry.path) == PIPELINE and entry.size_bytes > 0 for entry in entries)
        and any(
            entry.path.lower().endswith(".safetensors") for entry in folders.get(os.path.join(folder, CHECKPOINTS), ())
        )
    ]


def companions(models_root: str, package: str, files: Iterable[FileEntry]) -> Companions:
    """Look one level deep in the package, its parent, then each direct sub-folder of the models root.

    The last step covers owner/repository layouts, where the encoder belongs to another owner. First hit wins, for each
    companion on its own.
    """
    tree = _Tree(files)
    places = [package, os.path.dirname(package), *tree.subfolders(models_root)]
    return Companions(
        dino=next((hit for place in places if (hit := tree.dino_in(place))), ""),
        birefnet=next((hit for place in places if (hit := tree.birefnet_in(place))), ""),
    )


class _Tree:
    """Direct children of folders, from a flat list of files."""

    def __init__(self, files: Iterable[FileEntry]) -> None:
        self._files: dict[str, list[FileEntry]] = {}
        self._folders: dict[str, set[str]] = {}
        for entry in files:
            folder = os.path.dirname(entry.path)
            self._files.setdefault(folder, []).append(entry)
            while folder and (parent := os.path.dirname(folder)) != folder:
                known = self._folders.setdefault(parent, set())
                if folder in known:
                    break
                known.add(folder)
                folder = parent

    def subfolders(self, folder: str) -> list[str]:
        return sorted(self._folders.get(folder, ()))

    def dino_in(self, place: str) -> str:
        for folder in self.subfolders(place):
            filled = {os.path.basename(entry.path) for entry in self._files.get(folder, ()) if entry.size_bytes > 0}
            if DINO in os.path.basename(folder).lower() and {"model.safetensors", "config.json"} <= filled:
                return folder
        return ""

    def birefnet_in(self, place: str) -> str:
        named = [path for path in self._ggufs(place) if BIREFNET in os.path.basename(path).lower()]
        for folder in self.subfolders(place):
            inside = self._ggufs(folder)
            if BIREFNET in os.path.basename(folder).lower():
                named += inside[:1]
        return named[0] if named else ""

    def _ggufs(self, folder: str) -> list[str]:
        return sorted(entry.path for entry in self._files.get(folder, ()) if entry.path.lower().endswith(".gguf"))
