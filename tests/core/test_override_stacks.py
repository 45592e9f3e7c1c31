"""Preview, save and the entries of all three routers say the same words, over random stacks of pins."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import pytest
import yaml
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from gpus_app.core.budget import Budget
from models_app.core.catalog import Header, Plan, Row
from models_app.core.discovery.inventory import Inventory
from models_app.core.export.presets import reading
from models_app.core.export.presets.options import option_of_flag, options
from models_app.core.fields.groups import model_fields
from models_app.core.generate import Generated, generate
from models_app.core.launch.flag_table import read_words
from models_app.core.launch.llama_flags import LLAMA
from models_app.core.launch.locks import locked_fields
from models_app.core.launch.sd_flags import SD
from models_app.core.launch.tokens import POSIX, WINDOWS, split_command, split_flag_token
from models_app.core.plans import plan_row
from models_app.core.plans.chosen import without_chosen
from models_app.core.settings import Override, Settings, override_from_mapping, record_to_mapping
from models_app.core.state.checks import Limits
from models_app.core.state.editor import editor_save
from models_app.core.state.overrides import merge_overrides, resolve_override
from tests.override_stacks import NEVER, Kind, Stack, form_values, launch_texts

PATH = "/models/my model.Q4_K_M.gguf"
BUDGET = Budget(device_bytes=(23 << 30, 11 << 30), ram_bytes=48 << 30)
FIXED = {"target_vram_gb": 34.0, "max_ram_gb": 48.0}
LIMITS = Limits(trained_tokens=40_960, block_count=32, device_count=2)
CHAT = Kind("llm", "llama", LLAMA, PATH, "Q4_K_M", LIMITS)
MODELS = ("qwen3-8b-q4_k_m", "mixtral-8x7b-q4_0")
REPEATED = {"--lora", "--lora-scaled", "--spec-type"}
GENERATED_TOGETHER = {"reasoningFmt"}
"""Knobs of which the generated command has two flags: `--reasoning-format none --reasoning off`."""
BOUNDED = settings(
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
    max_examples=20,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)


ROW = Row(
    id="m",
    base_id="m",
    full_path=PATH,
    file_name="my model.Q4_K_M.gguf",
    model_class="llm",
    quant="Q4_K_M",
    draft_path="/models/draft of m.gguf",
    draft_kind="mtp",
    mmproj_path="/models/mmproj of m.gguf",
)


class Model(str):
    """A model by name: a failure prints neither its header nor its row."""

    header: Header
    row: Row = ROW


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest, zoo_header: Callable[[str], Header]) -> Model:
    found = Model(request.param)
    found.header = zoo_header(found)
    return found


@pytest.fixture(params=["image", "video"])
def diffusion(request: pytest.FixtureRequest) -> Model:
    found = Model(request.param)
    found.header = Header(architecture="wan" if found == "video" else "flux", file_size_bytes=7 << 30)
    found.row = Row(
        id="m", base_id="m", full_path=PATH, file_name="m.gguf", model_class=found, size_bytes=7 << 30, quant="Q4_K_M"
    )
    return found


def pinned(stack: Stack) -> Override:
    found = resolve_override(merge_overrides(stack.rows, ()), ROW.full_path, ROW.quant, str.__eq__)
    return found or Override()


def planner(model: Model, fleet: Settings, rules: str = POSIX) -> Callable[[Override], tuple[Plan, ...]]:
    return lambda override: plan_row(
        model.row,
        model.header,
        settings=fleet,
        override=override,
        budget=BUDGET,
        headers=lambda _path: None,
        word_rules=rules,
    )


def exported(model: Model, fleet: Settings, override: Override, dialect: str, rules: str = POSIX) -> Generated:
    plans = planner(model, fleet, rules)
    return generate(
        Inventory((model.row,), (), ()),
        lambda _row, _header, own: plans(own),
        header_of=lambda _path: model.header,
        settings=fleet,
        timestamp="T",
        overrides=[replace(override, match=PATH, quant="")],
        same_path=str.__eq__,
        dialect=dialect,
        word_rules=rules,
    )


def without(argv: Sequence[str], flag: str) -> tuple[str, ...]:
    """The words without a flag and its value."""
    words = read_words(LLAMA, argv)
    dropped = {index for index, word in enumerate(words) if word.flag and word.flag.name == flag and not word.is_value}
    dropped |= {index + 1 for index in dropped if not words[index].flag.inline}
    return tuple(word.text for index, word in enumerate(words) if index not in dropped)


def as_options(argv: Iterable[str]) -> dict[str, str]:
    """What llama-server reads from a command, by option: lists add up, of anything else the last counts."""
    found: dict[str, str] = {}
    words = iter(argv)
    for word in words:
        flag = split_flag_token(word)
        option = option_of_flag(flag.name)
        assert option is not None, word
        if option.is_switch:
            found[option.name] = "false" if flag.name.replace("_", "-") in option.negated else "true"
            continue
        value = flag.value if flag.inline else next(words)
        if option.name == "lora-scaled" and ":" not in value[2:]:
            value = f"{value}:{next(words)}"
        adds_up = option.name in ("lora", "lora-scaled", "spec-type", "override-tensor", "override-kv")
        found[option.name] = f"{found[option.name]},{value}" if adds_up and option.name in found else value
    return found


ROUTERS_OWN = {"host", "port", "slot-save-path"}
ENTRYS_OWN = {"alias", "tags", "sleep-idle-seconds"}


def check_section(plan: Plan, given: Mapping[str, str]) -> None:
    """One section of a preset file starts the model as its plan says."""
    mine = {option.name: option for option in options()}
    wanted = {
        name: value
        for name, value in as_options(plan.argv[1:]).items()
        if name not in ROUTERS_OWN and mine[name].reaches_model
    }
    passed = {name: value for name, value in reading.passed(given).items() if name not in ENTRYS_OWN}
    assert passed == wanted


def check_entries(model: Model, fleet: Settings, override: Override, rules: str = POSIX) -> int:
    """The entries of all dialects against the plans; how many there were."""
    plans = planner(model, fleet, rules)(override)
    seen = 0
    for dialect in ("quartermaster", "llama-swap"):
        made = exported(model, fleet, override, dialect, rules)
        models = yaml.safe_load(made.text)["models"] or {}
        left_out = {item.id for item in made.document.skipped}
        for plan in plans:
            if plan.profile_id not in models or plan.skip_reason:
                assert plan.skip_reason or plan.profile_id in left_out, plan.profile_id
                continue
            argv = without(plan.argv, "--slot-save-path") if dialect == "llama-swap" else plan.argv
            assert tuple(split_command(models[plan.profile_id]["cmd"], rules)) == argv
            seen += 1
        assert not [item for item in made.findings if item.severity == "block"], made.findings
    made = exported(model, fleet, override, "llama-server", rules)
    sections = reading.read(made.text).models
    for plan in plans:
        if plan.profile_id in sections and not plan.skip_reason:
            check_section(plan, sections[plan.profile_id])
            seen += 1
    return seen


@BOUNDED
@given(stack=CHAT.stacks(**FIXED), form=form_values(model_fields("llm", "llama"), LIMITS), text=launch_texts(LLAMA))
def test_preview_save_and_every_routers_entry_are_the_same_words(model, stack, form, text):
    start = pinned(stack)
    planned = planner(model, stack.settings)
    values = {**form, "customArgs": text}
    preview = editor_save(start, PATH, values, form_keys=values.keys(), is_moe=model.header.is_moe)
    saved = without_chosen(preview, values.keys(), planned, stack.settings)
    stored = override_from_mapping(record_to_mapping(saved))
    assert [(plan.profile_id, plan.argv) for plan in planned(stored)] == [
        (plan.profile_id, plan.argv) for plan in planned(preview)
    ]
    check_entries(model, stack.settings, stored)


@BOUNDED
@given(stack=CHAT.stacks(**FIXED))
def test_a_windows_host_runs_the_same_words_as_its_plans_say(model, stack):
    check_entries(model, stack.settings, pinned(stack), WINDOWS)


@BOUNDED
@given(stack=CHAT.stacks(**FIXED), form=form_values(model_fields("llm", "llama"), LIMITS), text=launch_texts(LLAMA))
def test_no_flag_stands_twice_and_every_flag_is_in_the_table(model, stack, form, text):
    own = editor_save(pinned(stack), PATH, {**form, "customArgs": text}, form_keys=[*form, "customArgs"])
    for plan in planner(model, stack.settings)(own):
        words = read_words(LLAMA, plan.argv[1:])
        typed = [token.text for token in plan.tokens if token.source == "custom"]
        flags = [word.row for word in words if word.row is not None and not word.is_value]
        written = [row.knob for row in flags if row.canonical not in REPEATED]
        twice = {knob for knob in written if written.count(knob) > 1}
        own_twice = [row.knob for word in read_words(LLAMA, typed) if (row := word.row) and not word.is_value]
        assert twice <= {knob for knob in own_twice if own_twice.count(knob) > 1} | GENERATED_TOGETHER, plan.argv
        assert not [word.text for word in words if word.flag is not None and word.row is None]


@BOUNDED
@given(stack=CHAT.stacks(**FIXED), data=st.data())
def test_setting_a_field_and_clearing_it_restores_the_override_and_the_files(model, stack, data):
    fields = {field.key: field for field in model_fields("llm", "llama")}
    planned = planner(model, stack.settings)
    start = editor_save(pinned(stack), PATH, {}, form_keys=[], is_moe=model.header.is_moe)
    key = data.draw(st.sampled_from([key for key in fields if key not in {*record_to_mapping(start), *NEVER}]))
    value = data.draw(form_values([fields[key]], LIMITS, least=1, most=1))
    changed = editor_save(start, PATH, value, form_keys=value.keys(), is_moe=model.header.is_moe)
    stored = without_chosen(changed, value.keys(), planned, stack.settings)
    back = editor_save(stored, PATH, {key: None}, form_keys=[key], is_moe=model.header.is_moe)
    assert back == start
    assert exported(model, stack.settings, back, "llama-server").text == (
        exported(model, stack.settings, start, "llama-server").text
    )


@BOUNDED
@given(stack=CHAT.stacks(**FIXED), text=launch_texts(LLAMA))
def test_a_launch_text_that_comes_and_goes_takes_only_what_it_owns(model, stack, text):
    start = replace(
        editor_save(pinned(stack), PATH, {}, form_keys=[], is_moe=model.header.is_moe), custom_args="", extra_args=""
    )
    changed = editor_save(start, PATH, {"customArgs": text}, form_keys=["customArgs"], is_moe=model.header.is_moe)
    assert changed.custom_args == text
    back = editor_save(changed, PATH, {"customArgs": ""}, form_keys=["customArgs"], is_moe=model.header.is_moe)
    lost = record_to_mapping(start).keys() - record_to_mapping(back).keys()
    locked = {} if start.custom_args_off else locked_fields(text, "llama", is_moe=model.header.is_moe)
    assert lost == record_to_mapping(start).keys() & locked.keys()


DIFFUSION = {name: Kind(name, "sd", SD, PATH, "Q4_K_M") for name in ("image", "video")}


@BOUNDED
@given(data=st.data())
def test_image_and_video_models_run_what_their_plans_say(diffusion, data):
    kind = DIFFUSION[diffusion]
    stack, text = data.draw(kind.stacks(**FIXED)), data.draw(launch_texts(SD))
    form = data.draw(form_values(model_fields(diffusion, "sd"), kind.limits))
    own = editor_save(pinned(stack), PATH, {**form, "customArgs": text}, form_keys=[*form, "customArgs"])
    assert check_entries(diffusion, stack.settings, own) >= 2
    for plan in planner(diffusion, stack.settings)(own):
        words = read_words(SD, plan.argv[1:])
        assert not [word.text for word in words if word.flag is not None and word.row is None]
        written = [word.row.knob for word in words if word.row is not None and not word.is_value]
        typed = read_words(SD, [token.text for token in plan.tokens if token.source == "custom"])
        yours = [word.row.knob for word in typed if word.row is not None and not word.is_value]
        twice = {knob for knob in written if written.count(knob) > 1}
        assert twice <= {knob for knob in yours if yours.count(knob) > 1}, plan.argv
