"""Component pins of a host: checked against the disk, and their blanks filled from the pool (discovery.md 11.7)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace

from models_app.core.components.pool import Pool, PoolEntry
from models_app.core.settings.records import Encoders

CLIP_L_WIDTH = 768
CLIP_G_WIDTH = 1280


def fill_encoders(declared: Encoders, pool: Pool | None, is_gone: Callable[[str], bool]) -> Encoders:
    """The pins with blanks filled. A pin always wins, unless its file is neither in the pool nor on disk.

    `is_gone` says that a path does not exist; a path that cannot be checked is not gone. Without a pool nothing
    changes. `qwen_llm` is never filled: it is only a pin.
    """
    if pool is None:
        return declared
    kept = _without_gone(declared, pool, is_gone)
    filled = replace(
        kept,
        flux_vae=kept.flux_vae or _path(pool.vae("flux", hints=("flux", "/ae."))),
        flux2_vae=kept.flux2_vae or _path(pool.vae("flux2")),
        sdxl_vae=kept.sdxl_vae or _path(pool.vae("sd", hints=("sdxl",))),
        zimage_vae=kept.zimage_vae or _path(pool.vae("flux", hints=("z-image", "zimage"))),
        video_vae=kept.video_vae or _path(pool.vae("video3d")),
        audio_vae=kept.audio_vae or _path(pool.audio_vae("video3d")),
        clip_l=kept.clip_l or _path(pool.clip(CLIP_L_WIDTH)),
        clip_g=kept.clip_g or _path(pool.clip(CLIP_G_WIDTH)),
        t5=kept.t5 or _path(pool.t5()),
    )
    return replace(filled, zimage_vae=filled.zimage_vae or filled.flux_vae)


def _without_gone(declared: Encoders, pool: Pool, is_gone: Callable[[str], bool]) -> Encoders:
    pins = {item.name: getattr(declared, item.name) for item in fields(declared)}
    gone = {name: "" for name, path in pins.items() if path and pool.entry(path) is None and is_gone(path)}
    return replace(declared, **gone)


def _path(entry: PoolEntry | None) -> str:
    return entry.path if entry else ""
