"""Paths as command-line text (launch.md 1.1), and the folders of LoRA adapters (3.10)."""

from __future__ import annotations

import re
from collections.abc import Mapping

from models_app.core.launch.tokens import quote
from models_app.core.settings import Settings

_DRIVE = re.compile(r"[A-Za-z]:")
_CONTROL = re.compile(r"[\x00-\x1f\x7f\x85\u2028\u2029]")


def forward(path: str) -> str:
    return path.replace("\\", "/")


def raw_path(path: str) -> str:
    """Slashes forward, quoted only where splitting would break the path."""
    return quote(forward(path))


def argument_path(path: str) -> str:
    """Trimmed, slashes forward, quoted if needed; blank stays blank, and its flag is left out."""
    path = forward(path.strip())
    return quote(path) if path else ""


def quoted_path(path: str) -> str:
    """Trimmed, slashes forward, always in double quotes; quotes inside are dropped."""
    return '"' + forward(path.strip()).replace('"', "") + '"'


def unlaunchable(text: str) -> str | None:
    """The first control character or line separator of a path: no config line can carry it. None for a sound path."""
    found = _CONTROL.search(text)
    return found.group() if found else None


def is_absolute(path: str) -> bool:
    """By hand, so that a file written on Windows reads the same on Linux: `/…`, `//server/share`, `D:…`."""
    path = forward(path.strip())
    return path.startswith("/") or bool(_DRIVE.match(path))


def folder_of(path: str) -> str:
    """The text before the last slash; blank when there is none, or when it is the first character."""
    path = forward(path)
    return path[: max(path.rfind("/"), 0)]


def join_lora(folder: str, path: str) -> str:
    """The full path of an adapter; without a folder the bare path."""
    path = forward(path.strip())
    if is_absolute(path) or not folder:
        return path
    return forward(folder).rstrip("/") + "/" + path.lstrip("/")


def _first_set(*folders: str) -> str:
    return next((folder.strip() for folder in folders if folder.strip()), "")


def llm_lora_dir(settings: Settings, model_path: str) -> str:
    """Where llama-server's adapters are looked for: `loraDirs["llm"]`, `loraDir`, the model's own folder."""
    return _first_set(_entry(settings.lora_dirs, "llm"), settings.lora_dir, folder_of(model_path))


def diffusion_lora_dir(settings: Settings, own: str, category: str, model_path: str) -> str:
    """The folder of `--lora-model-dir`: the model's setting, its category's, the fleet's, its own folder."""
    return _first_set(own, _entry(settings.lora_dirs, category), settings.lora_dir, folder_of(model_path))


def _entry(folders: Mapping[str, str], category: str) -> str:
    return folders.get(category, "")
