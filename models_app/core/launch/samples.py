"""The smallest files that engines take: a short tone as WAV, a dot on white as PNG. Made here, so none is shipped."""

from __future__ import annotations

import math
import struct
import zlib

SAMPLE_RATE_HZ = 16_000
TONE_HZ = 440
_VOLUME = 8_000
_PNG = b"\x89PNG\r\n\x1a\n"
_EIGHT_BIT_RGB = (8, 2, 0, 0, 0)


def tone_wav(seconds: float = 1.0) -> bytes:
    """A quiet tone: mono, 16 bit, at the rate that speech recognisers work with."""
    count = int(SAMPLE_RATE_HZ * seconds)
    step = 2 * math.pi * TONE_HZ / SAMPLE_RATE_HZ
    data = struct.pack(f"<{count}h", *(int(_VOLUME * math.sin(step * number)) for number in range(count)))
    layout = struct.pack("<IHHIIHH", 16, 1, 1, SAMPLE_RATE_HZ, SAMPLE_RATE_HZ * 2, 2, 16)
    body = b"WAVEfmt " + layout + b"data" + struct.pack("<I", len(data)) + data
    return b"RIFF" + struct.pack("<I", len(body)) + body


def dot_png(side: int = 64) -> bytes:
    """A dark square in the middle of a white one: `side` pixels wide, the inner one half of that."""
    middle = range(side // 4, side - side // 4)
    plain = b"\0" + b"\xff\xff\xff" * side
    dotted = b"\0" + b"".join(b"\x20\x40\x80" if column in middle else b"\xff\xff\xff" for column in range(side))
    pixels = b"".join(dotted if row in middle else plain for row in range(side))
    header = struct.pack(">II5B", side, side, *_EIGHT_BIT_RGB)
    return _PNG + _chunk(b"IHDR", header) + _chunk(b"IDAT", zlib.compress(pixels, 9)) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
