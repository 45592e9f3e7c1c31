"""The speech server qwentts.cpp: which build has which flag, what it answers, its voices and its memory (qwentts.md).

These rules describe a foreign program: they serve our checks before something is sent, and a stand-in in tests. The
memory of a whole launch is `tts.qwentts_estimate_gib`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

BUILDS = (
    "f3cfa5c",
    "ca0c779",
    "62dec12",
    "7a4c799",
    "73fe0c6",
    "2862be4",
    "8d556c9",
    "37ea692",
    "144a79f",
    "d03ffb9",
    "26dd8ad",
    "7b6ed4f",
    "978fc08",
    "a8a7716",
)
"""Commits that changed the server's surface, oldest first."""


@dataclass(frozen=True, slots=True)
class FlagLife:
    """A flag that came with one build and, perhaps, went with a later one."""

    flag: str
    since: str
    until: str = ""


FIRST_FLAGS = ("--model", "--codec", "--host", "--port", "--lang", "--no-fa", "--clamp-fp16", "--help", "-h")
"""In every build: also what may be offered while no `--help` was read."""
LATER_FLAGS = (
    FlagLife("--alias", "8d556c9"),
    FlagLife("--max-batch", "37ea692"),
    FlagLife("--codec-chunk-dur", "144a79f"),
    FlagLife("--codec-left-dur", "144a79f", "d03ffb9"),
    FlagLife("--codec-fused", "26dd8ad", "7b6ed4f"),
)

BASE, CUSTOM_VOICE, VOICE_DESIGN = "base", "custom_voice", "voice_design"
MODEL_TYPES = (BASE, CUSTOM_VOICE, VOICE_DESIGN)
SPEAKERS = ("serena", "vivian", "uncle_fu", "ryan", "aiden", "ono_anna", "sohee", "eric", "dylan")
"""Voices that a custom-voice model brings along. Their look-up ignores case."""

PCM, WAV = "pcm", "wav"
OK, BAD_REQUEST, NOT_FOUND, ENGINE_FAILED = 200, 400, 404, 502
_REFUSED_BY_ENGINE = (-1, -2)

KV_MIB_PER_SLOT = 896
"""28 layers of 8 heads, width 128, keys and values in float32, for 4,096 positions; the same for both sizes."""
RING_MIB = 8
"""One set of the codec's ring buffers. There is one set more than slots, for staging."""

_CODE_BITS, _CODEBOOKS = 11, 16
FRAME_SECONDS = 0.08


def has_flag(build: str, flag: str) -> bool:
    """Does this build know the flag? A build that is not in the list has only what every build has."""
    if flag in FIRST_FLAGS:
        return True
    life = next((life for life in LATER_FLAGS if life.flag == flag), None)
    if life is None or build not in BUILDS:
        return False
    age = BUILDS.index(build)
    return BUILDS.index(life.since) <= age and (not life.until or age < BUILDS.index(life.until))


def memory_mib(max_batch: int) -> tuple[int, int]:
    """MiB of the talker's KV and of the codec's ring. The server takes a batch below 1 as 1."""
    slots = max(1, max_batch)
    return KV_MIB_PER_SLOT * slots, RING_MIB * (slots + 1)


def rvq_frames(size_bytes: int) -> int | None:
    """Frames in a file of codes, 11 bits each in 16 codebooks; None for a length that no such file has."""
    codes = size_bytes * 8 // _CODE_BITS
    return codes // _CODEBOOKS if codes > 0 and codes % _CODEBOOKS == 0 else None


def speaker_bytes(width: int) -> int:
    """Size of a speaker file: one float32 vector as wide as the talker."""
    return width * 4


@dataclass(frozen=True, slots=True)
class _Domain:
    """The numbers that one field of a request may have."""

    least: float
    inclusive: bool = True
    most: float | None = None
    whole: bool = False

    def admits(self, value: Any) -> bool:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        if self.whole and not float(value).is_integer():
            return False
        above = value >= self.least if self.inclusive else value > self.least
        return above and (self.most is None or value <= self.most)


SAMPLING = {
    "seed": _Domain(float("-inf"), whole=True),
    "max_new_tokens": _Domain(1, whole=True),
    "top_k": _Domain(0, whole=True),
    "temperature": _Domain(0),
    "top_p": _Domain(0, inclusive=False, most=1),
    "repetition_penalty": _Domain(0, inclusive=False),
    "speed": _Domain(float("-inf")),
}
"""Fields of a speech request that are numbers. `speed` is read and has no effect."""


def speech_problem(body: Mapping[str, Any], model_type: str, registered: Collection[str]) -> str:
    """Why a speech request would be refused or fail, "" when it would be answered.

    Worth asking before sending: with raw audio the server answers 200 and nothing, whatever went wrong.
    """
    if not isinstance(text := body.get("input"), str) or not text:
        return "'input' must be a text that is not empty"
    if _text(body, "response_format", PCM) not in (PCM, WAV):
        return "'response_format' must be pcm or wav"
    for field, domain in SAMPLING.items():
        if field in body and not domain.admits(body[field]):
            return f"'{field}' is out of domain"
    return _voice_problem(_text(body, "voice"), _text(body, "instructions"), model_type, registered)


def _voice_problem(voice: str, instructions: str, model_type: str, registered: Collection[str]) -> str:
    known = voice in registered
    if model_type == BASE:
        if instructions:
            return "a base model takes no instructions"
        return "" if known or not voice else f"there is no voice {voice}"
    if known:
        return "only a base model speaks with a registered voice"
    if model_type == VOICE_DESIGN:
        return "" if instructions else "a voice-design model needs instructions"
    return "" if voice else "a custom-voice model needs one of its speakers"


def speech_status(body: Mapping[str, Any], model_type: str, registered: Collection[str]) -> int:
    """The HTTP status of a speech request."""
    if speech_problem(body, model_type, registered):
        return BAD_REQUEST
    if model_type == CUSTOM_VOICE and _text(body, "voice").lower() not in SPEAKERS:
        return failure_status(_text(body, "response_format", PCM), -3)
    return OK


def failure_status(response_format: str, engine_status: int) -> int:
    """The answer when the engine fails. Raw audio has begun by then: a success with nothing in it."""
    if response_format == PCM:
        return OK
    return BAD_REQUEST if engine_status in _REFUSED_BY_ENGINE else ENGINE_FAILED


def registration_status(fields: Collection[str]) -> int:
    """A registration needs a name and either one recording or both latents."""
    given = set(fields) & {"wav_b64", "spk_b64", "rvq_b64"}
    complete = given in ({"wav_b64"}, {"spk_b64", "rvq_b64"})
    return OK if "name" in fields and complete else BAD_REQUEST


def deletion_status(name: str, registered: Collection[str]) -> int:
    """Only registered voices can be deleted; the model's own speakers stay."""
    return OK if name in registered else NOT_FOUND


def _text(body: Mapping[str, Any], field: str, default: str = "") -> str:
    """A text field; anything else counts as absent."""
    value = body.get(field)
    return value if isinstance(value, str) else default
