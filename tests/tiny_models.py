"""Small model files for tests."""

from __future__ import annotations

import struct
from pathlib import Path

STRING, UINT32 = 8, 4


def _text(value: str) -> bytes:
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def tiny_gguf(path: Path, name: str, architecture: str = "llama") -> None:
    """A GGUF of one tensor with the keys of a small chat model; loads nowhere, reads everywhere."""
    numbers = {
        "block_count": 2,
        "context_length": 4096,
        "embedding_length": 64,
        "attention.head_count": 4,
        "attention.head_count_kv": 2,
        "feed_forward_length": 128,
    }
    pairs = [_text("general.architecture") + struct.pack("<I", STRING) + _text(architecture)]
    pairs.append(_text("general.name") + struct.pack("<I", STRING) + _text(name))
    for key, number in numbers.items():
        pairs.append(_text(f"{architecture}.{key}") + struct.pack("<II", UINT32, number))
    tensor = _text("token_embd.weight") + struct.pack("<IQQIQ", 2, 64, 32, 0, 0)
    head = b"GGUF" + struct.pack("<IQQ", 3, 1, len(pairs)) + b"".join(pairs) + tensor
    path.write_bytes(head + b"\0" * (-len(head) % 32) + b"\0" * (64 * 32 * 4))
