"""Embedding and decision models on llama-server (classes.md 9, 10)."""

from __future__ import annotations

from models_app.core.classes import decision, embedding
from models_app.core.launch.cpu_device import keeps_off_gpus
from models_app.core.launch.llama_flags import LLAMA
from models_app.core.launch.macros import PORT
from models_app.core.launch.paths import argument_path, raw_path
from models_app.core.planning.classic_kv import kv_line
from models_app.core.plans.engines.request import FITS, NONE_DECLARED, OVER, Answer, Request, term
from models_app.core.units import GIB

WORK_GIB = 0.5
"""Buffers of one such server beside its weights."""
WHOLE_PROMPT_TYPES = ("laya", "clef", "vllm-d3", "lfm2-d1-omni")
"""Decision types that read the whole prompt in one micro-batch."""
CPU = "cpu"
POOLINGS = {0: "none", 1: "mean", 2: "cls", 3: "last", 4: "rank"}


def plan_embedding(request: Request) -> Answer:
    """The server pools as the header says; asking for `auto` would end it."""
    window = embedding.window_tokens(request.header.context_length, request.override.ctx)
    pooling = POOLINGS.get(request.header.pooling_type, str(request.header.pooling_type))
    answer = _answer(request, ["--embeddings", *_placed(request, window)], kv_gib=0.0)
    answer.facts = {**answer.facts, "pooling": pooling}
    answer.entry["capabilities"] = {"embedding": True}
    return answer


def plan_decision(request: Request) -> Answer:
    header = request.header
    window = decision.window_tokens(header.context_length, request.override.ctx)
    lines = _placed(request, window)
    if header.decision_type.strip().lower() in WHOLE_PROMPT_TYPES:
        lines += [f"-b {window}", f"-ub {window}"]
    if request.row.mmproj_path:
        lines.append(f"--mmproj {argument_path(request.row.mmproj_path)}")
    line = kv_line(header, "f16", "f16")
    answer = _answer(request, lines, kv_gib=line.reserve_gib(window) if line else 0.0)
    answer.facts = {**answer.facts, "decision": header.decision_type}
    answer.entry["capabilities"] = {"decision": True, "decisionType": header.decision_type}
    return answer


def _placed(request: Request, window: int) -> list[str]:
    where = ["-ngl 0", "--device none"] if _on_cpu(request) else ["-ngl 99"]
    return [*where, f"-c {window}"]


def _on_cpu(request: Request) -> bool:
    return keeps_off_gpus(request.override, request.word_rules)


def _answer(request: Request, lines: list[str], kv_gib: float) -> Answer:
    """What both kinds share: the server's ordinary flags, and an estimate from the file and the window."""
    threads = request.override.threads if request.override.threads > 0 else request.settings.threads
    projector_gib = request.row.mmproj_size_bytes / GIB
    total_gib = request.size_gib + kv_gib + WORK_GIB + projector_gib
    on_cpu = _on_cpu(request)
    command = request.command(
        request.executable().path,
        [
            f"-m {raw_path(request.row.full_path)}",
            f"--port {PORT}",
            "--host 127.0.0.1",
            "--cors-origins localhost",
            *lines,
            *([f"-t {threads}"] if threads > 0 else []),
            "--no-warmup --no-ui --metrics --props",
        ],
        LLAMA,
    )
    shares = (
        ("weights", "Weights", "the size of the file", request.size_gib),
        ("kv", "Context", "keys and values of the window at f16", kv_gib),
        ("projector", "Projector", "the size of its file", projector_gib),
        ("compute", "Buffers", "half a GiB for the server's buffers", WORK_GIB),
    )
    place = "ram_gib" if on_cpu else "vram_gib"
    cap = request.settings.max_ram_gb if on_cpu else request.settings.target_vram_gb
    return Answer(
        command,
        {"arch": request.header.architecture or NONE_DECLARED},
        est_vram_gib=0.0 if on_cpu else total_gib,
        est_ram_gib=total_gib if on_cpu else 0.0,
        verdict=OVER if 0 < cap < total_gib else FITS,
        engine="llama",
        terms=[term(key, label, how, **{place: size}) for key, label, how, size in shares if size > 0],
    )
