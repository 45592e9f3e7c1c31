"""The head of a WAV file: what it says of the sound, and whether all of that is there.

Chunks are read as qwentts.cpp does: `fmt ` before `data`, unknown ones passed over, an odd length padded.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from models_app.core.errors import QuartermasterError

_RIFF_HEAD, _CHUNK_HEAD = struct.Struct("<4sI4s"), struct.Struct("<4sI")
_FORMAT = struct.Struct("<HHIIHH")
_MOST_CHUNKS = 1000
_EXTENSIBLE = 0xFFFE
_SUBFORMAT_AT = 24
INTEGER, FLOAT = 1, 3
_NAMES = {2: "ADPCM", 6: "A-law", 7: "mu-law", 0x55: "MP3"}


class WavError(QuartermasterError):
    """Not a WAV file, in words for whoever gave it."""


@dataclass(frozen=True, slots=True)
class Wav:
    """`encoding` is INTEGER, FLOAT or another tag; `frames` are samples per channel that are there."""

    encoding: int
    channels: int
    rate: int
    bits: int
    frames: int
    cut: bool
    """Its head speaks of more sound than is there."""

    @property
    def seconds(self) -> float:
        return self.frames / self.rate

    @property
    def encoding_name(self) -> str:
        plain = {INTEGER: "PCM", FLOAT: "float"}.get(self.encoding) or _NAMES.get(self.encoding)
        return f"{self.bits}-bit {plain}" if plain else f"encoding {self.encoding}"


def read_wav(data: bytes) -> Wav:
    """The facts of a WAV file that is wholly in memory. Raises WavError."""
    if len(data) < _RIFF_HEAD.size:
        raise WavError("it is too short for a WAV file")
    riff, _, wave = _RIFF_HEAD.unpack_from(data)
    if (riff, wave) != (b"RIFF", b"WAVE"):
        raise WavError(f"it is no WAV file{_looks_like(data)}")
    at, form = _RIFF_HEAD.size, None
    for _ in range(_MOST_CHUNKS):
        if at + _CHUNK_HEAD.size > len(data):
            break
        name, size = _CHUNK_HEAD.unpack_from(data, at)
        at += _CHUNK_HEAD.size
        if name == b"fmt " and size >= _FORMAT.size and at + _FORMAT.size <= len(data):
            form = _form(data, at, size)
        elif name == b"data" and form is not None:
            return _wav(form, size, len(data) - at)
        at += size + (size & 1)
    raise WavError("its head names no sound" if form is not None else "its head does not say how the sound is stored")


def _form(data: bytes, at: int, size: int) -> tuple[int, int, int, int]:
    """(encoding, channels, rate, bits)"""
    encoding, channels, rate, _, _, bits = _FORMAT.unpack_from(data, at)
    if encoding == _EXTENSIBLE and size >= _SUBFORMAT_AT + 16 and at + _SUBFORMAT_AT + 2 <= len(data):
        encoding = int.from_bytes(data[at + _SUBFORMAT_AT : at + _SUBFORMAT_AT + 2], "little")
    return encoding, channels, rate, bits


def _wav(form: tuple[int, int, int, int], said_bytes: int, there_bytes: int) -> Wav:
    encoding, channels, rate, bits = form
    width = channels * bits // 8
    if not width or not rate:
        raise WavError("its head says that it has no channels, no bits or no rate")
    return Wav(encoding, channels, rate, bits, min(said_bytes, there_bytes) // width, said_bytes > there_bytes)


def _looks_like(data: bytes) -> str:
    """What it may be instead: people rename files."""
    if data[:3] == b"ID3" or (data[0] == 0xFF and data[1] & 0xE0 == 0xE0):
        return ", but an MP3"
    kinds = {b"fLaC": "a FLAC", b"OggS": "an Ogg file", b"RF64": "a WAV of more than 4 GiB"}
    if data[4:8] == b"ftyp":
        return ", but an MP4"
    return f", but {kinds[data[:4]]}" if data[:4] in kinds else ""
