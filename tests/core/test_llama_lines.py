"""The command of llama-server, line by line."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from models_app.core.catalog import Header, Row
from models_app.core.fields import OVERRIDE_FIELDS
from models_app.core.fields.field import CHOICE, INTEGER, NUMBER, SWITCH
from models_app.core.launch.backends import (
    class_taken,
    executable,
    kind_classes,
    legacy_executables,
    resolve_backend,
    sibling,
)
from models_app.core.launch.flag_table import read_words
from models_app.core.launch.llama import llama_command, llama_lines, slot_cache_folder
from models_app.core.launch.llama_flags import LLAMA
from models_app.core.launch.lora import lora_lines, takes_joined_scale
from models_app.core.launch.sd import DiffusionLaunch, sd_lines
from models_app.core.launch.tokens import split_command
from models_app.core.planning.checkpoints import Checkpoints
from models_app.core.settings import BackendEntry, LoraRef, Override, Settings, SlotCache
from tests.core.launch_cases import EVERYTHING, EVERYTHING_PROFILE, HEADER, PLACEMENT, PROFILE, ROW, SETTINGS


def lines_of(own=None, *, header=HEADER, profile=PROFILE, placement=PLACEMENT, row=ROW, settings=SETTINGS):
    return llama_lines(settings, header, row, profile, placement, own)


def test_the_whole_command_with_everything_on():
    assert lines_of(EVERYTHING, profile=EVERYTHING_PROFILE, placement=replace(PLACEMENT, cpu_moe_layers=9)) == [
        "llama-server",
        "-m /models/qwen.gguf",
        "--port ${PORT}",
        "--host 127.0.0.1",
        "--cors-origins localhost",
        "-ngl 49",
        "-c 65536",
        "-ub 1024 -b 2048",
        "-fa on -ctk q8_0 -ctv q8_0",
        "--parallel 1 --load-mode mlock --kv-unified --no-warmup --no-ui --metrics --props",
        "--device CUDA1,CUDA0 -sm layer --main-gpu 1",
        "--tensor-split 3,1",
        "--mmproj /models/mmproj.gguf",
        "--no-mmproj-offload",
        "--spec-type draft-mtp",
        "--spec-type ngram-map-k4v",
        "--spec-draft-n-max 7",
        '-md "/models/draft mtp.gguf"',
        "-ngld 99",
        "-ctkd f16 -ctvd f16",
        "--spec-default",
        "--spec-ngram-map-k4v-size-n 4",
        "--spec-ngram-map-k4v-size-m 5",
        "--spec-ngram-map-k4v-min-hits 2",
        "--jinja --reasoning-format auto",
        "--reasoning-budget 2048",
        "--reasoning-preserve",
        "--ctx-checkpoints 3",
        "-cms 1024",
        "--dry-multiplier 0.8 --dry-base 1.75 --dry-allowed-length 3",
        "--temp 0",
        "--top-k 40",
        "--top-p 0.95",
        "--min-p 0.05",
        "--presence-penalty 1.5",
        "-t 4 --n-cpu-moe 9",
        '--slot-save-path "/var/cache/slot kv"',
        '--chat-template-file "/templates/chat me.jinja"',
        "-tb 6",
        "--prio 2",
        "--no-op-offload",
        "--no-repack",
        "--cache-reuse 256",
        "-cram -1",
        "-lv 2",
        "--cache-idle-slots",
        "--swa-full",
        "--no-context-shift",
        "--spec-draft-n-min 1",
        "-sps 0.25",
        "--rope-scaling yarn",
        "--rope-scale 2",
        "--rope-freq-base 1e+06",
        "--yarn-orig-ctx 32768",
        r'-ot "blk\.(1|2)\.ffn=CPU"',
        '--lora "/models/a.gguf"',
        '--lora-scaled "/l/b.gguf" 0',
    ]


def test_no_override_and_a_blank_one_give_the_same():
    assert lines_of(None) == lines_of(Override()) == lines_of(Override(match="/m/a.gguf", quant="Q4_K_M"))


def test_nothing_is_offered_without_being_asked():
    plain = " ".join(lines_of(settings=Settings(), row=Row(id="a", full_path="/a.gguf")))
    for flag in ("--mmproj", "-md", "--device", "--dry-", "--temp", "--lora", "--slot-save-path", "--chat-template"):
        assert flag not in plain


def test_the_cpu_device_takes_the_place_of_the_split():
    lines = lines_of(Override(device="cpu"), profile=EVERYTHING_PROFILE)
    assert "--device none" in lines
    assert "-ngl 0" in lines
    assert not [line for line in lines if "--tensor-split" in line or "-sm" in line]
    assert "--load-mode" not in " ".join(lines)


def test_a_hand_written_split_replaces_the_planned_one():
    own = Override(split_mode="row", tensor_split="1,2", main_gpu=1)
    lines = lines_of(own, profile=EVERYTHING_PROFILE)
    assert [line for line in lines if line.split()[0] in ("-sm", "-ts", "-mg", "--device", "--tensor-split")] == [
        "-sm row",
        "-ts 1,2",
        "-mg 1",
    ]
    only_mode = lines_of(Override(split_mode="row"), profile=EVERYTHING_PROFILE)
    assert "--device CUDA1,CUDA0 --main-gpu 1" in only_mode
    assert "--tensor-split 3,1" in only_mode


@pytest.mark.parametrize(
    ("own", "gpu_layers", "mode"),
    [
        (Override(direct_io=True, mlock=True, mmap="on"), 49, "--load-mode dio"),
        (Override(mlock=True, mmap="on"), 49, "--load-mode mmap+mlock"),
        (Override(mlock=True), 49, "--load-mode mlock"),
        (Override(mlock=True), 48, "--load-mode mmap+mlock"),
        (Override(mmap="on"), 49, ""),
        (Override(mmap="off"), 48, "--load-mode none"),
        (Override(), 48, ""),
        (Override(), 49, "--load-mode none"),
        (Override(custom_args="-ngl 99"), 48, "--load-mode none"),
        (Override(custom_args="-ngl all"), 48, "--load-mode none"),
        (Override(custom_args="-ngl -1"), 48, ""),
        (Override(custom_args="-ngl 48"), 49, ""),
        (Override(custom_args="--n-cpu-moe 3"), 49, ""),
    ],
)
def test_load_mode(own, gpu_layers, mode):
    line = next(
        line
        for line in lines_of(own, placement=replace(PLACEMENT, gpu_layers=gpu_layers))
        if line.startswith("--parallel")
    )
    assert line == f"--parallel 1 {mode} --kv-unified --no-warmup --no-ui --metrics --props".replace("  ", " ")


def test_an_unknown_block_count_counts_as_resident():
    lines = lines_of(header=Header(architecture="llama"), placement=replace(PLACEMENT, gpu_layers=3))
    assert any("--load-mode none" in line for line in lines)


def test_reasoning_off_drops_budget_and_preserve():
    lines = lines_of(Override(reasoning_fmt="off", reasoning_budget=5))
    assert "--jinja --reasoning-format none --reasoning off" in lines
    assert not [line for line in lines if "budget" in line or "preserve" in line]


def test_a_profile_without_checkpoints_names_no_spacing():
    lines = lines_of(profile=replace(PROFILE, checkpoints=Checkpoints(0, 256)))
    assert "--ctx-checkpoints 0" in lines
    assert not [line for line in lines if line.startswith("-cms")]


def test_a_drafter_of_another_kind_is_not_loaded():
    lines = lines_of(row=replace(ROW, draft_kind="dflash"))
    assert "--spec-draft-n-max 2" in lines
    assert not [line for line in lines if line.startswith(("-md", "-ngld"))]


def test_slots_are_saved_only_where_both_say_so():
    folder = SlotCache(enable=True)
    assert slot_cache_folder(Settings(slot_cache=folder), "/cache/") == "/cache/slotkv"
    assert slot_cache_folder(Settings(slot_cache=folder), "") == ""
    assert "--slot-save-path" not in " ".join(lines_of(Override()))
    assert "--slot-save-path" not in " ".join(lines_of(Override(slot_cache=True), settings=Settings()))


def test_words_that_a_person_chose_stay_one_word():
    """Choices come from files too: none of them may smuggle in a second flag."""
    own = Override(reasoning_fmt="auto --host 0.0.0.0", flash_attn="on -m x", split_mode="layer --port 1")
    argv = split_command("\n".join(lines_of(own)))
    assert argv.count("--host") == 1
    assert argv.count("-m") == 1
    assert argv.count("--port") == 1


TEXTS = st.text(max_size=12)
NUMBERS = st.one_of(st.integers(-3, 2**40), st.floats(allow_nan=False, allow_infinity=False))


def _value_of(field):
    if field.kind == SWITCH:
        return st.one_of(st.none(), st.booleans()) if field.nullable else st.booleans()
    if field.kind in (INTEGER, NUMBER):
        numbers = st.integers(-3, 2**40) if field.kind == INTEGER else NUMBERS
        return st.one_of(st.none(), numbers) if field.nullable else numbers
    return st.sampled_from(("", *field.choices)) if field.kind == CHOICE else TEXTS


OVERRIDES = st.builds(
    Override,
    **{
        field.attribute: _value_of(field)
        for field in OVERRIDE_FIELDS
        if field.kind in (SWITCH, INTEGER, NUMBER, CHOICE, "text", "path") and "llama" in field.backends
    },
    loras=st.lists(st.builds(LoraRef, TEXTS, st.one_of(st.none(), NUMBERS)), max_size=3).map(tuple),
)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(OVERRIDES)
@example(Override(loras=(LoraRef(":0", 0),)))
def test_any_override_gives_flags_of_the_table(own):
    command = llama_command(SETTINGS, HEADER, ROW, EVERYTHING_PROFILE, PLACEMENT, own)
    if any("\n" in line or "\r" in line or line.lstrip().startswith("#") for line in command.lines):
        return
    words = read_words(LLAMA, split_command("\n".join(command.lines))[1:])
    assert [word.text for word in words if word.row is None] == []
    assert list(command.argv) == split_command("\n".join(command.lines))


def test_adapter_scales_of_current_builds():
    own = Override(loras=(LoraRef("a b.gguf", 0.5), LoraRef(" "), LoraRef("c.gguf")))
    assert lora_lines(Settings(lora_dir="/l"), own, "/m/a.gguf", joined_scale=True) == [
        '--lora-scaled "/l/a b.gguf:0.5"',
        '--lora "/l/c.gguf"',
    ]
    assert takes_joined_scale("FNAME:SCALE,...")
    assert not takes_joined_scale("FNAME SCALE")
    assert not takes_joined_scale(None)


REGISTRY = (
    BackendEntry(id="v", kind="vllm", path="/v/vllm"),
    BackendEntry(id="a", kind="Llama.cpp ", path="/a/llama-server"),
    BackendEntry(id="b", kind="server", path="/b b/llama-server", default=True),
    BackendEntry(id="s", kind="sd", path="/s/sd-server"),
)


def test_the_pinned_backend_then_the_star_then_the_first():
    assert resolve_backend(REGISTRY, "s", "llm").id == "s"
    assert resolve_backend(REGISTRY, "gone", "llm").id == "b"
    assert resolve_backend(REGISTRY[:2], "", "llm").id == "v"
    assert resolve_backend(REGISTRY, "", "tts") is None
    assert executable(Settings(backends=REGISTRY), Override(), "llm") == '"/b b/llama-server"'
    assert executable(Settings(backends=REGISTRY), Override(), "tts") == "tts-server"
    assert (
        executable(Settings(server_exe=r"C:\llama\llama-server.exe"), Override(), "llm") == r"C:\llama\llama-server.exe"
    )


def test_kinds():
    assert kind_classes(" Audio.CPP ") == ("tts", "asr")
    assert kind_classes("other") == ()
    assert class_taken([BackendEntry(kind="parakeet")], "audiocpp")
    assert legacy_executables(REGISTRY) == {"server_exe": "/b b/llama-server", "sd_server_exe": "/s/sd-server"}
    assert sibling("D:\\llama\\llama-server.exe", "sd-server") == "D:\\llama\\sd-server"
    assert sibling("llama-server", "sd-server") == "sd-server"


def sd_of(own=None, **more):
    row = more.pop("row", Row(id="flux-dev", full_path="/m/flux dev.gguf"))
    return sd_lines(DiffusionLaunch(Settings(target_vram_gb=8, threads=8), row, own or Override(), 11.0, **more))


def test_sd_offloads_the_vae_unless_it_is_pinned():
    assert sd_of()[-2:] == ["--offload-to-cpu", "--vae-on-cpu"]
    assert sd_of(Override(vae_on_cpu="off"))[-1] == "--offload-to-cpu"


def test_sd_guidance_goes_by_the_id_not_by_the_folder():
    assert "--guidance 2.5" in sd_of(row=Row(id="flux-Kontext", full_path="/m/a.gguf"))
    assert "--guidance 30" in sd_of(row=Row(id="flux-fill", full_path="/m/a.gguf"))
    assert not [line for line in sd_of(row=Row(id="flux", full_path="/kontext/a.gguf")) if "--guidance" in line]


def test_sd_own_components_win():
    lines = sd_of(Override(vae_path="/own/vae.gguf"), components={"vae": "/found/vae.gguf", "t5xxl": "/found/t5.gguf"})
    assert "--vae /own/vae.gguf" in lines
    assert "--t5xxl /found/t5.gguf" in lines
    assert '--diffusion-model "/m/flux dev.gguf"' in lines


@pytest.mark.parametrize(("path", "problems"), [("/l/b c.gguf", 0), (r"D:\l\b.gguf", 1)])
def test_current_builds_get_the_scale_behind_the_file(path, problems):
    own = Override(loras=(LoraRef("a.gguf"), LoraRef(path, 0.5)))
    command = llama_command(SETTINGS, HEADER, ROW, PROFILE, PLACEMENT, own, joined_lora_scale=True)
    assert command.argv[-4:] == ("--lora", "/models/a.gguf", "--lora-scaled", f"{path}:0.5".replace("\\", "/"))
    assert len(command.warnings) == problems
    assert not llama_command(SETTINGS, HEADER, ROW, PROFILE, PLACEMENT, own).warnings
