"""One served id from one plan (config-yaml.md 5, 7)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from models_app.core.catalog import Header, Plan, Row
from models_app.core.export import scalars
from models_app.core.export.document import Entry
from models_app.core.export.environment import entry_env
from models_app.core.export.naming import public_name
from models_app.core.settings import Override, Settings
from models_app.core.units import GIB

OVER = "over"
SHORTFALLS = frozenset({"ram-exceeded", "vram-exceeded", "device-over"})
"""Kinds of reasons that say what is missing."""
PROJECTOR_FLAGS = frozenset({"--mmproj", "-mm"})


@dataclass(frozen=True, slots=True)
class PlannedModel:
    """One row with everything that its entries are made from. Plans are in emitted order, the base first."""

    row: Row
    header: Header | None
    plans: tuple[Plan, ...] = ()
    override: Override = field(default_factory=Override)
    effort_levels: tuple[str, ...] | None = None
    """Of the template that will run, where an override replaces the baked one; None: the header's."""
    engine: str = ""
    """Kind of the backend that runs it; decides the coexistence set of a speech model."""


def entry_of(model: PlannedModel, plan: Plan, settings: Settings, taken_names: Collection[str]) -> Entry:
    """The entry of one plan. `taken_names` are ids and aliases that a public name must not repeat."""
    fields: dict[str, Any] = {"ttl": settings.ttl_sec if model.override.ttl_sec is None else model.override.ttl_sec}
    if env := plan_env(plan):
        fields["env"] = env
    fields |= estimate_keys(plan.est_vram_bytes / GIB, plan.est_ram_bytes / GIB)
    # A text that starts with a line break would fail the load of llama-swap, which writes and reads it once more.
    public = scalars.one_line(public_name(settings.display_names, plan.profile_id))
    comments = list(comment_lines(model, plan))
    if public and public in taken_names:
        comments.append(f'WARNING: the public name "{public}" is taken, so only the id is served')
    elif public:
        fields |= {"name": public, "aliases": [public]}
    if plan.unlisted:
        fields["unlisted"] = True
    fields |= slot_cache_preamble(settings, model.override)
    if block := capabilities(plan.argv, _effort_levels(model)):
        fields["capabilities"] = block
    return Entry(
        id=plan.profile_id,
        command=tuple(line.strip() for line in plan.lines if line.strip()),
        fields=fields,
        comments=tuple(comments),
        model_class=plan.model_class,
        base=model.plans[0].profile_id,
        path=model.row.full_path,
        size_bytes=model.row.size_bytes,
    )


def plan_env(plan: Plan) -> list[str]:
    """Device pins of a chat model: its split decides."""
    placement = plan.placement
    split = placement.tensor_split if placement is not None and placement.gpu_layers > 0 else ()
    return entry_env("llm", device_count=len(split), tensor_split=split)


def estimate_keys(est_vram_gb: float, est_ram_gb: float) -> dict[str, float]:
    """The admission figures, rounded; 0 would read as unknown and is left out."""
    figures = {"estVramGB": scalars.gb(est_vram_gb), "estRamGB": scalars.gb(est_ram_gb)}
    return {name: value for name, value in figures.items() if value > 0}


def slot_cache_preamble(settings: Settings, override: Override) -> dict[str, bool]:
    """The opt-out of a model that takes part in the slot cache."""
    enrolled = settings.slot_cache.enable and override.slot_cache is True
    return {"slotCachePreamble": False} if enrolled and override.slot_cache_preamble is False else {}


def capabilities(argv: Sequence[str], effort_levels: Sequence[str] = ()) -> dict[str, Any]:
    """What a chat model announces: pictures where the command loads a projector, and its effort ladder."""
    block: dict[str, Any] = {}
    if PROJECTOR_FLAGS.intersection(argv):
        block |= {"in": ["text", "image"], "out": ["text"]}
    if effort_levels:
        block["reasoningEffort"] = list(effort_levels)
    return block


def _effort_levels(model: PlannedModel) -> tuple[str, ...]:
    if model.effort_levels is not None:
        return model.effort_levels
    return model.header.effort_levels if model.header is not None else ()


def comment_lines(model: PlannedModel, plan: Plan) -> list[str]:
    """Facts for people above an id, then the plan's warnings."""
    header = model.header or Header()
    facts: Mapping[str, str] = {
        "arch": header.architecture or "(none declared)",
        "size": f"{_figure(model.row.size_bytes / GIB)}GB",
        "blocks": str(header.block_count),
        "moe": "true" if header.is_moe else "false",
    }
    estimate = f"est vram={_figure(plan.est_vram_bytes / GIB)}GB ram={_figure(plan.est_ram_bytes / GIB)}GB"
    warnings = [f"WARNING: {text}" for text in plan_warnings(plan)]
    return [" ".join(f"{name}={value}" for name, value in facts.items()), estimate, *warnings]


def plan_warnings(plan: Plan) -> list[str]:
    """What a person must know about a plan; one over its budget is still served, and says why it will not fit."""
    texts = list(plan.warnings)
    if plan.verdict == OVER:
        shortfalls = [reason.text for reason in plan.reasons if reason.kind in SHORTFALLS]
        texts.append(" ".join(["does not fit the budget.", *shortfalls]))
    return texts


def _figure(value_gb: float) -> str:
    return scalars.number(scalars.gb(value_gb))
