"""Speech output by the two older engines, qwentts.cpp and TTS.cpp (classes.md 12)."""

from __future__ import annotations

import re

from models_app.core.catalog import Header
from models_app.core.classes.qwentts import KV_MIB_PER_SLOT
from models_app.core.classes.registry import ModelClass, has_prefix

QWENTTS = "qwentts"
TTSCPP = "ttscpp"
QWENTTS_ARCHITECTURES = ("qwen3-tts", "qwentts")
TTSCPP_ARCHITECTURES = frozenset({"kokoro", "parler-tts", "parler_tts", "parler", "dia", "orpheus"})
KV_SLOT_GIB = KV_MIB_PER_SLOT / 1024
RING_GIB = 0.0078
COMPUTE_GIB = 0.35
VOICES_GIB = 0.12
_TTSCPP_NAME = re.compile(r"kokoro|parler[-_ ]?tts|orpheus", re.ASCII | re.IGNORECASE)


def tts_engine(architecture: str, file_name: str) -> str:
    """`ttscpp`, `qwentts`, or "" for neither. The engine with exact architecture names is asked first."""
    if architecture.strip().lower() in TTSCPP_ARCHITECTURES or _TTSCPP_NAME.search(file_name):
        return TTSCPP
    if has_prefix(architecture, QWENTTS_ARCHITECTURES) or "talker" in file_name.lower():
        return QWENTTS
    return ""


def match(file_name: str, header: Header | None) -> str:
    engine = tts_engine(header.architecture, file_name) if header is not None else ""
    return f"speech model for {engine}" if engine else ""


def qwentts_estimate_gib(talker_gib: float, codec_gib: float, slots: int = 1, voices: bool = False) -> float:
    """Memory of one qwentts server (qwentts.md 6): files, KV and codec ring, compute, voices.

    The server takes a batch below 1 as 1.
    """
    slots = max(1, slots)
    ring = (slots + 1) * RING_GIB
    return talker_gib + codec_gib + slots * KV_SLOT_GIB + ring + COMPUTE_GIB + (VOICES_GIB if voices else 0.0)


TTS = ModelClass("tts", "Speech", "tts", match)
