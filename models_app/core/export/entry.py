"""One served id from one plan (config-yaml.md 5, 7)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gpus_app.core.budget import Budget
from gpus_app.core.runtimes import CUDA
from models_app.core.catalog import Header, Plan, Row
from models_app.core.discovery.enhancers import Pair, resolve
from models_app.core.export import scalars
from models_app.core.export.document import Entry
from models_app.core.export.enhancers import enhancer_keys
from models_app.core.export.environment import BUS_ORDER, entry_env
from models_app.core.export.guarding import guard_of
from models_app.core.export.naming import public_name
from models_app.core.launch.tokens import POSIX
from models_app.core.plans.engines.hand_declared import declared_override, plan_declared
from models_app.core.settings import ExtraImageModel, Override, Settings
from models_app.core.units import GIB

OVER, UNKNOWN = "over", "unknown"
SHORTFALLS = frozenset({"ram-exceeded", "vram-exceeded", "device-over"})
"""Kinds of reasons that say what is missing."""
LEADING = ("useModelName", "audiocpp")
"""Keys that say what is served; right behind the command."""
RAM_CLASSES = frozenset({"llm", "embedding", "decision"})
"""Classes whose RAM a router can count."""
ENHANCED_CLASSES = frozenset({"image", "video"})
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
    budget: Budget | None = None
    """Of its host: which device a server with one device is told to use."""
    enhancers: Pair = field(default_factory=Pair)
    """Prompt rewriters detected for an image or video model."""


def entry_of(model: PlannedModel, plan: Plan, settings: Settings, taken_names: Collection[str]) -> Entry:
    """The entry of one plan. `taken_names` are ids and aliases that a public name must not repeat."""
    own = plan.entry
    fields: dict[str, Any] = {name: own[name] for name in LEADING if name in own}
    fields["ttl"] = settings.ttl_sec if model.override.ttl_sec is None else model.override.ttl_sec
    if (env := plan_env(plan, model.budget)) and not plan.as_written:
        fields["env"] = env
    fields |= {name: own[name] for name in ("concurrencyLimit",) if name in own}
    est_ram = plan.est_ram_bytes if plan.model_class in RAM_CLASSES else 0
    fields |= estimate_keys(plan.est_vram_bytes / GIB, est_ram / GIB)
    if not plan.as_written:
        fields |= {name: own[name] for name in ("checkEndpoint",) if name in own}
        fields |= _enhancers(model, settings)
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
    block = own.get("capabilities") or _chat_capabilities(model, plan)
    if block and not plan.as_written:
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
        as_written=plan.as_written,
        guard=guard_of(plan, settings, model.override),
    )


def declared_entry(
    model: ExtraImageModel,
    settings: Settings,
    own: Override | None = None,
    *,
    devices: Budget | None = None,
    word_rules: str = POSIX,
) -> Entry:
    """The entry of an image model declared by hand; `own` is the override that names it, `devices` the host's."""
    answer = plan_declared(settings, model, own, devices=devices, word_rules=word_rules)
    override = declared_override(model, own)
    prompts = (override.prompt_enhancer_prompt, override.prompt_enhancer_edit_prompt)
    pair = resolve(Pair(), override.prompt_enhancer, override.prompt_enhancer_edit)
    fields: dict[str, Any] = {"ttl": settings.ttl_sec if override.ttl_sec is None else override.ttl_sec}
    if devices is not None and (env := _device_env("image", devices)):
        fields["env"] = env
    fields |= estimate_keys(answer.est_vram_gib, 0.0)
    fields["checkEndpoint"] = answer.entry["checkEndpoint"]
    fields |= enhancer_keys(settings.prompt_enhancers, pair.text, pair.edit, *prompts)
    if override.unlisted:
        fields["unlisted"] = True
    name = model.name.strip()
    return Entry(
        id=name,
        command=tuple(line.strip() for line in answer.command.lines if line.strip()),
        fields={**fields, "capabilities": answer.entry["capabilities"]},
        comments=(" ".join(["extra image model", *(f"{key}={value}" for key, value in answer.facts.items())]),),
        model_class="image",
        base=name,
        path=model.model_path.strip(),
    )


def plan_env(plan: Plan, budget: Budget | None = None) -> list[str]:
    """Device pins: the split of a chat model decides; other servers use one device and must be told which."""
    placement = plan.placement
    if placement is not None or budget is None:
        on_gpu = placement is not None and placement.gpu_layers > 0
        split = placement.tensor_split if placement is not None and on_gpu else ()
        if budget is None or not on_gpu:
            return entry_env("llm", device_count=len(split), tensor_split=split)
        hidden, only = budget.visible_ids, budget.only_id
        if budget.is_lone and budget.runtime == CUDA and not hidden:
            return [BUS_ORDER]
        return entry_env("llm", device_count=len(split), tensor_split=split, visible_ids=hidden, only_device=only)
    return _device_env(plan.model_class, budget)


def _device_env(model_class: str, budget: Budget) -> list[str]:
    main = budget.main_gpu
    ids = budget.backend_ids
    return entry_env(
        model_class,
        device_count=len(budget.device_bytes),
        backend_device=ids[main] if ids and main is not None else "",
        runtime=budget.runtime,
        telemetry_index=main or 0,
        visible_ids=budget.visible_ids,
        only_device=budget.only_id,
    )


def _enhancers(model: PlannedModel, settings: Settings) -> dict[str, str]:
    """Prompt rewriters of an image or video model: those of its settings, else those detected by name."""
    if model.row.model_class not in ENHANCED_CLASSES:
        return {}
    own = model.override
    pair = resolve(model.enhancers, own.prompt_enhancer, own.prompt_enhancer_edit)
    prompts = (own.prompt_enhancer_prompt, own.prompt_enhancer_edit_prompt)
    return enhancer_keys(settings.prompt_enhancers, pair.text, pair.edit, *prompts)


def _chat_capabilities(model: PlannedModel, plan: Plan) -> dict[str, Any]:
    return capabilities(plan.argv, _effort_levels(model)) if plan.model_class == "llm" and not plan.engine else {}


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
    size = f"{_figure(model.row.size_bytes / GIB)}GB"
    remarks = [f"WARNING: {text}" for text in plan_warnings(plan)] + [f"NOTE: {text}" for text in plan.notes]
    if plan.facts:
        first, *others = [f"{name}={value}" for name, value in plan.facts.items()]
        return [" ".join([first, f"size={size}", *others]), *remarks]
    header = model.header or Header()
    facts: Mapping[str, str] = {
        "arch": header.architecture or "(none declared)",
        "size": size,
        "blocks": str(header.block_count),
        "moe": "true" if header.is_moe else "false",
    }
    estimate = f"est vram={_figure(plan.est_vram_bytes / GIB)}GB ram={_figure(plan.est_ram_bytes / GIB)}GB"
    judged = [] if plan.verdict == UNKNOWN else [estimate]
    return [" ".join(f"{name}={value}" for name, value in facts.items()), *judged, *remarks]


def plan_warnings(plan: Plan) -> list[str]:
    """What a person must know about a plan; one over its budget is still served, and says why it will not fit."""
    texts = list(plan.warnings)
    if plan.verdict == OVER:
        shortfalls = [reason.text for reason in plan.reasons if reason.kind in SHORTFALLS]
        texts.append(" ".join(["does not fit the budget.", *shortfalls]))
    if plan.verdict == UNKNOWN:
        texts += [reason.text for reason in plan.reasons if reason.kind == "cannot-judge"]
    return texts


def _figure(value_gb: float) -> str:
    return scalars.number(scalars.gb(value_gb))
