"""The Variants tab: every profile of a model with its plan, and which of them a person made."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from models_app.core.catalog import Plan
from models_app.core.discovery.names import slugify
from models_app.models import Variant
from quartermaster_site.figures import UNKNOWN, count, gib

_SOURCES = {"base": "the model itself", "tier": "context tier", "variant": "variant", "vision": "vision twin"}
_WORDS = {
    "fits": ("ok", "fits", "ok"),
    "spills": ("warn", "parts in RAM", "part"),
    "over": ("bad", "does not fit", "bad"),
    "unknown": ("warn", "cannot judge", "part"),
}


@dataclass(frozen=True, slots=True)
class ProfileLine:
    """`variant` is the number of the row that can be edited, 0 where there is none; `shared` the name of one that all
    chat models of the host have.
    """

    id: str
    source: str
    context: str
    vram: str
    ram: str
    tone: str
    word: str
    shape: str
    hidden: bool
    note: str
    variant: int
    set_count: int
    shared: str = ""


def profile_lines(
    plans: Sequence[Plan], variants: Sequence[Variant], base_id: str, shared: Collection[str] = ()
) -> list[ProfileLine]:
    """One line per profile; a variant that makes no profile (it tunes the twin) has a line of its own.

    `shared` are the names of the variants that all chat models of the host have.
    """
    by_id: Mapping[str, Variant] = {f"{base_id}-{slugify(variant.name)}": variant for variant in variants}
    of_host = {f"{base_id}-{slugify(name)}": name for name in shared}
    lines = [_line(plan, by_id.get(plan.profile_id), of_host.get(plan.profile_id, "")) for plan in plans]
    shown = {line.variant for line in lines}
    return lines + [_unplanned(variant, base_id) for variant in variants if variant.pk not in shown]


def _line(plan: Plan, variant: Variant | None, shared: str) -> ProfileLine:
    tone, word, shape = _WORDS.get(plan.verdict, ("", "not planned", "dash"))
    shared = shared if plan.profile == "variant" and variant is None else ""
    place = plan.placement
    return ProfileLine(
        id=plan.profile_id,
        source=f"shared variant {shared}" if shared else _source(plan, variant),
        context=count(place.ctx_tokens) if place else UNKNOWN,
        vram=gib(plan.est_vram_bytes) if place else UNKNOWN,
        ram=gib(plan.est_ram_bytes) if place else UNKNOWN,
        tone=tone,
        word=word,
        shape=shape,
        hidden=plan.unlisted,
        note=plan.skip_reason,
        variant=variant.pk if variant else 0,
        set_count=len(variant.fields) if variant else 0,
        shared=shared,
    )


def _source(plan: Plan, variant: Variant | None) -> str:
    return _SOURCES.get(plan.profile, plan.profile) + (f" {variant.name}" if variant else "")


def _unplanned(variant: Variant, base_id: str) -> ProfileLine:
    return ProfileLine(
        id=f"{base_id}-{slugify(variant.name)}",
        source=f"variant {variant.name}",
        context=UNKNOWN,
        vram=UNKNOWN,
        ram=UNKNOWN,
        tone="",
        word="not planned",
        shape="dash",
        hidden=bool(variant.fields.get("unlisted")),
        note="The backend of this model makes no entries of variants.",
        variant=variant.pk,
        set_count=len(variant.fields),
    )
