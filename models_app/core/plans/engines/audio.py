"""audio.cpp: speech, transcription and music behind one server (classes.md 11)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from models_app.core.classes import audiocpp
from models_app.core.discovery.audio_packages import MINIMAX, NO_YUE2_VAE, YUE2, audio_package
from models_app.core.launch.audio_devices import device_argument
from models_app.core.launch.macros import PORT
from models_app.core.launch.paths import argument_path, folder_of, forward
from models_app.core.plans.engines.request import FITS, OVER, Answer, Request, term
from models_app.core.units import GIB

NO_BACKEND = "no audio.cpp backend registered"
NO_FLAVOUR = "the build of this server is not known, so it takes its own default, cuda"
NO_ALIGNER = "no forced aligner was found: text only, no word timestamps"
ACE_STEP, QWEN3_ASR = "ace_step", "qwen3_asr"
_CAPABILITIES: Mapping[str, Mapping[str, Any]] = {
    "tts": {"in": ["text"], "out": ["audio"]},
    "asr": {"in": ["audio"], "out": ["text"]},
    "gen": {"music": True},
    "sep": {"separation": True},
    "midi": {"musicTranscribe": "abc"},
}
_FAMILY_CAPABILITIES: Mapping[str, Mapping[str, Any]] = {
    ACE_STEP: {"musicEdit": True},
    YUE2: {"musicScore": "abc"},
}
F16_BYTES = 2


def skip_reason(request: Request) -> str:
    """Why nothing serves this family, "" when something does."""
    family = _family(request)
    if not family:
        return "no audiocpp.model_spec.family in its header"
    if family == YUE2 and not _package_options(request, family):
        return NO_YUE2_VAE
    if audiocpp.task_of(family):
        return ""
    kind = audiocpp.UNSERVED_FAMILIES.get(family)
    if kind is None:
        return f"unknown audio.cpp family {family}"
    return f"{family} does {kind}: music / separation / voice-conversion models of this kind are not served"


def plan(request: Request) -> Answer:
    """The server has no model flag: what it serves stands in a block of the entry, for whoever starts it."""
    family, found = _family(request), request.executable()
    task = audiocpp.task_of(family)
    options = _session_options(request, family, found.flavour)
    size_gib = _size_gib(request, family, options)
    total_gib = audiocpp.estimate_gib(size_gib, task)
    path = forward(_served_path(request.row.full_path, family))
    block: dict[str, Any] = {"family": family, "path": path, "task": task}
    answer = Answer(
        request.command(found.path, _lines(request, found.flavour)),
        {"family": family, "task": task},
        est_vram_gib=total_gib,
        verdict=FITS if total_gib <= request.settings.target_vram_gb else OVER,
        entry={
            "audiocpp": {**block, "sessionOptions": options} if options else block,
            "concurrencyLimit": 1,
            "checkEndpoint": "/health",
            "capabilities": _capabilities(family, task),
        },
        engine="audiocpp",
        terms=[
            term("weights", "Weights", "the files that are loaded together", vram_gib=size_gib),
            term("compute", "Buffers", f"what a {task} task takes beside them", vram_gib=total_gib - size_gib),
        ],
    )
    if not found.registered:
        answer.warnings.append(NO_BACKEND)
    elif not found.flavour:
        answer.notes.append(NO_FLAVOUR)
    if family == QWEN3_ASR and not request.surroundings.aligner_path:
        answer.notes.append(NO_ALIGNER)
    return answer


def _lines(request: Request, flavour: str) -> list[str]:
    own = request.override
    device = device_argument(request.surroundings.audio_devices, flavour, own.audio_device)
    voices = argument_path(f"{folder_of(request.row.full_path)}/voices")
    return [
        "--host 127.0.0.1",
        f"--port {PORT}",
        *([f"--backend {flavour}"] if flavour else []),
        *([" ".join(device)] if device else []),
        *(line for line in ("--max-loaded-models 1", f"--voice-dir {voices}") if _knows(request, line)),
        *([f"--threads {own.threads}"] if own.threads > 0 else []),
    ]


def _knows(request: Request, line: str) -> bool:
    """Older builds refuse to start with flags that came later."""
    known = request.surroundings.flags
    return known is None or line.partition(" ")[0] in known


def _family(request: Request) -> str:
    return (request.row.audio_family or request.header.audio_family).strip().lower()


def _served_path(path: str, family: str) -> str:
    """A model of several files is named by its folder."""
    return folder_of(path) if family in (MINIMAX, YUE2) else path


def _capabilities(family: str, task: str) -> dict[str, Any]:
    block = {**_CAPABILITIES[task], **_FAMILY_CAPABILITIES.get(family, {})}
    return {**block, "voiceClone": True} if task == "tts" and family in audiocpp.CLONING_FAMILIES else block


def _session_options(request: Request, family: str, flavour: str) -> dict[str, str]:
    """Options under their family's name: the server passes over a key without it."""
    if family == ACE_STEP:
        return {f"{ACE_STEP}.mem_saver": "true"}
    if family == QWEN3_ASR:
        found = {
            "forced_aligner_path": request.surroundings.aligner_path,
            "vad_model_path": request.surroundings.vad_path,
        }
        return {f"{QWEN3_ASR}.{key}": forward(path) for key, path in found.items() if path}
    options = _package_options(request, family)
    if family == MINIMAX:
        quant = request.row.id.rpartition("-")[2]
        chosen = audiocpp.weight_type(quant, flavour, request.override.audio_weight_type)
        options |= {f"{MINIMAX}.weight_type": chosen} if chosen else {}
    return options


def _package_options(request: Request, family: str) -> dict[str, str]:
    """Which files of its folder a model of several files is made of."""
    if family not in (MINIMAX, YUE2):
        return {}
    names = _package_files(request)
    package = audio_package(os.path.basename(folder_of(request.row.full_path)), dict.fromkeys(names, family))
    own = os.path.basename(forward(request.row.full_path))
    models = package.models if package is not None else ()
    return next((dict(model.options) for model in models if own == model.anchor), {})


def _package_files(request: Request) -> dict[str, int]:
    """Names and sizes of the files that the scan put together, the anchor among them."""
    files = {os.path.basename(forward(part.path)): part.size_bytes for part in request.row.shards}
    own = os.path.basename(forward(request.row.full_path))
    return files if files else {own: request.row.size_bytes}


def _size_gib(request: Request, family: str, options: Mapping[str, str]) -> float:
    """MiniMax loads one stage after another, so its largest one counts; everything else is loaded whole."""
    size_gib = request.size_gib
    if family == QWEN3_ASR:
        return size_gib + request.surroundings.file_bytes(request.surroundings.aligner_path) / GIB
    if family != MINIMAX:
        return size_gib
    files = _package_files(request)
    as_f16 = options.get(f"{MINIMAX}.weight_type") == "f16"
    folder = folder_of(request.row.full_path)

    def loaded(name: str) -> int:
        header = request.surroundings.header_of(f"{folder}/{name}") if as_f16 else None
        return header.param_count * F16_BYTES if header is not None and header.param_count else files.get(name, 0)

    def stage(*words: str) -> int:
        return sum(loaded(name) for name in files if name.lower().startswith(words))

    stages = (stage("language_model", "rvq_depth_decoder"), stage("condition_encoder", "transformer"), stage("vocoder"))
    return max(stages) / GIB or size_gib
