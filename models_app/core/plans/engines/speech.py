"""The two older speech servers and parakeet: speech out, speech in (classes.md 12, 13; qwentts.md)."""

from __future__ import annotations

import os

from models_app.core.catalog import Reason
from models_app.core.classes.tts import QWENTTS, TTSCPP, qwentts_estimate_gib, tts_engine
from models_app.core.launch.macros import PORT
from models_app.core.launch.paths import argument_path, forward
from models_app.core.plans.engines.request import FITS, NONE_DECLARED, OVER, Answer, Request, number_after, term
from models_app.core.units import GIB

BATCH_FLAG = "--max-batch"
HEALTH = "/health"
CODEC_MISSING = "no codec lies beside it; its server needs one"
WRONG_SERVER = "no TTS.cpp backend is registered, and tts-server cannot read its weights"


def plan_tts(request: Request) -> Answer:
    """The engine with exact architecture names is asked first; the rest are talkers of qwentts."""
    name = request.row.file_name or os.path.basename(forward(request.row.full_path))
    if tts_engine(request.header.architecture, name) == TTSCPP:
        return _ttscpp(request, name)
    return _qwentts(request)


def _ttscpp(request: Request, name: str) -> Answer:
    """It runs on the CPU here, and refuses every model name but the stem of its file."""
    found = request.executable(TTSCPP)
    lines = [f"--model-path {argument_path(request.row.full_path)}", "--host 127.0.0.1", f"--port {PORT}"]
    if request.override.threads > 0:
        lines.append(f"--n-threads {request.override.threads}")
    answer = Answer(
        request.command(found.path, lines),
        {"arch": request.header.architecture or NONE_DECLARED},
        entry={
            "useModelName": os.path.splitext(name)[0],
            "checkEndpoint": HEALTH,
            "capabilities": {"in": ["text"], "out": ["audio"]},
        },
        engine=TTSCPP,
        reasons=[Reason("on-cpu", "This server runs on the CPU here; nothing is counted on a device.")],
    )
    if found.own_kind != TTSCPP:
        answer.warnings.append(WRONG_SERVER)
    return answer


def _qwentts(request: Request) -> Answer:
    row = request.row
    lines = [f"--model {argument_path(row.full_path)}"]
    if row.codec_path:
        lines.append(f"--codec {argument_path(row.codec_path)}")
    command = request.command(request.executable(QWENTTS).path, [*lines, f"--port {PORT}"])
    batch = number_after(command, BATCH_FLAG, 1)
    codec_gib = row.codec_size_bytes / GIB
    total_gib = qwentts_estimate_gib(request.size_gib, codec_gib, batch)
    answer = Answer(
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
        terms=[
            term("weights", "Talker", "the size of its file", vram_gib=request.size_gib),
            term("weights", "Codec", "the size of its file", vram_gib=codec_gib),
            term(
                "kv",
                "Requests side by side",
                f"0.875 GiB for each of {max(1, batch)}, ring buffers, and 0.35 GiB to compute with",
                vram_gib=total_gib - request.size_gib - codec_gib,
            ),
        ],
    )
    if not row.codec_path:
        answer.warnings.append(CODEC_MISSING)
    return answer


def plan_asr(request: Request) -> Answer:
    """Nothing is sized: it runs on the CPU unless a person's arguments say otherwise."""
    lines = [f"--model {argument_path(request.row.full_path)}", f"--port {PORT}"]
    return Answer(
        request.command(request.executable().path, lines),
        {"arch": request.header.architecture or NONE_DECLARED},
        entry={"checkEndpoint": HEALTH, "capabilities": {"in": ["audio"], "out": ["text"]}},
        engine="asr",
        reasons=[Reason("on-cpu", "It runs on the CPU unless custom arguments say otherwise; nothing is counted.")],
    )
