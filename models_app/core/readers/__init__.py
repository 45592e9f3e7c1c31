"""Readers of model files: bytes in, a Header or a HeaderError out. A new format is a module and a line in READERS.

The parsers are loaded when the first file is read: who finds all facts in the cache, as the spawn guard does, needs
none of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from models_app.core.readers.reading import READERS, Reader, read_header, read_shard_set

__all__ = ["READERS", "Reader", "read_header", "read_shard_set"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from models_app.core.readers import reading

    return getattr(reading, name)
