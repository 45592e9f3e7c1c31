"""What a launcher must add to a command just before it starts the process (classes.md 4 and 11.4).

audio.cpp takes its model through a JSON file, and SAM's engine returns garbage on a GPU; neither can be said in a
config that other programs read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from gpus_app.core.errors import UsageError

CONFIG_FLAG = "--config"
CPU_FLAG = "--no-gpu"
_NAME_LIMIT = 80
_FNV_OFFSET = 0x811C9DC5
_FNV_PRIME = 0x01000193


def config_file_name(model_id: str) -> str:
    """Name of the JSON file for one model: its id made safe, and a hash of the id as it was."""
    clean = re.sub(r"[^A-Za-z0-9._-]", "_", model_id).strip("._") or "model"
    return f"{clean[:_NAME_LIMIT]}-{_fnv1a(model_id.encode()):08x}.json"


def _fnv1a(data: bytes) -> int:
    value = _FNV_OFFSET
    for byte in data:
        value = (value ^ byte) * _FNV_PRIME & 0xFFFFFFFF
    return value


def config_json(model_id: str, block: Mapping[str, object]) -> dict[str, object]:
    """Content of that file: one model, loaded at once, never evicted by the engine's own model manager."""
    model: dict[str, object] = {"id": model_id, "family": block.get("family", ""), "path": block.get("path", "")}
    if block.get("task"):
        model["task"] = block["task"]
    if block.get("sessionOptions"):
        model["session_options"] = block["sessionOptions"]
    return {
        "lazy_load": False,
        "max_loaded_models": 1,
        "idle_unload_ms": 0,
        "min_free_memory_mb": 0,
        "models": [model],
    }


def spawn_arguments(argv: Sequence[str], has_audio_block: bool, config_path: str | None) -> list[str]:
    """Arguments to append. `config_path` is the written JSON file, None when writing failed.

    Raises UsageError when the file is needed and missing: the engine would start with no model.
    """
    added: list[str] = []
    if any(argument.lower().endswith(".ggml") for argument in argv) and CPU_FLAG not in argv:
        added.append(CPU_FLAG)
    if has_audio_block and not any(item == CONFIG_FLAG or item.startswith(f"{CONFIG_FLAG}=") for item in argv):
        if config_path is None:
            raise UsageError("the audio.cpp configuration file could not be written")
        added += [CONFIG_FLAG, config_path]
    return added
