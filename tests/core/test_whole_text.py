"""A launch text that is the whole command, and ids that a person chose."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from gpus_app.core.budget import budget_of
from models_app.core.catalog import Header, Plan
from models_app.core.export.entry import PlannedModel, entry_of
from models_app.core.export.llama_swap import Options
from models_app.core.export.llama_swap_entry import Converted, convert_entry
from models_app.core.launch.compose import compose
from models_app.core.launch.llama_flags import LLAMA
from models_app.core.plans import plan_row
from models_app.core.plans.engines.request import RAW
from models_app.core.settings import Override, Settings, Variant
from models_app.core.units import GIB
from tests.core.test_plan_row import PROJECTOR, row_of

Planner = Callable[..., tuple[Plan, ...]]
BUDGET = budget_of([24 * GIB], 64 * GIB)
TEXT = "--jinja -c 16384 -ngl 99"


@pytest.fixture
def header(zoo_header: Callable[[str], Header]) -> Header:
    return replace(zoo_header("qwen3-8b-q4_k_m"), path="")


@pytest.fixture
def plans(header: Header) -> Planner:
    def plan(override: Override, **more: object) -> tuple[Plan, ...]:
        headers = {"/models/mmproj.gguf": PROJECTOR}
        row = row_of(header, **more)
        return plan_row(row, header, settings=Settings(), override=override, budget=BUDGET, headers=headers.get)

    return plan


def alone(text: str, **more: object) -> Override:
    return Override(custom_args=text, custom_args_only=True, **more)  # type: ignore[arg-type]


def test_only_program_model_and_port_are_added(plans: Planner) -> None:
    assert plans(alone(TEXT))[0].argv == (
        *("llama-server", "-m", "/models/m.gguf", "--port", "${PORT}"),
        *("--jinja", "-c", "16384", "-ngl", "99"),
    )


def test_what_the_text_names_is_not_added(plans: Planner) -> None:
    text = "--port ${PORT} --model /models/m.gguf -c 4096"
    assert " ".join(plans(alone(text))[0].argv) == f"llama-server {text}"


def test_a_text_of_comments_is_no_command(plans: Planner) -> None:
    assert plans(alone("# later"))[0].lines == plans(Override())[0].lines
    assert not plans(alone("# later"))[0].as_written


def test_a_text_that_is_switched_off_is_no_command(plans: Planner) -> None:
    assert plans(alone(TEXT, custom_args_off=True))[0].lines == plans(Override())[0].lines


def test_no_twin_and_no_projector_are_made_up(plans: Planner) -> None:
    found = plans(alone(TEXT), mmproj_path="/models/mmproj.gguf")
    assert [plan.profile_id for plan in found] == ["m"]
    assert "--mmproj" not in found[0].argv


def test_the_projector_of_the_text_is_charged(plans: Planner) -> None:
    bare, seeing = plans(alone(TEXT))[0], plans(alone(f"{TEXT} --mmproj /models/mmproj.gguf"))[0]
    assert seeing.est_vram_bytes > bare.est_vram_bytes + GIB // 2


def test_figures_are_those_of_the_servers_own_defaults(plans: Planner) -> None:
    ours = plans(Override(custom_args=TEXT, kv_k="q8_0", kv_v="q8_0"))[0]
    theirs = plans(alone(TEXT, kv_k="q8_0", kv_v="q8_0"))[0]
    assert (ours.placement.type_k, theirs.placement.type_k) == ("q8_0", "f16")
    assert theirs.placement.ctx_tokens == 16384
    assert plans(alone(f"{TEXT} -ctk q4_0 -ctv q4_0"))[0].placement.type_k == "q4_0"


def test_a_variant_with_a_text_of_its_own_says_itself_whether_it_is_the_command(plans: Planner) -> None:
    variants = (Variant(name="more", custom_args="-c 8192"), Variant(name="same"))
    _, more, same = plans(alone(TEXT, variants=variants))
    assert "--metrics" in more.argv
    assert same.argv[5:] == tuple(TEXT.split())
    assert (more.as_written, same.as_written) == (False, True)


def test_engines_without_a_flag_table_are_left_alone() -> None:
    assert compose(RAW, ["tts", "--x 1"], "--y", alone=False).argv == ("tts", "--x", "1", "--y")
    assert compose(LLAMA, ["llama-server", "--metrics"], "--y", alone=True).argv == ("llama-server", "--y")


def test_a_chosen_id_names_the_base_and_what_is_made_from_it(plans: Planner) -> None:
    override = Override(
        served_id="qwen",
        ctx_variants=(8192,),
        variants=(Variant(name="long", ctx=65536), Variant(name="x", served_id="coder")),
    )
    assert [plan.profile_id for plan in plans(override)] == ["qwen", "qwen-8k", "qwen-long", "coder"]


def test_a_chosen_id_that_is_taken_within_the_model_is_said(plans: Planner) -> None:
    variants = (Variant(name="x", served_id="m"),)
    assert plans(Override(variants=variants))[1].skip_reason


def test_nothing_is_added_to_the_entry_of_a_written_command(plans: Planner, header: Header) -> None:
    override = alone(TEXT, ttl_sec=0)
    model = PlannedModel(row_of(header), header, plans(override), override, budget=BUDGET)
    entry = entry_of(model, model.plans[0], Settings(), ())
    assert set(entry.fields) == {"ttl", "estVramGB", "estRamGB"} & set(entry.fields)
    converted = convert_entry(entry, Options())
    assert isinstance(converted, Converted)
    assert dict(converted.entry.fields) == {"ttl": 0}
    plain = convert_entry(replace(entry, as_written=False), Options())
    assert isinstance(plain, Converted)
    assert "metadata" in plain.entry.fields
