"""Which launches a model gets: base, context tiers, named variants, vision twin (config-yaml.md 6.2, launch.md 3.8).

One profile is one entry of the router's file. Everything that follows is decided here once, for previews and exports.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from models_app.core.classes.llm import is_vision_language_model
from models_app.core.discovery.enhancers import EnhancerName, enhancer_name
from models_app.core.discovery.names import slugify
from models_app.core.launch.ownership import runs_text_only
from models_app.core.launch.tokens import POSIX
from models_app.core.launch.whole_text import projector_in_text
from models_app.core.settings import Override, Settings, Variant
from models_app.core.state.variants import VISION, merge_variant, named_variants, vision_variant

BASE, TIER, VARIANT = "base", "tier", "variant"
IN_RAM, ON_GPU, NO_PROJECTOR = "ram", "gpu", "none"
ENHANCER_CTX = 32768


@dataclass(frozen=True, slots=True)
class Profile:
    """One launch that a model should get.

    `override` is the effective one: `ctx` (0: sized), `vram_target_gb` (0: the fleet's), `cpu_offload`, `unlisted` and
    `ctx_checkpoints` are this profile's own. `projector` says where its projector lies: `ram`, `gpu`, "" for none.
    """

    id: str
    kind: str
    override: Override
    projector: str = ""
    skip_reason: str = ""
    """Why this profile cannot be emitted under its id."""


@dataclass(frozen=True, slots=True)
class ProfiledModel:
    """What of a row decides its profiles. `id` is the served id of its base entry."""

    id: str
    name: str = ""
    architecture: str = ""
    projector_path: str = ""
    engine: str = "llama"
    """Kind of the backend that runs it; only llama-server has tiers, variants and a twin."""
    word_rules: str = POSIX
    """How its host splits launch texts."""


def ctx_tag(ctx_tokens: int) -> str:
    """The suffix of a context tier: `4096` -> `4k`, `1048576` -> `1m`, `5000` -> `5000`."""
    for size, letter in ((1 << 20, "m"), (1 << 10, "k")):
        if ctx_tokens >= size and ctx_tokens % size == 0:
            return f"{ctx_tokens // size}{letter}"
    return str(ctx_tokens)


def profile_set(model: ProfiledModel, override: Override, settings: Settings) -> tuple[Profile, ...]:
    """All profiles in emitted order, the base first. A second profile of one id carries a skip reason."""
    model = replace(model, id=override.served_id.strip() or model.id)
    if model.engine != "llama":
        return (Profile(model.id, BASE, override),)
    profiles: list[Profile] = []
    seen: set[str] = set()
    for profile in _profiles(model, override, settings):
        clash = profile.id in seen or profile.id == f"{model.id}-"
        seen.add(profile.id)
        reason = "an earlier profile of this model has that id" if clash else ""
        profiles.append(replace(profile, skip_reason=reason))
    return tuple(profiles)


def _profiles(model: ProfiledModel, override: Override, settings: Settings) -> Iterator[Profile]:
    enhancer = enhancer_name(model.name or model.id)
    place = _projector_place(override, enhancer)

    def projector(effective: Override) -> str:
        if runs_text_only(effective):
            return _projector_of_text(effective, model.word_rules)
        found = effective.mmproj_file.strip() or model.projector_path
        return place if found else ""

    base = replace(override, ctx=override.ctx or ENHANCER_CTX) if enhancer else override
    yield Profile(model.id, BASE, base, projector(base))
    for ctx in override.ctx_variants:
        if ctx > 0:
            tier = replace(override, ctx=ctx, vram_target_gb=0.0, cpu_offload=0, unlisted=False)
            yield Profile(f"{model.id}-{ctx_tag(ctx)}", TIER, tier, projector(tier))
    fleet = () if enhancer else settings.default_variants
    for variant in named_variants(override.variants, fleet):
        merged = merge_variant(override, variant)
        yield Profile(variant_id(model.id, variant), VARIANT, merged, projector(merged))
    if enhancer is None and not runs_text_only(override) and projector(override):
        yield from _twin(model, override, vision_variant(override.variants, fleet), settings)


def variant_id(base_id: str, variant: Variant) -> str:
    """The id of a variant's entry: its own, else the base's with its name."""
    return variant.served_id.strip() or f"{base_id}-{slugify(variant.name)}"


def _projector_of_text(override: Override, rules: str) -> str:
    path, in_ram = projector_in_text(override, rules)
    return "" if not path else IN_RAM if in_ram else ON_GPU


def _projector_place(override: Override, enhancer: EnhancerName | None) -> str:
    """Where the projector of all profiles but the twin lies, "" for nowhere."""
    pinned = override.mmproj.strip().lower()
    if pinned == NO_PROJECTOR:
        return ""
    if pinned in (IN_RAM, ON_GPU):
        return pinned
    if enhancer is None:
        return IN_RAM
    return "" if enhancer.direction == "t2i" else ON_GPU


def _twin(model: ProfiledModel, override: Override, variant: Variant | None, settings: Settings) -> Iterator[Profile]:
    """The entry that pays VRAM for the projector. The variant named `vision` tunes it instead of making a profile."""
    tuned = variant or Variant()
    place = tuned.mmproj.strip().lower()
    if place == NO_PROJECTOR:
        return
    ctx = tuned.ctx or override.ctx
    if not ctx and is_vision_language_model(model.name or model.id, model.architecture):
        ctx = settings.vision_ctx
    effective = replace(
        override,
        ctx=ctx,
        vram_target_gb=tuned.vram_target_gb or override.vram_target_gb,
        cpu_offload=0,
        ctx_checkpoints=None,
        unlisted=tuned.unlisted,
    )
    yield Profile(f"{model.id}-{VISION}", VISION, effective, place if place == IN_RAM else ON_GPU)
