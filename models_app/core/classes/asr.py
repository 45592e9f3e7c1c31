"""Transcription by parakeet.cpp (classes.md 13)."""

from __future__ import annotations

import re

from models_app.core.catalog import Header
from models_app.core.classes.registry import ModelClass, has_prefix

ARCHITECTURES = ("parakeet", "fastconformer", "conformer", "nemo-asr")
_NAME = re.compile(r"parakeet|nemotron[-_. 0-9]*(?:asr|speech)", re.ASCII | re.IGNORECASE)


def is_asr_model(architecture: str, file_name: str) -> bool:
    """By architecture, else by name; `nemotron` alone also names text models."""
    return has_prefix(architecture, ARCHITECTURES) or _NAME.search(file_name) is not None


def match(file_name: str, header: Header | None) -> str:
    if header is None or not is_asr_model(header.architecture, file_name):
        return ""
    return "a parakeet-class transcription model"


ASR = ModelClass("asr", "Transcription", "transcribe", match)
