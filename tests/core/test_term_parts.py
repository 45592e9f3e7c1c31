"""What "how?" says: the addends of every memory term sum to its figure in every place, and their factors multiply."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gpus_app.core.budget import budget_of
from models_app.core.catalog import Header, MemoryTerm, Plan
from models_app.core.plans import plan_row
from models_app.core.readers import read_header
from models_app.core.settings import Override, Settings
from tests.core.test_plan_row import PROJECTOR, row_of
from tests.zoo import more_models, zoo

SOME_MORE = (
    "falcon-h1-7b",
    "jamba-mini-52b",
    "gemma4-26b-a4b",
    "minimax-text-01",
    "rwkv7-2.9b",
    "kimi-linear-48b",
    "llama4-scout",
    "plamo2-8b",
)
BUDGETS = {
    "one card": budget_of((24.0,), 64.0),
    "small card": budget_of((6.0,), 64.0),
    "three cards": budget_of((8.0, 12.0, 6.0), 64.0),
    "none": budget_of((), 512.0),
}
LAUNCHES = {
    "automatic": Override(),
    "slots": Override(parallel=3, kv_k="q8_0", kv_v="q8_0"),
    "half in RAM": Override(cpu_offload=12, ctx=8192),
    "no flash": Override(flash_attn="off", ctx=8192),
    "cache in RAM": Override(kv_in_ram=True, ctx=16384),
    "whole windows, separate pools": Override(
        swa_full=True, parallel=2, ctx=8192, custom_args="--no-kv-unified -ctk q8_0 -ctv f16"
    ),
}


@pytest.fixture(scope="module")
def more_header(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Header]:
    folder: Path = tmp_path_factory.mktemp("more")
    return functools.cache(lambda name: read_header(str(more_models.write(name, folder))))


def plan_of(header: Header, budget: object, override: Override, **companions: object) -> Plan:
    return plan_row(
        row_of(header, **companions),
        header,
        settings=Settings(),
        override=override,
        budget=budget,  # type: ignore[arg-type]
        headers=lambda path: PROJECTOR if "mmproj" in path else None,
    )[0]


def places(term: MemoryTerm) -> Iterator[tuple[int | None, int]]:
    yield from enumerate(term.device_bytes)
    yield None, term.ram_bytes


def check(plan: Plan) -> None:
    for term in plan.terms:
        for place, figure in places(term):
            parts = [part for part in term.parts if part.device == place]
            assert sum(part.size_bytes for part in parts) == figure, (term.key, place, parts)
        for part in term.parts:
            assert part.size_bytes > 0 or term.key in ("compute", "drafter", "projector"), part
            if part.factors:
                assert round(math.prod(value for value, _ in part.factors)) == part.size_bytes, part


@pytest.mark.parametrize("launch", LAUNCHES.values(), ids=LAUNCHES.keys())
@pytest.mark.parametrize("budget", BUDGETS.values(), ids=BUDGETS.keys())
def test_every_figure_of_the_zoo_is_the_sum_of_its_parts(zoo_header, budget, launch) -> None:
    for name in zoo.MODELS:
        plan = plan_of(zoo_header(name), budget, launch)
        if plan.placement is not None:
            check(plan)


@pytest.mark.parametrize("model", SOME_MORE)
def test_the_same_holds_for_rarer_caches(more_header, model: str) -> None:
    for budget in BUDGETS.values():
        for launch in LAUNCHES.values():
            check(plan_of(more_header(model), budget, launch))


def test_every_kind_of_cache_has_its_product(zoo_header) -> None:
    def labels(model: str, **changes: object) -> set[str]:
        plan = plan_of(zoo_header(model), BUDGETS["one card"], Override(**changes))  # type: ignore[arg-type]
        context = next(term for term in plan.terms if term.key == "kv")
        assert all(part.factors for part in context.parts)
        return {part.label for part in context.parts}

    assert labels("llama31-8b-q4_k_m") == {"K and V, whole window"}
    assert labels("gemma3-12b-q4_k_m") == {"K and V, whole window", "K and V, sliding window"}
    assert labels("deepseek-v2-lite-q4_k_m") == {"K, whole window"}
    assert labels("qwen35-9b-q4_k_m") == {"K and V, whole window", "recurrent state"}
    assert labels("codestral-mamba-7b-q8_0") == {"recurrent state"}
    assert labels("gemma3-12b-q4_k_m", custom_args="-ctk q8_0 -ctv f16") == {
        "K, whole window",
        "V, whole window",
        "K, sliding window",
        "V, sliding window",
    }


def test_layers_that_share_a_cache_are_named(zoo_header) -> None:
    plan = plan_of(zoo_header("gemma3n-e4b-q4_k_m"), BUDGETS["one card"], Override())
    context = next(term for term in plan.terms if term.key == "kv")
    assert "15 layers have none of their own and read those of earlier ones" in context.how
    layers = [value for part in context.parts for value, unit in part.factors if unit.startswith("layer")]
    assert sum(layers) == 20


def test_companions_have_their_parts(zoo_header) -> None:
    header = zoo_header("llama31-8b-q4_k_m")
    budget = BUDGETS["three cards"]
    projector = plan_of(header, budget, Override(mmproj="gpu"), mmproj_path="/m/mmproj.gguf")
    check(projector)
    drafted = plan_of(
        header,
        budget,
        Override(spec="draft-dflash"),
        draft_path="/m/d.gguf",
        draft_kind="dflash",
        draft_size_bytes=1 << 30,
    )
    check(drafted)
    assert "drafter" in {term.key for term in drafted.terms}
    own_head = plan_of(zoo_header("glm45-air-ud_q2"), budget, Override())
    draft = next(term for term in own_head.terms if term.key == "drafter")
    assert [part.label for part in draft.parts] == [
        "draft blocks",
        "K of the drafts",
        "V of the drafts",
        "compute buffer of its own",
    ]
    assert {part.device for part in draft.parts} == {2}


def test_no_more_checkpoints_are_counted_than_a_window_holds(zoo_header) -> None:
    short = plan_of(zoo_header("gemma3-12b-q4_k_m"), BUDGETS["one card"], Override(ctx=4096, ctx_checkpoints=32))
    term = next(term for term in short.terms if term.key == "checkpoints")
    (part,) = term.parts
    assert part.factors[0][0] < 32
    assert term.how.startswith(f"Up to {part.factors[0][0]:g} checkpoints")
