"""Adapters of the class operations (tests/vectors/README.md 5): detection, tables and pure rules."""

from __future__ import annotations

from dataclasses import replace
from io import BytesIO
from typing import Any

from models_app.core.classes import asr, audiocpp, classify, decision, embedding, hf, image, spawn, tts, video
from models_app.core.errors import UsageError
from models_app.core.readers.gguf import read_gguf
from tests.adapters.entries import emit_entry, emit_extra_image
from tests.adapters.trees import allow, gguf_bytes

Given = dict[str, Any]


def run_classify(given: Given) -> Given:
    allow(given, "file_name", "kv", "tensors")
    header = None
    if given["kv"] is not None:
        data = gguf_bytes(given["kv"], given["tensors"])
        header = read_gguf(BytesIO(data), len(data))
    answer: Given = {"class": classify(given["file_name"], header).model_class}
    if header is not None:
        answer |= {
            "diffusion_kind": header.diffusion_kind,
            "image_arch": image.image_architecture(header),
            "video_kind": header.video_kind,
            "has_audio_out": header.has_audio_out,
        }
    return answer


def run_class_window(given: Given) -> Given:
    allow(given, "class", "trained_ctx", "override")
    allow(given["override"], "ctx")
    rule = {"decision": decision.window_tokens, "embedding": embedding.window_tokens}[given["class"]]
    return {"ctx": rule(given["trained_ctx"], given["override"].get("ctx", 0))}


def run_class_estimate(given: Given) -> Given:
    allow(given, "class", "row", "task", "engine")
    allow(given["row"], "size_gb", "codec_size_gb", "codec_path", "full_path", "file_name", "id")
    size = given["row"].get("size_gb", 0.0)
    if given["class"] == "audiocpp":
        return {"estVramGB": audiocpp.estimate_gib(size, given.get("task", ""))}
    if given.get("engine") != tts.QWENTTS:
        return {"estVramGB": 0.0}
    return {"estVramGB": tts.qwentts_estimate_gib(size, given["row"].get("codec_size_gb", 0.0))}


def run_vllm_ctx(given: Given) -> Given:
    allow(given, "budget_gb", "size_gb", "trained_ctx")
    return {"ctx": hf.window_without_room(given["budget_gb"], given["size_gb"], given["trained_ctx"])}


def run_image_defaults(given: Given) -> Given:
    allow(given, "arch", "name", "cond_hidden")
    steps, cfg = image.image_defaults(given["arch"], given["name"], given["cond_hidden"])
    return {"steps": steps, "cfg": cfg}


PROFILE_FIELDS = {
    "defaultWidth": "width",
    "defaultHeight": "height",
    "defaultFrames": "frames",
    "defaultFps": "fps",
    "defaultSteps": "steps",
    "defaultCfg": "cfg",
    "defaultSampler": "sampler",
}


def _profile(given: Given) -> video.Profile:
    allow(given, "video_kind", "name", "override")
    allow(given["override"], *PROFILE_FIELDS)
    chosen = {PROFILE_FIELDS[name]: value for name, value in given["override"].items() if value}
    return replace(video.built_in_profile(given["video_kind"], given["name"]), **chosen)


def run_video_defaults(given: Given) -> Given:
    profile = _profile(given)
    return {name: getattr(profile, name) for name in PROFILE_FIELDS.values()}


def run_video_overhead(given: Given) -> Given:
    return {"overhead_gb": video.overhead_gib(given["video_kind"], given["name"], _profile(given))}


def run_align_frames(given: Given) -> Given:
    allow(given, "video_kind", "frames")
    return {"frames": video.align_frames(given["video_kind"], given["frames"])}


def run_latent_frames(given: Given) -> Given:
    allow(given, "frames", "compression")
    return {"latent": video.latent_frames(given["frames"], given["compression"])}


def run_vae_temporal_tiling(given: Given) -> Given:
    allow(given, "video_kind")
    family = video.FAMILIES.get(given["video_kind"])
    return {"result": family is not None and family.tiles_in_time}


def run_audiocpp_task(given: Given) -> Given:
    allow(given, "family")
    return {"task": audiocpp.task_of(given["family"])}


def run_minimax_weight_type(given: Given) -> Given:
    allow(given, "quant", "flavour", "override")
    allow(given["override"], "audioWeightType")
    chosen = given["override"].get("audioWeightType", "")
    return {"weight_type": audiocpp.weight_type(given["quant"], given["flavour"], chosen)}


def run_audiocpp_config_file(given: Given) -> Given:
    allow(given, "model_id")
    return {"file": spawn.config_file_name(given["model_id"])}


def run_audiocpp_config_json(given: Given) -> Given:
    allow(given, "model_id", "audiocpp")
    return {"json": spawn.config_json(given["model_id"], given["audiocpp"])}


def run_spawn_rewrite(given: Given) -> Given:
    allow(given, "argv", "audiocpp", "cache_dir_writable")
    path = "<file>" if given.get("cache_dir_writable", True) else None
    try:
        return {"appended": spawn.spawn_arguments(given["argv"], given["audiocpp"] is not None, path)}
    except UsageError:
        return {"refused": True}


def run_tts_engine(given: Given) -> Given:
    allow(given, "arch", "file_name")
    return {"engine": tts.tts_engine(given["arch"], given["file_name"])}


def run_is_asr_model(given: Given) -> Given:
    allow(given, "arch", "file_name")
    return {"result": asr.is_asr_model(given["arch"], given["file_name"])}


def run_vllm_footprint(given: Given) -> Given:
    allow(given, "budget_gb", "size_gb", "kv_gb")
    return {"footprint_gb": hf.footprint_gib(given["budget_gb"], given["size_gb"], given["kv_gb"])}


def run_vllm_util(given: Given) -> Given:
    allow(given, "footprint_gb", "card_gb", "override")
    allow(given["override"], "vllmGpuUtil")
    pinned = given["override"].get("vllmGpuUtil", 0.0)
    return {"utilisation": hf.utilisation(given["footprint_gb"], given["card_gb"], pinned)}


def run_vllm_tool_parser(given: Given) -> Given:
    allow(given, "arch", "name", "tool_parser")
    return {"parser": hf.tool_parser(given["arch"], given["name"], given["tool_parser"])}


ADAPTERS = {
    **{name.removeprefix("run_"): value for name, value in list(globals().items()) if name.startswith("run_")},
    "emit_entry": emit_entry,
    "emit_extra_image": emit_extra_image,
}
