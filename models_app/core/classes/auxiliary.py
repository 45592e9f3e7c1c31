"""GGUF files that are no models: adapters, importance matrices, control vectors, projectors, bare vocabularies.

Their headers say so, and often carry the architecture of the model that they belong to, so they must be told apart
before the language models.
"""

from __future__ import annotations

from models_app.core.catalog import Header

GENERAL_TYPES = {
    "adapter": "a LoRA adapter, not a model",
    "imatrix": "an importance matrix, not a model",
    "mmproj": "a projector, not a model",
    "vocab": "a vocabulary, not a model",
}
ARCHITECTURES = {
    "clip": "a projector, not a model",
    "controlvector": "a control vector, not a model",
    "imatrix": "an importance matrix, not a model",
    "t5encoder": "a text encoder of diffusion models",
    "umt5": "a text encoder of diffusion models",
}


def ignored_reason(header: Header | None) -> str:
    """Why this file is no model of its own, "" when it may be one."""
    if header is None:
        return ""
    by_type = GENERAL_TYPES.get(header.general_type.strip().lower(), "")
    return by_type or ARCHITECTURES.get(header.architecture.strip().lower(), "")
