"""Image to 3D: a TRELLIS.2 package folder (classes.md 5). Discovery recognises it by its files."""

from __future__ import annotations

from models_app.core.catalog import Header
from models_app.core.classes.registry import ModelClass

PACKAGE_FILE = "pipeline.json"


def match(file_name: str, header: Header | None) -> str:
    return "a package folder with pipeline.json" if file_name == PACKAGE_FILE else ""


THREE_D = ModelClass("3d", "3D", "3d", match)
