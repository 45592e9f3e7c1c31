"""A router's config as a document again: the way back from its structure, for conversion and import."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from models_app.core.export.document import Document, Entry, Fields
from models_app.core.launch.tokens import command_lines

TAIL = ("groups", "matrix", "listeners")
CLASS_OF_CAPABILITY = {
    "segmentation": "sam",
    "embedding": "embedding",
    "decision": "decision",
    "voiceClone": "tts",
}
CLASS_OF_OUTPUT = {"video": "video", "3d": "3d", "image": "image"}


def class_of_entry(fields: Fields) -> str:
    """The class of an entry by what it announces; a file does not say it."""
    if fields.get("audiocpp"):
        return "audiocpp"
    capabilities = fields.get("capabilities") or {}
    for key, model_class in CLASS_OF_CAPABILITY.items():
        if capabilities.get(key):
            return model_class
    out = capabilities.get("out") or []
    for modality, model_class in CLASS_OF_OUTPUT.items():
        if modality in out:
            return model_class
    if "audio" in (capabilities.get("in") or []) and "text" in out and "image" not in out:
        return "asr"
    return "tts" if out == ["audio"] else "llm"


def document_of(config: Mapping[str, Any], header: tuple[str, ...] = ()) -> Document:
    """The document of a parsed file in dialect `quartermaster`; comments are lost."""
    models = config.get("models") or {}
    entries = []
    for model_id, fields in models.items():
        rest = {name: value for name, value in fields.items() if name != "cmd"}
        command = tuple(line.strip() for line in command_lines(fields.get("cmd") or ""))
        entries.append(Entry(model_id, command, rest, model_class=class_of_entry(rest), base=model_id))
    top = {name: value for name, value in config.items() if name != "models" and name not in TAIL}
    tail = {name: config[name] for name in TAIL if name in config}
    return Document("quartermaster", header, top=top, models=tuple(entries), tail=tail)
