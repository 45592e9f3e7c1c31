"""Which component files one diffusion model is launched with (discovery.md 12)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from models_app.core.catalog import Header
from models_app.core.classes.image import image_architecture
from models_app.core.classes.registry import has_prefix
from models_app.core.components.arms import HOST_PIN, Choice, Pick, choose_arm
from models_app.core.components.declared import kept_pins
from models_app.core.components.naming import OFF, ON, encoder_architectures, wants_vision_encoder
from models_app.core.components.pool import Pool, PoolEntry, Wish
from models_app.core.components.signals import wan_latent_width
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
MODEL_PIN = "model-pin"
BESIDE = "beside"
"""The projector of the text encoder's own folder."""
MADE_FOR_IT = "made-for-it"
"""An encoder altered for this family; the stock file has the same width."""
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
    latent_width: int = 0
    """Latent channels of a Wan network, 0 where unknown."""


@dataclass(frozen=True, slots=True)
class Components:
    """Role -> file for every wired role, and the roles that are needed and missing."""

    picks: Mapping[str, Pick] = field(default_factory=dict)
    missing: tuple[str, ...] = ()

    @property
    def paths(self) -> dict[str, str]:
        """Role -> path."""
        return {role: pick.path for role, pick in self.picks.items()}


def diffusion_model(header: Header, name: str) -> DiffusionModel:
    """What the choice of components depends on, from a model's header and its name."""
    shapes = {tensor: tuple(shape[::-1]) for tensor, shape in header.tensor_shapes.items()}
    return DiffusionModel(
        image_architecture(header),
        name,
        header.cond_hidden,
        header.video_kind,
        header.has_audio_out,
        wan_latent_width(shapes),
    )


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
    known = pool if pool is not None else Pool(())
    pins = kept_pins(declared, pool, is_gone) if pool is not None else declared
    wants_vision = wants_vision_encoder(model.name, override.llm_vision, override.ref_edit)
    wish = Wish(model.caption_width, wants_vision, encoder_architectures(model.architecture, model.name))
    llm = _encoder(model, known, pins.qwen_llm, wish)
    wired = choose_arm(
        Choice(
            model.architecture.strip().lower(),
            model.name.lower(),
            model.caption_width,
            model.video_kind,
            model.has_audio_out,
            model.latent_width,
            known,
            pins,
            llm,
        )
    )
    picks = {role: pick for role, pick in wired.items() if pick.path}
    missing = [role for role, pick in wired.items() if not pick.path]
    encoder = known.entry(llm.path)
    if wants_vision and encoder and encoder.mmproj and picks.get("llm") == llm:
        picks["llm_vision"] = Pick(encoder.mmproj, BESIDE)
    _apply_override(picks, missing, override, known)
    return Components(picks, tuple(missing))


def _encoder(model: DiffusionModel, pool: Pool, pin: str, wish: Wish) -> Pick:
    """The text encoder; one without a vision tower is better than none.

    A pin outside every root is taken as it is, where nothing else serves; one that the scan refused is not.
    """
    prefer, reason = pin, HOST_PIN
    if not pool.is_llm_candidate(pin, wish):
        hinted = _family_encoder(model.video_kind, pool, wish)
        prefer, reason = (hinted.path, MADE_FOR_IT) if hinted else (pin, HOST_PIN)
    for asked in (wish, replace(wish, vision=False)) if wish.vision else (wish,):
        ranking = pool.ranked_llms(asked)
        found = pool.llm(asked, prefer)
        if found is not None:
            preferred = pool.entry(prefer)
            by_pin = preferred is not None and preferred.path == found.path
            because = reason if by_pin else ranking.because
            return Pick(found.path, because, ranking, tuple(wish.architectures))
    return Pick() if pool.knows_llm(pin) or not pin else Pick(pin, HOST_PIN)


def _family_encoder(video_kind: str, pool: Pool, wish: Wish) -> PoolEntry | None:
    """Some video families use a copy of a common model that was altered: the stock file has the same width."""
    match video_kind:
        case "ltxav":
            return pool.llm_hinted("ltx")
        case "minimax_h3":
            cut = [entry for entry in pool.ranked_llms(wish).entries if entry.block_count == H3_BLOCKS]
            return cut[0] if cut else pool.llm_hinted("minimax")
    return None


def _apply_override(picks: dict[str, Pick], missing: list[str], override: Override, pool: Pool) -> None:
    """A model's own paths win over everything and settle their role."""
    for role, name in OVERRIDE_ROLES.items():
        path = getattr(override, name).strip()
        if not path:
            continue
        found = picks.pop(role, Pick())
        if path.lower() != NONE:
            picks[role] = Pick(path, MODEL_PIN, found.ranking)
        if role in missing:
            missing.remove(role)
    _apply_projector(picks, override, pool)


def _apply_projector(picks: dict[str, Pick], override: Override, pool: Pool) -> None:
    own = override.llm_vision_path.strip()
    chosen = pool.entry(picks["llm"].path) if "llm" in picks else None
    neighbour = Pick(chosen.mmproj if chosen else "", BESIDE)
    if override.text_encoder_path.strip():
        picks["llm_vision"] = neighbour
    if own:
        picks["llm_vision"] = Pick("" if own.lower() == NONE else own, MODEL_PIN)
    elif override.llm_vision == OFF or "llm" not in picks:
        picks["llm_vision"] = Pick()
    elif override.llm_vision == ON:
        picks["llm_vision"] = picks.get("llm_vision") or neighbour
    if not picks.get("llm_vision", Pick()).path:
        picks.pop("llm_vision", None)
