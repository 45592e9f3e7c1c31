"""Voices for qwentts.cpp before they are sent, and requests that are worth sending (qwentts.md 3, 5).

The server checks little: a wrong width fails only when it speaks, and a quote in a name breaks its answer.
"""

from __future__ import annotations

import array
import math
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from models_app.core.classes import qwentts
from models_app.core.classes.wav import FLOAT, INTEGER, Wav, WavError, read_wav
from models_app.core.errors import QuartermasterError

MAX_WAV_BYTES = 20 << 20
MAX_SPK_BYTES = 1 << 16
MAX_RVQ_BYTES = 1 << 20
MAX_REFERENCE_SECONDS = 300.0
"""Text and reference share 4,096 positions, 12.5 of them a second."""
MAX_REFERENCE_CHARACTERS = 2000
MAX_NAME_CHARACTERS = 64
MAX_TEXT_CHARACTERS = 1000
"""Of an audition."""
MAX_FRAMES = 2048
"""What a server speaks at most unless it is told otherwise; we ask for no more."""
RATE, SAMPLE_BYTES = 24_000, 2
SAMPLES_PER_FRAME = 1920
"""Also the shortest sound at 24 kHz that a voice can be extracted from."""
MAX_SPEECH_BYTES = 4096 + MAX_FRAMES * SAMPLES_PER_FRAME * SAMPLE_BYTES
WIDTHS = {1024: "0.6B", 2048: "1.7B"}
"""Width of a talker -> the size of its model."""
SPEECH_PATH = "/v1/audio/speech"
_NAME = re.compile(r"[A-Za-z0-9_-](?:[A-Za-z0-9_ -]*[A-Za-z0-9_-])?")
_WAV_FORMS = {(INTEGER, 16), (INTEGER, 24), (FLOAT, 32)}


class VoiceError(QuartermasterError):
    """A file or a field that no server would take; `field` is the one of the form."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


@dataclass(frozen=True, slots=True)
class Recording:
    """A voice that was checked. `width` is 0 where any base model takes it."""

    sha256: str
    size_bytes: int
    seconds: float
    width: int = 0


def check_name(name: str) -> str:
    """The name as it is stored. Raises VoiceError."""
    name = name.strip()
    if not name or len(name) > MAX_NAME_CHARACTERS or not _NAME.fullmatch(name):
        allowed = f"1 to {MAX_NAME_CHARACTERS} letters without accents, digits, blanks, - and _"
        raise VoiceError("name", f"A name is made of {allowed}: the server would break its answers over others.")
    return name


def check_wav(data: bytes) -> Recording:
    """A recording that a server extracts a voice from. Raises VoiceError."""
    if len(data) > MAX_WAV_BYTES:
        raise VoiceError("wav", f"A recording may have {MAX_WAV_BYTES >> 20} MiB; this one has more.")
    try:
        wav = read_wav(data)
    except WavError as error:
        raise VoiceError("wav", f"This file cannot be used: {error}.") from error
    if (wav.encoding, wav.bits) not in _WAV_FORMS:
        raise VoiceError("wav", f"It holds {wav.encoding_name}. Servers read PCM of 16 or 24 bits and 32-bit float.")
    if wav.channels > 2:
        raise VoiceError("wav", f"It has {wav.channels} channels. Servers take one or two.")
    if wav.cut:
        raise VoiceError("wav", "It was cut off: its head speaks of more sound than there is. Upload it again.")
    if wav.frames * RATE < SAMPLES_PER_FRAME * wav.rate:
        raise VoiceError("wav", f"It is too short: {wav.seconds:.2f} s. A voice takes some seconds, 0.08 at the least.")
    if wav.seconds > MAX_REFERENCE_SECONDS:
        raise VoiceError("wav", f"It lasts {wav.seconds:,.0f} s; {MAX_REFERENCE_SECONDS:,.0f} s at most fit a model.")
    return Recording(sha256(data).hexdigest(), len(data), wav.seconds)


def check_latents(spk: bytes, rvq: bytes) -> Recording:
    """A speaker file and its codes, as `qwen-codec` writes them. Raises VoiceError."""
    width = next((width for width in WIDTHS if qwentts.speaker_bytes(width) == len(spk)), 0)
    if not width:
        sizes = " or ".join(f"{qwentts.speaker_bytes(width):,} ({name})" for width, name in WIDTHS.items())
        raise VoiceError("spk", f"A speaker file has {sizes} bytes; this one has {len(spk):,}.")
    if not _all_finite(spk):
        raise VoiceError("spk", "It holds values that are no numbers: it is no speaker file.")
    frames = qwentts.rvq_frames(len(rvq)) if len(rvq) <= MAX_RVQ_BYTES else None
    if frames is None:
        raise VoiceError("rvq", f"{len(rvq):,} bytes are no file of codes: those have 22 bytes for each 0.08 s.")
    seconds = frames * qwentts.FRAME_SECONDS
    if seconds > MAX_REFERENCE_SECONDS:
        raise VoiceError("rvq", f"It lasts {seconds:,.0f} s; {MAX_REFERENCE_SECONDS:,.0f} s at most fit a model.")
    return Recording(sha256(spk + rvq).hexdigest(), len(spk) + len(rvq), seconds, width)


def _all_finite(data: bytes) -> bool:
    values = array.array("f")
    values.frombytes(data)
    if sys.byteorder == "big":
        values.byteswap()
    return all(map(math.isfinite, values))


def fits(width: int, model_type: str, model_width: int) -> bool:
    """May a voice of this width be registered with a model? What is not known of a model does not stand in the way."""
    right_type = model_type in ("", qwentts.BASE)
    return right_type and (not width or not model_width or width == model_width)


def check_speech(data: bytes) -> Wav:
    """What a server answered with. Raises VoiceError where it is no sound, none of it, or cut off."""
    if not data:
        raise VoiceError("", "the server answered with no sound at all: its log says why")
    try:
        wav = read_wav(data)
    except WavError as error:
        raise VoiceError("", f"the server answered with something else than a WAV: {error}") from error
    if wav.cut:
        raise VoiceError("", f"the sound was cut off after {wav.seconds:.1f} s: the server stopped in the middle")
    if not wav.frames:
        raise VoiceError("", "the server answered with a WAV without any sound in it")
    return wav


def request_problem(body: Mapping[str, Any], model_type: str, listed: Mapping[str, str]) -> str:
    """Why a server would refuse a request, as far as is known here; "" for nothing. `listed`: name -> kind."""
    if not model_type:
        return ""
    registered = [name for name, kind in listed.items() if kind == "registered"]
    voice = str(body.get("voice", ""))
    if model_type == qwentts.CUSTOM_VOICE and listed and voice.lower() not in {name.lower() for name in listed}:
        return f"This model has no speaker {voice}." if voice else "Choose one of the model's speakers."
    problem = qwentts.speech_problem(body, model_type, registered)
    return f"{problem[:1].upper()}{problem[1:]}." if problem else ""
