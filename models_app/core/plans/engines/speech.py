"""The two older speech servers and parakeet: speech out, speech in (classes.md 12, 13; qwentts.md)."""

from __future__ import annotations

import os

from models_app.core.catalog import Reason
from models_app.core.classes.tts import TTSCPP, tts_engine
from models_app.core.launch.macros import PORT
from models_app.core.launch.paths import argument_path, forward
from models_app.core.plans.engines.qwentts import HEALTH, plan_qwentts
from models_app.core.plans.engines.request import NONE_DECLARED, Answer, Request

WRONG_SERVER = "no TTS.cpp backend is registered, and tts-server cannot read its weights"


def plan_tts(request: Request) -> Answer:
    """The engine with exact architecture names is asked first; the rest are talkers of qwentts."""
    name = request.row.file_name or os.path.basename(forward(request.row.full_path))
    if tts_engine(request.header.architecture, name) == TTSCPP:
        return _ttscpp(request, name)
    return plan_qwentts(request)


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
