"""Recordings and latents for tests."""

from __future__ import annotations

import struct


def wav(
    *,
    seconds: float = 1.0,
    rate: int = 24_000,
    channels: int = 1,
    bits: int = 16,
    encoding: int = 1,
    extensible: bool = False,
    before: bytes = b"",
) -> bytes:
    """A WAV file of a low hum. `before`: chunks that stand before the sound."""
    width = channels * bits // 8
    body = b"\x10\x01" * (round(seconds * rate) * width // 2 + 1)
    body = body[: round(seconds * rate) * width]
    head = struct.pack("<HHIIHH", 0xFFFE if extensible else encoding, channels, rate, rate * width, width, bits)
    if extensible:
        head += struct.pack("<HHI", 22, bits, 0) + struct.pack("<H", encoding) + b"\0" * 14
    chunks = b"fmt " + struct.pack("<I", len(head)) + head + before + b"data" + struct.pack("<I", len(body)) + body
    return b"RIFF" + struct.pack("<I", 4 + len(chunks)) + b"WAVE" + chunks


def latents(width: int = 2048, *, frames: int = 50) -> tuple[bytes, bytes]:
    """A speaker file and its codes."""
    return struct.pack(f"<{width}f", *[0.25] * width), b"\x5a" * (22 * frames)
