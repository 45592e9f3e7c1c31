"""The spawn guard's decision: facts in, a command or a refusal out (sizing.md 16)."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from gpus_app.core.budget import machine_budget
from gpus_app.core.gpu_set import gpu_set
from gpus_app.core.readings import DeviceReading
from models_app.core.catalog import Header
from models_app.core.launch.pins import pins_of
from models_app.core.plans import plan_row
from models_app.core.settings import Override, Settings
from models_app.core.spawn_guard.decision import decide, wanted_files
from models_app.core.spawn_guard.editing import value_of, with_value
from models_app.core.spawn_guard.facts import CHANGED, REFUSED, UNCHANGED, Facts
from models_app.core.spawn_guard.options import (
    GuardOptions,
    guard_apart,
    guard_words,
    is_guarded,
    read_guarded,
)
from models_app.core.units import GIB
from models_app.core.verbs.planning_run import row_of
from tests.core.test_gguf_hostile import slowness

DENSE, MIXTURE = "llama31-8b-q4_k_m", "qwen3-30b-a3b-q4_k_m"
BUS = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}


def card(free_gib, index=0, *, total_gib=24, name="NVIDIA A", **more):
    total = int(total_gib * GIB)
    return DeviceReading(index, name, total, total - int(free_gib * GIB), vendor="nvidia", uuid=f"GPU-{index}", **more)


def command(text="-ngl 99 -c 32768", model="m.gguf"):
    return ("/opt/llama-server", "-m", model, *text.split())


def facts(header, *readings, environment=BUS, **more):
    return Facts(readings, environment, header, **more)


def after(decision):
    """What of the placement the command says now."""
    pins = pins_of(list(decision.argv))
    return pins.ctx, pins.ngl, pins.n_cpu_moe


def planned(zoo_header, name, targets_gib, text=""):
    """(words of a plan, its header, its readings when nothing else runs)."""
    header = zoo_header(name)
    cards = [card(size, index, total_gib=size, name=f"NVIDIA {index}") for index, size in enumerate(targets_gib)]
    budget = machine_budget(gpu_set(cards), cards, sum(targets_gib), 64)
    row = row_of(header.path or f"/m/{name}.gguf", header)
    plan = plan_row(row, header, settings=Settings(), override=Override(custom_args=text), budget=budget)[0]
    return plan, header, cards


# --- the ladder of answers -------------------------------------------------------------------------------------


def test_less_and_less_is_free(zoo_header):
    """As planned, then a shorter window, then fewer layers, then nothing."""
    header = zoo_header(DENSE)
    outcomes, windows, layers = [], [], []
    for tenths in range(120, 0, -1):
        decision = decide(command(), GuardOptions(), facts(header, card(tenths / 10)))
        ctx, ngl, _ = after(decision)
        outcomes.append(decision.outcome)
        if decision.outcome != REFUSED:
            windows.append(ctx)
            layers.append(99 if ngl > header.block_count else ngl)
    assert list(dict.fromkeys(outcomes)) == [UNCHANGED, CHANGED, REFUSED]
    trimmed = [window for window in windows if window < 32768]
    assert trimmed == sorted(trimmed, reverse=True)
    assert {window % 4096 for window in windows} == {0}
    assert min(trimmed) >= 0.6 * 32768
    assert [count for window, count in zip(windows, layers, strict=True) if window < 32768] == [99] * len(trimmed)
    assert layers == sorted(layers, reverse=True)
    assert min(layers) >= header.block_count // 2  # the bar of one half


def test_experts_leave_before_layers(zoo_header):
    header = zoo_header(MIXTURE)
    decision = decide(command(), GuardOptions(min_gpu_fraction=0), facts(header, card(12)))
    ctx, ngl, experts = after(decision)
    assert (ctx, ngl) == (32768, 99)
    assert decision.argv[-2] == "--n-cpu-moe"
    assert 0 < experts < header.block_count
    less = decide(command(), GuardOptions(min_gpu_fraction=0), facts(header, card(2.6)))
    assert after(less)[1] < header.block_count
    assert after(less)[2] == header.block_count


def test_what_was_planned_below_the_bar_is_let_through(zoo_header):
    header = zoo_header(DENSE)
    assert decide(command("-ngl 33 -c 8192"), GuardOptions(), facts(header, card(3))).outcome == REFUSED
    low = decide(command("-ngl 12 -c 8192"), GuardOptions(), facts(header, card(2.5)))
    assert low.outcome == CHANGED
    assert after(low)[1] < 12
    off = decide(command("-ngl 33 -c 8192"), GuardOptions(min_gpu_fraction=0), facts(header, card(3)))
    assert off.outcome == CHANGED


def test_a_mixture_of_which_nobody_knows_the_share_of_experts_has_the_usual_one(zoo_header):
    header, room = zoo_header(MIXTURE), card(7)
    assert decide(command(), GuardOptions(), facts(header, room)).outcome == REFUSED
    unknown = replace(header, expert_weight_share=0.0)
    assert decide(command(), GuardOptions(), facts(unknown, room)).outcome == REFUSED


def test_a_refusal_says_what_is_needed_and_what_is_free(zoo_header):
    decision = decide(command(), GuardOptions(), facts(zoo_header(DENSE), card(0.4)))
    assert decision.outcome == REFUSED
    assert decision.argv == command()
    assert "needs" in decision.text
    assert "0.40 GiB is free" in decision.text
    assert "\n" not in decision.text


def test_a_target_caps_what_is_free(zoo_header):
    header = zoo_header(DENSE)
    assert decide(command(), GuardOptions(), facts(header, card(23))).outcome == UNCHANGED
    capped = decide(command(), GuardOptions(target_gb=7), facts(header, card(23)))
    assert capped.outcome == CHANGED
    assert "7.00 may be used" in capped.text


def test_a_launch_in_which_nothing_changes_is_called_unchanged(zoo_header):
    """A device that holds no layer, and less than is kept free everywhere, takes nothing from the target."""
    options, cards = GuardOptions(10, 0), [card(free, index) for index, free in enumerate((23, 1, 16))]
    known = facts(zoo_header("qwen25-32b-q4_k_m"), *cards)
    first = decide(command("-ngl 64 -c 4096 -ts 0,2,0"), options, known)
    again = decide(first.argv, options, known)
    assert (first.outcome, again.outcome, again.argv) == (CHANGED, UNCHANGED, first.argv)
    assert again.text.startswith("unchanged: needs ")


def test_a_larger_reserve_leaves_less(zoo_header):
    header = zoo_header(DENSE)
    windows = [
        after(decide(command(), GuardOptions(reserve_gb=reserve), facts(header, card(9.6))))[0] for reserve in (0, 1)
    ]
    assert windows[0] > windows[1]


def test_slots_share_the_pool(zoo_header):
    header = zoo_header(DENSE)
    ctx, _, _ = after(decide(command("-ngl 99 -c 65536 -np 2"), GuardOptions(), facts(header, card(12.5))))
    assert ctx % 8192 == 0
    assert 0.6 * 65536 <= ctx < 65536


@pytest.mark.parametrize("name", [DENSE, MIXTURE, "qwen35-9b-q4_k_m", "gemma3-12b-q4_k_m", "deepseek-v2-lite-q4_k_m"])
@pytest.mark.parametrize("targets", [(7,), (14,), (8, 12)])
def test_what_was_planned_for_an_empty_machine_starts_as_it_is_there(zoo_header, name, targets):
    plan, header, cards = planned(zoo_header, name, targets)
    options = GuardOptions(target_gb=sum(targets))
    argv = ("llama-server", *plan.argv[1:])
    if plan.verdict != "over":
        decision = decide(argv, options, facts(header, *cards))
        assert (decision.outcome, decision.argv) == (UNCHANGED, argv), decision.text


# --- several devices and shared memory -------------------------------------------------------------------------


def test_a_split_follows_what_is_free(zoo_header):
    header = zoo_header("qwen25-32b-q4_k_m")
    argv = command("-ngl 99 -c 8192 -sm layer --main-gpu 0 --tensor-split 0.5,0.5")
    even = facts(header, card(14), card(14, 1))
    assert decide(argv, GuardOptions(), even).outcome == UNCHANGED
    uneven = decide(argv, GuardOptions(), facts(header, card(8), card(22, 1)))
    assert uneven.outcome == CHANGED
    assert after(uneven) == (8192, 99, None)
    first, second = map(float, value_of(uneven.argv, "tensorSplit").split(","))
    assert first < second
    assert value_of(uneven.argv, "mainGpu") == "1"


def test_a_list_of_devices_and_its_ratio_change_together(zoo_header):
    header = zoo_header("qwen25-32b-q4_k_m")
    argv = command("-ngl 99 -c 8192 --device CUDA0,CUDA1 --main-gpu 1 -ts 0.5,0.5")
    decision = decide(argv, GuardOptions(), facts(header, card(22), card(8, 1)))
    assert value_of(decision.argv, "device") == "CUDA1,CUDA0"
    assert value_of(decision.argv, "mainGpu") == "1"
    first, second = map(float, value_of(decision.argv, "tensorSplit").split(","))
    assert first < second


def test_without_a_ratio_none_is_added(zoo_header):
    header = zoo_header("qwen25-32b-q4_k_m")
    decision = decide(command("-ngl 99 -c 8192"), GuardOptions(), facts(header, card(10), card(10, 1)))
    assert decision.outcome == CHANGED
    assert value_of(decision.argv, "tensorSplit") == ""


@pytest.mark.parametrize(
    ("text", "environment", "expected"),
    [
        ("", {**BUS, "CUDA_VISIBLE_DEVICES": "1"}, 20),
        ("", {**BUS, "CUDA_VISIBLE_DEVICES": "GPU-1"}, 20),
        ("", {**BUS, "CUDA_VISIBLE_DEVICES": "0,7,1"}, 2),
        ("--device CUDA1", BUS, 20),
        ("--device CUDA0", {**BUS, "CUDA_VISIBLE_DEVICES": "1,0"}, 20),
        ("-sm none --main-gpu 1", BUS, 20),
        ("-sm none", BUS, 2),
    ],
)
def test_only_the_devices_of_the_launch_count(zoo_header, text, environment, expected):
    argv = command(f"-ngl 99 -c 8192 {text}")
    decision = decide(argv, GuardOptions(), facts(zoo_header(DENSE), card(2), card(20, 1), environment=environment))
    assert f"{expected}.00 GiB is free" in decision.text
    assert (decision.outcome == UNCHANGED) == (expected == 20)


def test_an_integrated_device_has_the_memory_that_it_shares(zoo_header):
    header = zoo_header(DENSE)
    apu = DeviceReading(
        0,
        "AMD Radeon 780M",
        2 * GIB,
        GIB,
        shared_total_bytes=16 * GIB,
        shared_used_bytes=GIB,
        integrated=True,
        vendor="amd",
    )
    argv = command("-ngl 99 -c 8192")
    assert decide(argv, GuardOptions(), facts(header, apu)).outcome == UNCHANGED
    busy = replace(apu, shared_used_bytes=11 * GIB)
    assert decide(argv, GuardOptions(), facts(header, busy)).outcome == CHANGED
    off = decide(argv, GuardOptions(shared_memory="off"), facts(header, apu))
    assert (off.outcome, off.argv) == (UNCHANGED, argv)
    assert "no reading of a GPU that counts" in off.text


def test_what_lies_beside_the_model_counts(zoo_header):
    header = zoo_header(DENSE)
    room = (card(9.6),)
    alone = decide(command("-ngl 99 -c 8192"), GuardOptions(), facts(header, *room))
    assert alone.outcome == UNCHANGED
    argv = command("-ngl 99 -c 8192 --mmproj p.gguf --spec-type draft-mtp -md d.gguf -ngld 99")
    assert wanted_files(argv).projector == "p.gguf"
    beside = facts(header, *room, sizes={"p.gguf": 2 * GIB, "d.gguf": 2 * GIB})
    assert decide(argv, GuardOptions(), beside).outcome == CHANGED
    assert wanted_files((*argv, "--no-mmproj-offload")).projector == ""


# --- what is left alone ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("-c 8192", "places its layers itself"),
        ("-c 8192 -ngl -1", "places its layers itself"),
        ("-c 8192 -ngl 0", "keeps off the GPU"),
        ("-ngl 99 -c 8192 --device none", "keeps off the GPU"),
        ("-ngl 99", "names no context size"),
        ("-ngl 99 -c 8192 -ot exps=CPU", "does not follow -ot"),
        ("-ngl 99 -c 8192 --cpu-moe", "does not follow --cpu-moe"),
        ("-ngl 99 -c 8192 --rpc=a:1", "does not follow --rpc"),
        ("-ngl 99 -c 8192 --n_cpu_ffn 4", "does not follow --n-cpu-ffn"),
        ("-ngl 99 -c 8192 --override-kv a=int:1", "does not follow --override-kv"),
        ("-ngl 99 -c 8192 --embeddings", "does not follow --embeddings"),
        ("-ngl 99 -c 8192 -sm row", "does not follow --split-mode row"),
        ("-ngl 99 -c 8192 --device Vulkan0,Vulkan1", "nobody knows in which order vulkan numbers"),
        ("-ngl 99 -c 8192 --device CUDA7", "nobody knows which devices"),
        ("-ngl 99 -c 8192 --device what", "nobody knows which devices"),
        ("-ngl 99 -c 8192 -ts 1,1,1", "not one of 2 devices"),
        ("-ngl 99 -c 8192 -ts x,y", "not one of 2 devices"),
    ],
)
def test_what_is_not_for_the_guard_starts_as_it_is(zoo_header, text, reason):
    argv = command(text)
    decision = decide(argv, GuardOptions(), facts(zoo_header(DENSE), card(1), card(1, 1)))
    assert (decision.outcome, decision.argv) == (UNCHANGED, argv)
    assert reason in decision.text


@pytest.mark.parametrize(
    ("argv", "given", "reason"),
    [
        (command(), Facts((card(1),), BUS), "header of its model cannot be read"),
        (command(), Facts((), BUS, Header(block_count=1)), "no reading of a GPU"),
        (command(), Facts((card(1),), BUS, Header(block_count=9)), "memory of its model cannot be told"),
        (command(model="m.bin"), Facts((card(1),), BUS), "no GGUF file"),
        (("/usr/bin/vllm", "serve", "x"), Facts((card(1),), BUS), "program is not known"),
    ],
)
def test_without_facts_nothing_changes(argv, given, reason):
    decision = decide(argv, GuardOptions(), given)
    assert (decision.outcome, decision.argv) == (UNCHANGED, tuple(argv))
    assert reason in decision.text


@pytest.mark.parametrize(
    "name", ["LLAMA_ARG_N_CPU_MOE", "LLAMA_ARG_NO_KV_OFFLOAD", "LLAMA_ARG_SPEC_DRAFT_MODEL", "LLAMA_ARG_DEVICE"]
)
def test_what_the_environment_moves_is_left_alone(zoo_header, name):
    """The server takes its arguments from there, too."""
    header, environment = zoo_header(MIXTURE), {**BUS, name: "99"}
    decision = decide(command(), GuardOptions(), facts(header, card(7), environment=environment))
    assert (decision.outcome, decision.argv) == (UNCHANGED, command())
    assert name in decision.text
    harmless = {**BUS, "LLAMA_ARG_HOST": "0.0.0.0", "LLAMA_ARG_THREADS": "4"}
    assert decide(command(), GuardOptions(), facts(header, card(7), environment=harmless)).outcome == REFUSED


@pytest.mark.parametrize("text", ["-ngl 99 -c 32768", "-ngl 99 -c 32768 --device CUDA1"])
def test_cards_whose_order_nobody_knows_are_left_alone(zoo_header, text):
    cards = card(1), card(1, 1, name="NVIDIA B")
    header, unordered = zoo_header(DENSE), {"CUDA_VISIBLE_DEVICES": "0"}
    for environment in ({}, unordered):
        decision = decide(command(text), GuardOptions(), facts(header, *cards, environment=environment))
        assert decision.outcome == UNCHANGED
        assert "nobody knows" in decision.text
    assert decide(command(text), GuardOptions(), facts(header, *cards)).outcome == REFUSED
    by_id = {"CUDA_VISIBLE_DEVICES": "GPU-1"}
    alone = decide(command(), GuardOptions(), facts(header, *cards, environment=by_id))
    assert alone.outcome == REFUSED


@pytest.mark.parametrize("name", ["ROCR_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "CUDA_VISIBLE_DEVICES"])
def test_cards_that_another_variable_of_rocm_hides_are_not_counted_on(zoo_header, name):
    argv = ("/opt/rocm/llama-server", *command()[1:])
    two = Facts((radeon(1), radeon(20, 1)), {name: "0"}, zoo_header(DENSE))
    decision = decide(argv, GuardOptions(), two)
    assert (decision.outcome, decision.argv) == (UNCHANGED, argv)
    assert name in decision.text
    alone = Facts((radeon(1),), {name: "0"}, zoo_header(DENSE))
    assert decide(argv, GuardOptions(), alone).outcome == REFUSED, "there is nothing to hide"


@pytest.mark.parametrize("argv", [command(), ("sd-server", "--max-vram", "9")])
def test_where_a_card_could_not_be_read_nothing_changes(zoo_header, argv):
    """Neither what is free on it is known, nor whether the others keep their numbers."""
    known = facts(zoo_header(DENSE), card(1), failed=("nvidia",))
    decision = decide(argv, GuardOptions(), known)
    assert (decision.outcome, decision.argv) == (UNCHANGED, argv)
    assert "not every device could be read" in decision.text
    assert decide(argv, GuardOptions(), replace(known, failed=("amd",))).outcome != UNCHANGED, "of another vendor"


def radeon(free_gib, index=0, name="AMD A"):
    return replace(card(free_gib, index, name=name), vendor="amd")


@pytest.mark.parametrize(
    ("readings", "environment", "outcome"),
    [
        ((radeon(1), radeon(20, 1)), {"HIP_VISIBLE_DEVICES": "1"}, UNCHANGED),
        ((radeon(1), radeon(20, 1)), {"HIP_VISIBLE_DEVICES": "0"}, REFUSED),
        ((radeon(1), radeon(20, 1, "AMD B")), {"HIP_VISIBLE_DEVICES": "0"}, UNCHANGED),  # in whose order?
        ((radeon(1), card(23, 1)), {}, REFUSED),  # the card of another vendor is none of ROCm's
    ],
)
def test_rocm_numbers_its_own_cards(zoo_header, readings, environment, outcome):
    argv = ("/opt/rocm/llama-server", *command()[1:])
    # The largest card says whose runtime it is: here always one of AMD's.
    readings = [replace(item, total_bytes=item.total_bytes + (item.vendor == "amd")) for item in readings]
    assert decide(argv, GuardOptions(), Facts(readings, environment, zoo_header(DENSE))).outcome == outcome


@pytest.mark.parametrize(
    ("words", "free", "expected"),
    [
        ("sd-server --max-vram 6.5", 5.5, "sd-server --max-vram 4.5"),
        ("sd-server --max-vram=6.5 -m x", 5.5, "sd-server --max-vram=4.5 -m x"),
        ("sd-server --max-vram 6.5", 8.0, "sd-server --max-vram 6.5"),
        ("sd-server --max-vram 6.5", 1.2, "sd-server --max-vram 0.5"),
        ("sd-server --max-vram lots", 1.2, "sd-server --max-vram lots"),
        ("sd-server --max-vram", 1.2, "sd-server --max-vram"),
        ("sam3_server --model s.ggml", 8, "sam3_server --model s.ggml --no-gpu"),
    ],
)
def test_servers_with_a_cap_of_their_own(words, free, expected):
    decision = decide(tuple(words.split()), GuardOptions(), Facts((card(free),), BUS))
    assert " ".join(decision.argv) == expected
    if words == "sd-server --max-vram 6.5" and free < 7:
        assert decision.text.startswith("--max-vram 6.5 -> ")
    assert (decision.outcome == CHANGED) == (words != expected)


# --- edits -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "knob", "expected"),
    [
        ("x -c 8192 -t 7", "ctx", "x -c 4096 -t 7"),
        ("x --ctx-size 8192", "ctx", "x --ctx-size 4096"),
        ("x --ctx-size=8192 -t 7", "ctx", "x --ctx-size=4096 -t 7"),
        ("x --ctx_size=8192", "ctx", "x --ctx_size=4096"),
        ("x -c 1 -c 8192", "ctx", "x -c 1 -c 4096"),
        ("x -c 1 --ctx-size=8192", "ctx", "x -c 1 --ctx-size=4096"),
        ("x --seed -1 -c 8192", "ctx", "x --seed -1 -c 4096"),
        ("x -ngl 99", "ngl", "x -ngl 4096"),
        ("x --n-gpu-layers 99", "ngl", "x --n-gpu-layers 4096"),
        ("x --gpu-layers=all", "ngl", "x --gpu-layers=4096"),
        ("x --n-cpu-moe 3", "nCpuMoe", "x --n-cpu-moe 4096"),
        ("x -ncmoe 3", "nCpuMoe", "x -ncmoe 4096"),
        ("x -ts 1,1", "tensorSplit", "x -ts 4096"),
        ("x --tensor-split=1,1", "tensorSplit", "x --tensor-split=4096"),
        ("x -t 7", "ngl", "x -t 7"),
    ],
)
def test_a_value_changes_in_its_own_spelling(words, knob, expected):
    assert " ".join(with_value(words.split(), knob, "4096")) == expected


def test_what_is_not_there_is_appended_where_asked():
    assert with_value(["x", "-c", "1"], "nCpuMoe", "4", "--n-cpu-moe") == ("x", "-c", "1", "--n-cpu-moe", "4")


def test_every_other_word_stays(zoo_header):
    odd = ("", "a b", "ü", "'\"$x`\\", "--chat-template-kwargs", '{"a": -1}', "\udc80")
    argv = (*command(), *odd)
    decision = decide(argv, GuardOptions(), facts(zoo_header(DENSE), card(8)))
    assert decision.outcome == CHANGED
    assert decision.argv[-len(odd) :] == odd
    assert len(decision.argv) == len(argv)


# --- the command line of the guard itself ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        GuardOptions(),
        GuardOptions(7.25, 0, 0, "/a b/headers.sqlite3", 2, "on", True, False, 1.5),
    ],
)
def test_options_are_read_as_they_are_written(options):
    words = guard_words("/opt/quartermaster-spawn", options)
    assert is_guarded([*words, "x"])
    guarded = read_guarded([*words[1:], "x", "--", "y"])
    assert (guarded.options, guarded.argv, guarded.problem) == (options, ("x", "--", "y"), "")
    assert guard_apart([*words, "x", "--", "y"]) == (tuple(words[:-1]), ["x", "--", "y"])


def test_the_usual_options_are_those_of_its_manual():
    words = guard_words("/v/bin/quartermaster-spawn", GuardOptions(target_gb=11.5))
    assert " ".join(words) == ("/v/bin/quartermaster-spawn --target-gb 11.5 --min-gpu-fraction 0.5 --reserve-gb 0.5 --")


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("--new 1 -- x", "--new is not known"),
        ("stray -- x", "stray is not known"),
        ("--target-gb -- x", "--target-gb has no value"),
        ("--target-gb many -- x", "--target-gb cannot be 'many'"),
        ("--target-gb nan -- x", "cannot be 'nan'"),
        ("--min-device-gb -1 -- x", "cannot be '-1'"),
        ("--multi-gpu maybe -- x", "cannot be 'maybe'"),
        ("--shared-memory x -- x", "cannot be 'x'"),
    ],
)
def test_an_option_that_cannot_be_read_keeps_the_command(words, problem):
    guarded = read_guarded(words.split())
    assert problem in guarded.problem
    assert guarded.argv == ("x",)


def test_what_is_below_zero_is_none():
    """As in the settings (sizing.md 2.2): no reserve, no target, and a bar that refuses nothing."""
    words = ["--target-gb", "-2", "--min-gpu-fraction=-0.5", "--reserve-gb", "-1", "--", "x"]
    assert read_guarded(words).options == GuardOptions(0, 0, 0)


def test_without_a_separator_there_is_no_command():
    assert read_guarded(["llama-server", "-m", "x"]).argv == ()
    assert read_guarded(["--"]).argv == ()
    assert not is_guarded(["/opt/quartermaster-spawn", "x"])
    assert not is_guarded([])
    assert guard_apart(["llama-server", "--", "x"]) == ((), ["llama-server", "--", "x"])


# --- time ------------------------------------------------------------------------------------------------------


def test_a_decision_takes_some_hundredths_of_a_second(zoo_header):
    header = zoo_header(MIXTURE)
    decide(command(), GuardOptions(), facts(header, card(20)))
    started = time.process_time()
    decide(command(), GuardOptions(min_gpu_fraction=0), facts(header, card(6)))
    assert time.process_time() - started < 0.1 * slowness()


def test_a_huge_command_is_read_in_time(zoo_header):
    argv, known = (*command(), *(f"--x{number}" for number in range(20_000))), facts(zoo_header(DENSE), card(8))
    started = time.process_time()
    assert decide(argv, GuardOptions(), known).outcome == CHANGED
    # 0.4 s alone; anything quadratic would take minutes.
    assert time.process_time() - started < 5 * slowness()


@pytest.mark.parametrize("name", [DENSE, MIXTURE])
@pytest.mark.parametrize(
    ("text", "second_gib"),
    [
        ("-ngl 99 -c 32768", None),
        ("-ngl 99 -c 24576 -np 2 --tensor-split 0.6,0.4 --main-gpu 0", 5.5),
        ("-ngl 99 -c 32768 --device CUDA1,CUDA0 --main-gpu 1 --tensor-split 0.5,0.5", 7),
        ("-ngl 99 -c 32768", 4),
    ],
)
def test_what_it_starts_fits_and_is_never_more_than_planned(zoo_header, name, text, second_gib):
    """Asked again about its own answer, with the same free, it would start just that."""
    header, options = zoo_header(name), GuardOptions(target_gb=20, min_gpu_fraction=0)
    for half_gib in range(1, 36, 2):
        cards = [card(half_gib / 2), *([card(second_gib, 1)] if second_gib else [])]
        decision = decide(command(text), options, facts(header, *cards))
        if decision.outcome == REFUSED:
            continue
        ctx, layers, _ = after(decision)
        assert ctx <= pins_of(list(command(text))).ctx
        assert layers <= 99
        again = decide(decision.argv, options, facts(header, *cards))
        assert (again.outcome, again.argv) == (UNCHANGED, decision.argv), (half_gib, decision.text, again.text)
