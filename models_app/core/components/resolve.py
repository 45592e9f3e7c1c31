"""Which component files one diffusion model is launched with (discovery.md 12)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from models_app.core.classes.registry import has_prefix
from models_app.core.components.arms import Choice, choose_arm
from models_app.core.components.declared import fill_encoders
from models_app.core.components.naming import OFF, ON, encoder_architectures, wants_vision_encoder
from models_app.core.components.pool import Pool, PoolEntry, Wish
from models_app.core.settings.overrides import Override
from models_app.core.settings.records import Encoders

FULL_CHECKPOINTS = ("sd1", "sd2", "sdxl", "stable-diffusion")
"""Architectures that carry their encoders and load whole."""
OVERRIDE_ROLES = {
    "vae": "vae_path",
    "clip_l": "clip_l_path",
    "clip_g": "clip_g_path",
    "t5xxl": "t5_path",
    "llm": "text_encoder_path",
    "audio_vae": "audio_vae_path",
}
NONE = "none"
"""In a variant: drop the component."""
H3_BLOCKS = 50
"""MiniMax-H3's encoder is a Qwen3-VL-32B cut to this many layers; a whole one has the same width."""


@dataclass(frozen=True, slots=True)
class DiffusionModel:
    """What is asked about one model: effective architecture, name, caption width, and its video facts."""

    architecture: str
    name: str
    caption_width: int
    video_kind: str = ""
    has_audio_out: bool = False


@dataclass(frozen=True, slots=True)
class Components:
    """Role -> path for every wired role, the roles that are needed and missing, and the runners-up for the encoder."""

    paths: dict[str, str] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    llm_choices: tuple[PoolEntry, ...] = ()


def resolve_components(
    model: DiffusionModel,
    pool: Pool | None,
    declared: Encoders,
    override: Override,
    is_gone: Callable[[str], bool] = lambda path: False,
) -> Components:
    """Components of one model. A missing role does not stop the launch; it is named in a warning."""
    if has_prefix(model.architecture, FULL_CHECKPOINTS):
        return Components()
    encoders = fill_encoders(declared, pool, is_gone)
    known = pool if pool is not None else Pool(())
    wants_vision = wants_vision_encoder(model.name, override.llm_vision, override.ref_edit)
    wish = Wish(model.caption_width, wants_vision, encoder_architectures(model.architecture, model.name))
    pick = _encoder(model, known, encoders.qwen_llm, wish)
    llm = pick.path if pick else _unknown_pin(known, encoders.qwen_llm)
    wired = choose_arm(
        Choice(
            model.architecture.strip().lower(),
            model.name.lower(),
            model.caption_width,
            model.video_kind,
            model.has_audio_out,
            known,
            encoders,
            llm,
        )
    )
    paths = {role: path for role, path in wired.items() if path}
    missing = [role for role, path in wired.items() if not path]
    if wants_vision and pick and pick.mmproj and paths.get("llm") == pick.path:
        paths["llm_vision"] = pick.mmproj
    _apply_override(paths, missing, override, known)
    return Components(paths, tuple(missing), tuple(known.ranked_llms(wish)))


def _encoder(model: DiffusionModel, pool: Pool, pin: str, wish: Wish) -> PoolEntry | None:
    """The text encoder; one without a vision tower is better than none."""
    prefer = pin
    if not pool.is_llm_candidate(pin, wish):
        hinted = _family_encoder(model.video_kind, pool, wish)
        prefer = hinted.path if hinted else pin
    found = pool.llm(wish, prefer)
    if found is None and wish.vision:
        found = pool.llm(Wish(wish.caption_width, False, wish.architectures), prefer)
    return found


def _family_encoder(video_kind: str, pool: Pool, wish: Wish) -> PoolEntry | None:
    """Some video families use a copy of a common model that was altered: the stock file has the same width."""
    match video_kind:
        case "ltxav":
            return pool.llm_hinted("ltx")
        case "minimax_h3":
            cut = [entry for entry in pool.ranked_llms(wish) if entry.block_count == H3_BLOCKS]
            return cut[0] if cut else pool.llm_hinted("minimax")
    return None


def _unknown_pin(pool: Pool, pin: str) -> str:
    """A pin outside every root is taken as it is; one that the scan measured and refused is not."""
    return "" if pool.knows_llm(pin) else pin


def _apply_override(paths: dict[str, str], missing: list[str], override: Override, pool: Pool) -> None:
    """A model's own paths win over everything and settle their role."""
    for role, name in OVERRIDE_ROLES.items():
        path = getattr(override, name).strip()
        if not path:
            continue
        paths.pop(role, None)
        if path.lower() != NONE:
            paths[role] = path
        if role in missing:
            missing.remove(role)
    _apply_projector(paths, override, pool)


def _apply_projector(paths: dict[str, str], override: Override, pool: Pool) -> None:
    own = override.llm_vision_path.strip()
    chosen = pool.entry(paths.get("llm", ""))
    neighbour = chosen.mmproj if chosen else ""
    if override.text_encoder_path.strip():
        paths["llm_vision"] = neighbour
    if own:
        paths["llm_vision"] = "" if own.lower() == NONE else own
    elif override.llm_vision == OFF or "llm" not in paths:
        paths["llm_vision"] = ""
    elif override.llm_vision == ON:
        paths["llm_vision"] = paths.get("llm_vision") or neighbour
    if not paths.get("llm_vision"):
        paths.pop("llm_vision", None)
