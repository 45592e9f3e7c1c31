"""Adapters of the component operations (tests/vectors/README.md 5)."""

from __future__ import annotations

import os
from io import BytesIO
from typing import Any

from models_app.core.classes.image import is_image_architecture
from models_app.core.components import naming
from models_app.core.components.arms import wan3d_latent_width
from models_app.core.components.companions import CompanionFamily, Source, offer_companions
from models_app.core.components.declared import fill_encoders
from models_app.core.components.pool import Pool, PoolEntry, Wish, architecture_rank, caption_factor
from models_app.core.components.resolve import DiffusionModel, resolve_components
from models_app.core.components.scan import build_pool
from models_app.core.components.signals import classify_shapes
from models_app.core.discovery.walk import list_files
from models_app.core.readers import read_header
from models_app.core.readers.gguf import read_gguf
from models_app.core.settings import Encoders, override_from_mapping, record_from_mapping, record_to_mapping
from models_app.core.units import GIB
from tests.adapters.trees import allow, built, gguf_bytes

Given = dict[str, Any]


def pool_of(entries: list[Given] | None) -> Pool | None:
    if entries is None:
        return None
    pool = []
    for entry in entries:
        allow(entry, "path", "role", "family", "width", "size_gb", "mmproj", "vision")
        size = round(entry.pop("size_gb", 0) * GIB)
        pool.append(PoolEntry(**entry, size_bytes=size))
    return Pool(pool)


def encoders_of(declared: Given) -> Encoders:
    allow(declared, *record_to_mapping(Encoders(), sparse=False))
    return record_from_mapping(Encoders, declared)


def path_of(entry: PoolEntry | None) -> str:
    return entry.path if entry else ""


def run_classify_safetensors(given: Given) -> Given:
    allow(given, "shapes")
    signal = classify_shapes({name: tuple(shape) for name, shape in given["shapes"].items()})
    if signal is None:
        return {"role": None, "family": "", "width": 0, "vision": False}
    return {"role": signal.role, "family": signal.family, "width": signal.width, "vision": signal.vision}


def run_scan_pool(given: Given) -> Given:
    allow(given, "files")
    with built(given["files"]) as base:
        pool = build_pool(list_files([str(base)], platform="linux"), read_header)
        entries = [
            {
                "path": os.path.relpath(entry.path, base),
                "role": entry.role,
                "family": entry.family,
                "width": entry.width,
                "size_gb": entry.size_bytes / GIB,
                "mmproj": os.path.relpath(entry.mmproj, base) if entry.mmproj else "",
                "vision": entry.vision,
            }
            for entry in pool.entries
        ]
    return {"entries": entries}


def _caption_width(kv: Given, tensors: dict[str, list[int]]) -> int:
    data = gguf_bytes(kv, tensors)
    return read_gguf(BytesIO(data), len(data)).cond_hidden


def run_cond_hidden(given: Given) -> Given:
    allow(given, "ne0")
    return {"cond_hidden": _caption_width({}, {name: [width, 1] for name, width in given["ne0"].items()})}


def run_caption_channels(given: Given) -> Given:
    allow(given, "config")
    return {"caption_channels": _caption_width({"config": given["config"]}, {})}


def run_caption_factor(given: Given) -> Given:
    allow(given, "hidden", "width")
    return {"factor": caption_factor(given["hidden"], given["width"])}


def run_encoder_arch_rank(given: Given) -> Given:
    allow(given, "arch")
    return {"rank": architecture_rank(given["arch"])}


def run_pick_llm(given: Given) -> Given:
    allow(given, "pool", "hidden", "vision", "prefer")
    pool = pool_of(given["pool"])
    found = pool.llm(Wish(given["hidden"], given["vision"]), given["prefer"]) if pool else None
    return {"path": path_of(found), "mmproj": found.mmproj if found else ""}


def run_llm_candidate(given: Given) -> Given:
    allow(given, "pool", "path", "hidden", "vision")
    return {"result": pool_of(given["pool"]).is_llm_candidate(given["path"], Wish(given["hidden"], given["vision"]))}


def run_knows_llm(given: Given) -> Given:
    allow(given, "pool", "path")
    return {"result": pool_of(given["pool"]).knows_llm(given["path"])}


def run_pick_component(given: Given) -> Given:
    allow(given, "pool", "role", "family", "width", "hints")
    pool = pool_of(given["pool"])
    if pool is None:
        return {"path": ""}
    family, width, hints = given.get("family", ""), given.get("width", 0), given.get("hints", [])
    pick = {
        "vae": lambda: pool.vae(family, width, hints),
        "audio-vae": lambda: pool.audio_vae(family, hints),
        "clip": lambda: pool.clip(width),
        "t5": pool.t5,
        "llm": lambda: pool.llm_hinted(*hints),
    }[given["role"]]
    return {"path": path_of(pick())}


def run_fill_encoders(given: Given) -> Given:
    allow(given, "declared", "pool", "on_disk", "stat_error")
    present = {*given["on_disk"], *given.get("stat_error", {})}
    filled = fill_encoders(encoders_of(given["declared"]), pool_of(given["pool"]), lambda path: path not in present)
    return {"encoders": record_to_mapping(filled, sparse=False)}


def run_wan3d_latent(given: Given) -> Given:
    allow(given, "arch", "cond_hidden")
    return {"width": wan3d_latent_width(given["arch"], given["cond_hidden"])}


def run_is_image_arch(given: Given) -> Given:
    allow(given, "arch")
    return {"result": is_image_architecture(given["arch"])}


def _pins(given: Given) -> tuple[str, str]:
    allow(given, "name", "override")
    allow(given["override"], "llmVision", "refEdit")
    return given["override"].get("llmVision", ""), given["override"].get("refEdit", "")


def run_wants_vision_encoder(given: Given) -> Given:
    return {"result": naming.wants_vision_encoder(given["name"], *_pins(given))}


def run_is_reference_edit(given: Given) -> Given:
    return {"result": naming.is_reference_edit(given["name"], *_pins(given))}


COMPONENT_KEYS = (
    "vaePath",
    "clipLPath",
    "clipGPath",
    "t5Path",
    "textEncoderPath",
    "audioVaePath",
    "llmVisionPath",
    "llmVision",
    "refEdit",
)


def run_resolve_components(given: Given) -> Given:
    allow(
        given, "arch", "name", "cond_hidden", "pool", "encoders", "on_disk", "video_kind", "has_audio_out", "override"
    )
    override = given.get("override", {})
    allow(override, *COMPONENT_KEYS)
    model = DiffusionModel(
        given["arch"],
        given["name"],
        given["cond_hidden"],
        given.get("video_kind", ""),
        given.get("has_audio_out", False),
    )
    present = set(given["on_disk"])
    found = resolve_components(
        model,
        pool_of(given["pool"]),
        encoders_of(given["encoders"]),
        override_from_mapping(override),
        lambda path: path not in present,
    )
    return {**found.paths, "missing": list(found.missing)}


def run_companions(given: Given) -> Given:
    allow(given, "families", "arch", "name", "cond_hidden", "pool", "encoders")
    families = []
    for family in given["families"]:
        allow(family, "key", "arch", "name", "cond_hidden", "roles")
        sources = {role: Source(**source) for role, source in family["roles"].items()}
        families.append(
            CompanionFamily(
                family["key"], family.get("arch", ""), family.get("name", ""), family.get("cond_hidden", 0), sources
            )
        )
    model = DiffusionModel(given["arch"], given["name"], given["cond_hidden"])
    declared = encoders_of(given["encoders"])
    missing = resolve_components(model, pool_of(given["pool"]), declared, override_from_mapping({})).missing
    offer = offer_companions(families, given["arch"], given["name"], given["cond_hidden"], missing)
    return {"family": offer.family, "offered": list(offer.offered), "unsourced": list(offer.unsourced)}


ADAPTERS = {name.removeprefix("run_"): value for name, value in list(globals().items()) if name.startswith("run_")}
