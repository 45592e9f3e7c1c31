"""vllm: Hugging Face folders, and GGUF files where a person chose it (classes.md 14)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from models_app.core.classes import hf
from models_app.core.discovery.shards import shard_name
from models_app.core.launch.executables import VLLM
from models_app.core.launch.macros import PORT
from models_app.core.launch.numbers import number_text
from models_app.core.launch.ownership import custom_text
from models_app.core.launch.paths import argument_path
from models_app.core.planning.classic_kv import KvLine, kv_line
from models_app.core.plans.engines.request import FITS, NONE_DECLARED, OVER, Answer, Request, term
from models_app.core.units import GIB

NEEDS_VLLM = "safetensors model folder needs a vllm backend"
NO_SPLIT_GGUF = "vllm cannot load a GGUF in several parts"
FALLBACK_CTX = 32_768
CTX_STEP = 4096
KV_MARGIN, KV_EXTRA_GIB = 1.10, 0.25
UTILISATION_FLAG, KV_BYTES_FLAG = "--gpu-memory-utilization", "--kv-cache-memory-bytes"
PARSER_FLAGS = ("--tool-call-parser", "--enable-auto-tool-choice")


@dataclass(frozen=True, slots=True)
class _Sizing:
    """Window and memory of one launch, GiB."""

    ctx_tokens: int
    kv_gib: float
    kv_bytes: int
    """Value of the flag that pins the cache, 0 when it is not written."""
    footprint_gib: float
    utilisation: float
    est_gib: float
    fits: bool
    why: str


def skip_reason(request: Request) -> str:
    if request.row.model_class == "hf" and not request.executable().registered:
        return NEEDS_VLLM
    is_split = request.row.shard_count > 1 or shard_name(request.row.full_path) is not None
    return NO_SPLIT_GGUF if is_split and request.row.model_class != "hf" else ""


def plan(request: Request) -> Answer:
    own, header = request.override, request.header
    sizing = _sized(request)
    found = request.executable()
    parser = (
        ""
        if _carries(request, *PARSER_FLAGS)
        else hf.tool_parser(header.architecture, _name(request), own.vllm_tool_parser)
    )
    is_gguf = request.row.model_class != "hf"
    lines = [f"serve {argument_path(request.row.full_path)}", "--host 127.0.0.1", f"--port {PORT}"]
    lines += [f"--served-model-name {request.served_id}", *(["--quantization gguf"] if is_gguf else [])]
    lines.append(f"{UTILISATION_FLAG} {number_text(sizing.utilisation)}")
    lines += [f"{KV_BYTES_FLAG} {sizing.kv_bytes}"] if sizing.kv_bytes else []
    lines.append(f"--max-model-len {sizing.ctx_tokens}")
    lines += [f"--enable-auto-tool-choice --tool-call-parser {parser}"] if parser else []
    lines += [f"--tokenizer {argument_path(own.vllm_tokenizer)}"] if own.vllm_tokenizer.strip() else []
    lines += [f"--tensor-parallel-size {own.vllm_tensor_parallel}"] if own.vllm_tensor_parallel > 1 else []
    answer = Answer(
        request.command(found.path if found.kind == VLLM else VLLM, lines),
        {
            "arch": header.architecture or NONE_DECLARED,
            "format": "gguf" if is_gguf else "safetensors",
            "gpu-util": number_text(sizing.utilisation),
            "max-model-len": f"{sizing.ctx_tokens} ({sizing.why})",
        },
        est_vram_gib=sizing.est_gib,
        verdict=FITS if sizing.fits else OVER,
        engine=VLLM,
        terms=[
            term("weights", "Weights", "the size of the files", vram_gib=request.size_gib),
            term("kv", "Context", f"keys and values of {sizing.ctx_tokens:,} tokens", vram_gib=sizing.kv_gib),
            term("runtime", "Engine", "what vllm itself takes", vram_gib=hf.ENGINE_OVERHEAD_GIB),
        ],
    )
    if parser or _carries(request, PARSER_FLAGS[0]):
        answer.entry["capabilities"] = {"tools": True}
    if not sizing.fits:
        answer.warnings.append("its weights exceed the budget")
    return answer


def _name(request: Request) -> str:
    return f"{request.row.id} {request.header.general_name}"


def _carries(request: Request, *flags: str) -> bool:
    """Does the person's own text hold one of these flags?"""
    text = custom_text(request.override)
    return any(flag in text for flag in flags)


def _budget_gib(request: Request) -> float:
    """The headroom is not taken off: vllm keeps to its share by itself."""
    own = request.override.vram_target_gb
    return own if own > 0 else request.settings.target_vram_gb


def _sized(request: Request) -> _Sizing:
    budget, size, header = _budget_gib(request), request.size_gib, request.header
    own, line = request.override, kv_line(header, "f16", "f16")
    trained = header.context_length
    if budget <= 0:
        ctx = own.ctx if own.ctx > 0 else trained or FALLBACK_CTX
        used = own.vllm_gpu_util or hf.DEFAULT_UTILISATION
        return _Sizing(ctx, 0.0, 0, 0.0, used, 0.0, True, "no budget is set")
    ctx, why = _window(own.ctx, budget - size - hf.ENGINE_OVERHEAD_GIB, trained, line)
    kv_gib = line.reserve_gib(ctx) if line else 0.0
    pinned_cache = (
        line is not None and own.vllm_gpu_util <= 0 and not _carries(request, UTILISATION_FLAG, KV_BYTES_FLAG)
    )
    kv_bytes = math.ceil((kv_gib * KV_MARGIN + KV_EXTRA_GIB) * GIB) if pinned_cache else 0
    footprint = hf.footprint_gib(math.inf if pinned_cache else budget, size, kv_gib)
    card = _card_gib(request, budget)
    used = hf.utilisation(footprint, card, own.vllm_gpu_util)
    est = used * card if own.vllm_gpu_util > 0 else footprint
    fits = size + hf.ENGINE_OVERHEAD_GIB < budget
    return _Sizing(ctx, kv_gib, kv_bytes, footprint, used, est, fits, why)


def _window(pinned: int, room_gib: float, trained: int, line: KvLine | None) -> tuple[int, str]:
    if pinned > 0:
        return pinned, "as pinned"
    if room_gib <= 0:
        return min(CTX_STEP, trained) if trained else CTX_STEP, "the weights exceed the budget"
    if line is None:
        return trained or FALLBACK_CTX, "the cache of this model cannot be computed"
    most = line.max_ctx(room_gib) // CTX_STEP * CTX_STEP
    limit = trained or FALLBACK_CTX
    return (limit, "trained length") if most >= limit else (max(CTX_STEP, most), "what the budget holds")


def _card_gib(request: Request, budget_gib: float) -> float:
    """All memory of the device; the budget where nobody measured it."""
    capacity = request.budget.capacity_bytes
    return max(capacity) / GIB if capacity else max(request.budget.device_bytes, default=0) / GIB or budget_gib
