"""Fields of a speech model on qwentts.cpp: one per flag of its server (qwentts.md 1.1, 2).

The model, its codec, address and port are not among them: they come from the file, its pairing and the router.
"""

from __future__ import annotations

from models_app.core.fields.choices import ON_OFF
from models_app.core.fields.field import CHOICE, INTEGER, NUMBER, SWITCH, TEXT, Field


def _flag(flag: str, key: str, kind: str, label: str, text: str, **more: object) -> Field:
    return Field(
        key=key,
        kind=kind,
        flag=flag,
        group="speech",
        label=label,
        help=text,
        classes=("tts",),
        backends=("tts",),
        **more,  # type: ignore[arg-type]
    )


VOICES_FLAG = "--voices-dir"
"""No published build has it; a patched one reads and keeps voices in a folder."""

SPEECH_FIELDS = (
    _flag(
        "--lang",
        "ttsLang",
        TEXT,
        "Language",
        "Such as english or chinese; an unknown one fails each request, not the start. Blank: auto.",
        max_length=32,
    ),
    _flag(
        "--max-batch",
        "ttsMaxBatch",
        INTEGER,
        "Requests side by side",
        "Each takes 904 MiB more; further ones wait. Blank: 1.",
        minimum=1,
        maximum=64,
    ),
    _flag(
        "--codec-chunk-dur",
        "ttsCodecChunkDur",
        NUMBER,
        "Codec chunk",
        "How much is decoded at once, WAV answers only: less takes less memory, and seams appear. Blank: 24.",
        minimum=0,
        above_minimum=True,
        maximum=3600,
        unit="s",
    ),
    _flag(
        "--codec-left-dur",
        "ttsCodecLeftDur",
        NUMBER,
        "Codec left context",
        "Sound before each chunk that is decoded with it. Blank: 2.",
        minimum=0,
        above_minimum=True,
        maximum=3600,
        unit="s",
    ),
    _flag(
        "--codec-fused",
        "ttsCodecFused",
        SWITCH,
        "Fused codec",
        "Streams with less delay, one request at a time; costs throughput.",
    ),
    _flag("--no-fa", "ttsNoFa", SWITCH, "No flash attention", "Only GPU builds have it on."),
    _flag("--clamp-fp16", "ttsClampFp16", SWITCH, "Clamp to FP16", "Keeps hidden states within the range of FP16."),
    _flag(
        "--alias",
        "ttsAlias",
        TEXT,
        "Name of its own",
        "What the server calls itself in its list of models. Blank: the file's name.",
        max_length=128,
    ),
    _flag(
        VOICES_FLAG,
        "ttsVoicesDir",
        CHOICE,
        "Folder of voices",
        "voices/ and the name of the file, beside the model. Blank: on where the build has it.",
        choices=ON_OFF,
    ),
)
