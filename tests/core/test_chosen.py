"""Saves are sparse and change no command: properties over random overrides of a dense model and a mixture."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpus_app.core.budget import Budget
from models_app.core.catalog import Header, Plan, Row
from models_app.core.discovery.inventory import Inventory
from models_app.core.fields.groups import model_fields
from models_app.core.generate import generate
from models_app.core.launch.flag_table import read_words
from models_app.core.launch.llama_flags import LLAMA
from models_app.core.launch.tokens import split_command
from models_app.core.plans import plan_row
from models_app.core.plans.chosen import chosen_values, without_chosen
from models_app.core.settings import Override, Settings, override_from_mapping, record_to_mapping
from models_app.core.state.editor import editor_save

PATH = "/models/m.gguf"
SETTINGS = Settings(target_vram_gb=34.0, max_ram_gb=48.0)
BUDGET = Budget(device_bytes=(23 << 30, 11 << 30), ram_bytes=48 << 30)
KEYS = [field.key for field in model_fields("llm", "llama")]
ADDITIVE = {row.canonical for row in LLAMA.rows if row.additive} | {"--spec-type"}

values = st.fixed_dictionaries(
    {},
    optional={
        "ctx": st.sampled_from([4096, 8192, 32768, 40960]),
        "parallel": st.integers(1, 3),
        "kvK": st.sampled_from(["f16", "q8_0", "q4_0"]),
        "kvV": st.sampled_from(["f16", "q8_0"]),
        "ub": st.sampled_from([256, 512, 1024]),
        "threads": st.sampled_from([3, 7]),
        "flashAttn": st.sampled_from(["on", "off", "auto"]),
        "cpuOffload": st.integers(1, 8),
        "vramTargetGB": st.sampled_from([8.0, 34.0]),
        "temp": st.sampled_from([0.0, 0.7]),
        "topK": st.sampled_from([0, 20]),
        "dry": st.booleans(),
        "preserveThinking": st.booleans(),
        "ctxCheckpoints": st.sampled_from([0, 3, 8]),
        "reasoningFmt": st.sampled_from(["auto", "deepseek", "off"]),
        "ctxVariants": st.just((8192,)),
        "spec": st.sampled_from(["ngram-mod", "none", "ngram-map-k4v+ngram-mod"]),
        "customArgs": st.sampled_from(["-t 12", "-c 16384 --parallel 2", "--no-mmap -ub 64", "--lora a.gguf --prio 1"]),
    },
)


@pytest.fixture(scope="module", params=["qwen3-8b-q4_k_m", "mixtral-8x7b-q4_0"])
def planned(
    request: pytest.FixtureRequest, zoo_header: Callable[[str], Header]
) -> Callable[[Override], Sequence[Plan]]:
    header = zoo_header(request.param)
    row = Row(id="m", full_path=PATH, file_name="m.gguf", model_class="llm")
    return lambda override: plan_row(row, header, settings=SETTINGS, override=override, budget=BUDGET)


def commands(plans: Sequence[Plan]) -> list[tuple[str, tuple[str, ...]]]:
    return [(plan.profile_id, plan.argv) for plan in plans]


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(form=values)
def test_a_sparse_save_runs_what_the_preview_showed(planned, form):
    previewed = editor_save(None, PATH, form, form_keys=[*KEYS, "customArgs"])
    saved = without_chosen(previewed, form.keys(), planned, SETTINGS)
    assert commands(planned(saved)) == commands(planned(previewed))
    assert without_chosen(saved, form.keys(), planned, SETTINGS) == saved, "a second save changes nothing"
    assert record_to_mapping(saved).items() <= record_to_mapping(previewed).items()
    stored = override_from_mapping(record_to_mapping(saved))
    assert stored == saved, "what is stored reads back the same"


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(form=values)
def test_the_written_entry_runs_what_the_preview_showed(planned, form):
    saved = without_chosen(
        editor_save(None, PATH, form, form_keys=[*KEYS, "customArgs"]), form.keys(), planned, SETTINGS
    )
    row = Row(id="m", full_path=PATH, file_name="m.gguf", model_class="llm", base_id="m")
    written = generate(
        Inventory((row,), (), ()),
        lambda _row, _header, override: planned(override),
        header_of=lambda _path: None,
        settings=SETTINGS,
        timestamp="2026-11-30T10:00:00Z",
        overrides=[saved],
        dialect="llama-swap",
    )
    models = yaml.safe_load(written.text)["models"]
    for plan in planned(saved):
        assert tuple(split_command(models[plan.profile_id]["cmd"])) == plan.argv


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(form=values, data=st.data())
def test_setting_and_clearing_a_field_restores_the_commands(planned, form, data):
    base = editor_save(None, PATH, {}, form_keys=KEYS)
    key = data.draw(st.sampled_from(sorted({*form} - {"customArgs"} or {"ctx"})))
    cleared = {key: None}
    changed = editor_save(base, PATH, {key: form.get(key, 8192)}, form_keys=[key])
    back = editor_save(changed, PATH, cleared, form_keys=[key])
    assert back == base
    assert commands(planned(back)) == commands(planned(base))


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(form=values)
def test_a_text_never_makes_a_flag_stand_twice(planned, form):
    for plan in planned(editor_save(None, PATH, form, form_keys=[*KEYS, "customArgs"])):
        words = read_words(LLAMA, plan.argv)
        flags = [word.row.canonical for word in words if word.row is not None and not word.is_value]
        single = [flag for flag in flags if flag not in ADDITIVE]
        assert len(single) == len(set(single)), plan.argv


def test_a_value_counts_as_chosen_only_with_the_others_in_place(planned):
    alone = planned(Override())[0].placement.ctx_tokens
    two = Override(parallel=2, ctx=alone)
    kept = without_chosen(two, {"ctx", "parallel"}, planned, SETTINGS)
    assert planned(kept)[0].placement.ctx_tokens == alone
    assert kept.parallel == 2


def test_chosen_values_are_typed_like_their_fields(planned):
    chosen = chosen_values(planned(Override())[0], SETTINGS)
    assert chosen["threads"] == 7
    assert chosen["flashAttn"] == "on"
    assert chosen["preserveThinking"] is True
    assert chosen["dry"] is False
    assert chosen["vramTargetGB"] == pytest.approx(34.0)
    assert isinstance(chosen["ctx"], int)
