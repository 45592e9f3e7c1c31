"""Component pins of a host: checked against the disk, and their blanks filled from the pool (discovery.md 11.7)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace

from models_app.core.components.pool import Pool
from models_app.core.components.ranking import Ranking
from models_app.core.settings.records import Encoders

CLIP_L_WIDTH = 768
CLIP_G_WIDTH = 1280


FILLED: Mapping[str, Callable[[Pool], Ranking]] = {
    "flux_vae": lambda pool: pool.vaes("flux", hints=("flux", "/ae.")),
    "flux2_vae": lambda pool: pool.vaes("flux2"),
    "sdxl_vae": lambda pool: pool.vaes("sd", hints=("sdxl",)),
    "zimage_vae": lambda pool: pool.vaes("flux", hints=("z-image", "zimage")),
    "video_vae": lambda pool: pool.vaes("video3d"),
    "audio_vae": lambda pool: pool.audio_vaes("video3d"),
    "clip_l": lambda pool: pool.clips(CLIP_L_WIDTH),
    "clip_g": lambda pool: pool.clips(CLIP_G_WIDTH),
    "t5": lambda pool: pool.t5s(),
}
"""What a blank pin is filled with. `qwen_llm` is never filled: it is only a pin."""


def fill_encoders(declared: Encoders, pool: Pool | None, is_gone: Callable[[str], bool]) -> Encoders:
    """The pins with blanks filled. A pin always wins, unless its file is neither in the pool nor on disk.

    `is_gone` says that a path does not exist; a path that cannot be checked is not gone. Without a pool nothing
    changes.
    """
    if pool is None:
        return declared
    kept = kept_pins(declared, pool, is_gone)
    found = {name: getattr(kept, name) or ranked(pool).path for name, ranked in FILLED.items()}
    return replace(kept, **{**found, "zimage_vae": found["zimage_vae"] or found["flux_vae"]})


def gone_pins(declared: Encoders, pool: Pool, is_gone: Callable[[str], bool]) -> dict[str, str]:
    """Pins, by name, whose file is neither in the pool nor on disk: they are ignored."""
    pins = {item.name: getattr(declared, item.name) for item in fields(declared)}
    return {name: path for name, path in pins.items() if path and pool.entry(path) is None and is_gone(path)}


def kept_pins(declared: Encoders, pool: Pool, is_gone: Callable[[str], bool]) -> Encoders:
    """The pins without those whose file is gone."""
    return replace(declared, **dict.fromkeys(gone_pins(declared, pool, is_gone), ""))
