"""Video: diffusion transformers that answer with clips, known by their tensors alone (classes.md 8)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from models_app.core.catalog import Header
from models_app.core.classes.registry import ModelClass

FAST_WORDS = ("distill", "turbo")
BASE_OVERHEAD_GIB = 4.0
LEAST_OVERHEAD_GIB = 1.5


@dataclass(frozen=True, slots=True)
class Profile:
    """Generation defaults. None leaves a value to the server."""

    width: int
    height: int
    frames: int
    fps: int
    steps: int | None = None
    cfg: float | None = None
    sampler: str | None = None


@dataclass(frozen=True, slots=True)
class VideoFamily:
    """One family: frame grid `grid_step * n + grid_offset`, and whether its decoder works in windows of time."""

    label: str
    profile: Profile
    grid_step: int
    grid_offset: int
    rounds_up: bool
    compression: int
    tiles_in_time: bool
    fast_profile: Profile | None = None


FAMILIES: Mapping[str, VideoFamily] = MappingProxyType(
    {
        "minimax_h3": VideoFamily("MiniMax-H3", Profile(640, 384, 56, 24, cfg=1.0), 17, 5, True, 4, False),
        "wan": VideoFamily("Wan", Profile(832, 480, 81, 16), 4, 1, True, 4, True),
        "ltxav": VideoFamily(
            "LTX",
            Profile(1280, 704, 121, 24, cfg=3.0, sampler="euler"),
            8,
            1,
            False,
            8,
            True,
            fast_profile=Profile(1280, 704, 121, 24, steps=8, cfg=1.0),
        ),
    }
)


def match(file_name: str, header: Header | None) -> str:
    if header is None or not header.video_kind:
        return ""
    return f"video tensors of the {header.video_kind} family"


def built_in_profile(kind: str, name: str) -> Profile:
    """The family's defaults; some families have others for distilled files. KeyError for an unknown family."""
    family = FAMILIES[kind]
    if family.fast_profile and any(word in name.lower() for word in FAST_WORDS):
        return family.fast_profile
    return family.profile


def align_frames(kind: str, frames: int) -> int:
    """The nearest frame count on the family's grid, in the direction that the server rounds. At least one step."""
    family = FAMILIES[kind]
    above = max(frames - family.grid_offset, 0)
    steps = -(-above // family.grid_step) if family.rounds_up else above // family.grid_step
    return steps * family.grid_step + family.grid_offset


def latent_frames(frames: int, compression: int) -> int:
    """Frames after the decoder's compression in time."""
    return (max(frames, 1) - 1) // compression + 1


def overhead_gib(kind: str, name: str, profile: Profile) -> float:
    """Compute memory of one clip, scaled from the family's own profile (classes.md 8.4)."""
    family = FAMILIES[kind]
    base = built_in_profile(kind, name)
    area = profile.width * profile.height / (base.width * base.height)
    length = latent_frames(profile.frames, family.compression) / latent_frames(base.frames, family.compression)
    return max(LEAST_OVERHEAD_GIB, BASE_OVERHEAD_GIB * area * length)


VIDEO = ModelClass("video", "Video", "video", match)
