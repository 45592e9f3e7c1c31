"""Readers of model files: bytes in, a Header or a HeaderError out. A new format is a module and a line in READERS."""

from models_app.core.readers.reading import READERS, Reader, read_header, read_shard_set, shard_siblings

__all__ = ["READERS", "Reader", "read_header", "read_shard_set", "shard_siblings"]
