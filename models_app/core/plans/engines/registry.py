"""Class -> its planner, as a table, and the plans of one row of such a class."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from models_app.core.catalog import Plan
from models_app.core.discovery.names import slugify
from models_app.core.plans.engines import audio, diffusion, encoders, segment, speech, three_d, vllm
from models_app.core.plans.engines.request import Answer, Request, on_its_devices, plan_of, skipped
from models_app.core.state.profile_set import variant_id
from models_app.core.state.variants import merge_image_variant, named_variants

BASE, VARIANT = "base", "variant"


def _always(_request: Request) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class Engine:
    """How one class is planned. `skip_reason` says why a model of it cannot be served, "" when it can."""

    plan: Callable[[Request], Answer]
    skip_reason: Callable[[Request], str] = _always
    has_variants: bool = False
    """Its variants are entries of their own."""
    reads_header: bool = True
    splits: bool = False
    """It can share a model among devices (tensor parallel)."""


ENGINES: Mapping[str, Engine] = {
    "sam": Engine(segment.plan, reads_header=False),
    "3d": Engine(three_d.plan, three_d.skip_reason, reads_header=False),
    "video": Engine(diffusion.plan, has_variants=True),
    "image": Engine(diffusion.plan, has_variants=True),
    "decision": Engine(encoders.plan_decision),
    "embedding": Engine(encoders.plan_embedding),
    "audiocpp": Engine(audio.plan, audio.skip_reason),
    "tts": Engine(speech.plan_tts),
    "asr": Engine(speech.plan_asr),
    "hf": Engine(vllm.plan, vllm.skip_reason, splits=True),
}
VLLM_LLM = Engine(vllm.plan, vllm.skip_reason, splits=True)
"""A chat model in GGUF form for which a person chose vllm."""


def plan_class(engine: Engine, asked: Request) -> tuple[Plan, ...]:
    """The plans of one row, the base first; one that says why where there is none."""
    count = max(1, asked.override.vllm_tensor_parallel) if engine.splits else 1
    base = replace(asked, device_count=count, served_id=asked.override.served_id.strip() or asked.served_id)
    base = replace(base, settings=on_its_devices(base.settings, base.budget, count))
    if reason := engine.skip_reason(base):
        return (skipped(base.row, base.override, reason),)
    return tuple(plan_of(request, engine.plan(request), kind) for kind, request in _profiles(engine, base))


def _profiles(engine: Engine, base: Request) -> Iterator[tuple[str, Request]]:
    yield BASE, base
    if not engine.has_variants:
        return
    taken = {base.served_id}
    for variant in named_variants(base.override.variants, ()):
        served_id = variant_id(base.served_id, variant)
        if served_id not in taken and slugify(variant.name):
            taken.add(served_id)
            yield VARIANT, replace(base, override=merge_image_variant(base.override, variant), served_id=served_id)
