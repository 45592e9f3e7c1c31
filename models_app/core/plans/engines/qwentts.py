"""qwentts.cpp: a command of what the build takes, and memory per request side by side (qwentts.md 1, 2, 6)."""

from __future__ import annotations

import os

from models_app.core.catalog import MemoryTerm
from models_app.core.classes.qwentts import FIRST_FLAGS, memory_mib
from models_app.core.classes.tts import COMPUTE_GIB, QWENTTS, VOICES_GIB, qwentts_estimate_gib
from models_app.core.fields.field import SWITCH
from models_app.core.fields.speech import SPEECH_FIELDS, VOICES_FLAG
from models_app.core.launch.macros import PORT
from models_app.core.launch.numbers import number_text
from models_app.core.launch.paths import argument_path, folder_of, forward
from models_app.core.launch.tokens import quote
from models_app.core.plans.engines.request import FITS, NONE_DECLARED, OVER, Answer, Request, number_after, term
from models_app.core.units import GIB

BATCH_FLAG = "--max-batch"
HEALTH = "/health"
CODEC_MISSING = "no codec lies beside it; its server needs one"


def plan_qwentts(request: Request) -> Answer:
    """One server with the talker and its codec. The memory follows from the finished command."""
    row = request.row
    lines, warnings = _flags(request)
    command = request.command(
        request.executable(QWENTTS).path,
        [
            f"--model {argument_path(row.full_path)}",
            *([f"--codec {argument_path(row.codec_path)}"] if row.codec_path else []),
            *lines,
            f"--port {PORT}",
        ],
    )
    slots = max(1, number_after(command, BATCH_FLAG, 1))
    total_gib = qwentts_estimate_gib(
        request.size_gib, row.codec_size_bytes / GIB, slots, request.surroundings.has_wav_voices
    )
    return Answer(
        command,
        {
            "arch": request.header.architecture or NONE_DECLARED,
            "codec": os.path.basename(forward(row.codec_path)) or "MISSING",
        },
        est_vram_gib=total_gib,
        verdict=FITS if total_gib <= request.settings.target_vram_gb else OVER,
        entry={
            "checkEndpoint": HEALTH,
            "capabilities": {"in": ["text"], "out": ["audio"], "voiceClone": True},
        },
        engine=QWENTTS,
        terms=_terms(request, slots, total_gib),
        warnings=[*([] if row.codec_path else [CODEC_MISSING]), *warnings],
    )


def _terms(request: Request, slots: int, total_gib: float) -> list[MemoryTerm]:
    """Where the estimate goes; the cache is what is left of it."""
    kv_mib, ring_mib = memory_mib(slots)
    requests = f"{slots} requests" if slots > 1 else "1 request"
    flat = [term("compute", "To compute with", "a flat 0.35 GiB", vram_gib=COMPUTE_GIB)]
    if request.surroundings.has_wav_voices:
        how = "a flat 0.12 GiB: voices are taken from recordings"
        flat.append(term("compute", "Encoders for voices", how, vram_gib=VOICES_GIB))
    codec_gib = request.row.codec_size_bytes / GIB
    flat_gib = COMPUTE_GIB + (VOICES_GIB if request.surroundings.has_wav_voices else 0)
    return [
        term("weights", "Talker", "the size of its file", vram_gib=request.size_gib),
        term("weights", "Codec", "the size of its file", vram_gib=codec_gib),
        term(
            "kv",
            f"Cache of {requests} side by side",
            f"{kv_mib:,} MiB of keys and values, {ring_mib:,} MiB of ring buffers in the codec",
            vram_gib=total_gib - request.size_gib - codec_gib - flat_gib,
        ),
        *flat,
    ]


def _flags(request: Request) -> tuple[list[str], list[str]]:
    """The lines of what is set, and a warning for what this build cannot be told: it would not start."""
    known = request.surroundings.flags
    own, lines, left = request.override, [], []
    if known is not None and VOICES_FLAG in known and own.tts_voices_dir != "off":
        stem = os.path.splitext(os.path.basename(forward(request.row.full_path)))[0]
        lines.append(f"{VOICES_FLAG} {argument_path(f'{folder_of(request.row.full_path)}/voices/{stem}')}")
    for field in SPEECH_FIELDS:
        value = getattr(own, field.attribute)
        if field.flag == VOICES_FLAG or not field.is_set(value):
            continue
        if field.flag not in (FIRST_FLAGS if known is None else known):
            left.append(field.flag)
        elif field.kind == SWITCH:
            lines.append(field.flag)
        else:
            lines.append(f"{field.flag} {quote(value) if isinstance(value, str) else number_text(value)}")
    if not left:
        return lines, []
    why = "this build of its server was not asked yet" if known is None else "this build of its server does not know it"
    return lines, [f"{', '.join(left)} left out: {why}"]
