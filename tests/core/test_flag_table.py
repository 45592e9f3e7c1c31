"""The flag tables: complete for what we write, free of double spellings, in step with the server's own options."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from models_app.core.catalog import Row
from models_app.core.fields.choices import MODEL_CLASSES
from models_app.core.launch.backends import kind_of
from models_app.core.launch.flag_table import FlagTable, read_words, row
from models_app.core.launch.help import parse_help, suggest
from models_app.core.launch.launchers import LAUNCHERS, launcher_of
from models_app.core.launch.llama import llama_lines
from models_app.core.launch.llama_flags import LLAMA
from models_app.core.launch.sd import COMPONENT_FLAGS, DiffusionLaunch, Generation, sd_lines
from models_app.core.launch.sd_flags import SD
from models_app.core.launch.tokens import split_command
from models_app.core.settings import Override
from tests.core.launch_cases import EVERYTHING, EVERYTHING_PROFILE, HEADER, PLACEMENT, ROW, SETTINGS

OPTIONS = json.loads((Path(__file__).parents[1] / "data" / "llama-server-preset-options.json").read_text())["options"]
REMOVED_UPSTREAM = {"--no-mmap", "--mlock", "-dio"}


def test_a_spelling_twice_is_refused():
    with pytest.raises(ValueError, match="twice"):
        FlagTable("x", (row("-a --all", "one"), row("--all", "two")))


@pytest.mark.parametrize("table", [LLAMA, SD], ids=lambda table: table.name)
def test_spellings_are_flags(table):
    for entry in table.rows:
        assert all(spelling.startswith("-") for spelling in entry.spellings)
        assert entry.values in (0, 1, 2)


def commands():
    """Commands with everything on, and the alternatives that exclude each other."""
    for change in ({}, {"direct_io": True}, {"device": "cpu"}, {"reasoning_fmt": "off"}, {"cache_idle_slots": "off"}):
        own = replace(EVERYTHING, **change)
        yield llama_lines(SETTINGS, HEADER, ROW, EVERYTHING_PROFILE, replace(PLACEMENT, cpu_moe_layers=9), own)
    own = replace(EVERYTHING, split_mode="row", tensor_split="1,2", main_gpu=1, context_shift="on")
    yield llama_lines(SETTINGS, HEADER, ROW, EVERYTHING_PROFILE, replace(PLACEMENT, kv_in_ram=True), own)


def test_llama_emits_only_flags_of_its_table():
    written = set()
    for lines in commands():
        words = read_words(LLAMA, split_command("\n".join(lines))[1:])
        strays = [word.text for word in words if word.row is None]
        assert strays == []
        written |= {word.row.canonical for word in words if not word.is_value}
    assert len(written) > 65


def test_sd_emits_only_flags_of_its_table():
    own = Override(
        offload_to_cpu="on", te_on_cpu="on", vae_on_cpu="on", temporal_tiling="on", stream_layers="on", lora_dir="/l"
    )
    launch = DiffusionLaunch(
        SETTINGS,
        Row(id="flux-kontext", full_path="/m/flux.gguf"),
        own,
        10.0,
        components={role: f"/c/{role}" for role, _, _ in COMPONENT_FLAGS},
        defaults=Generation(8, 1.0, "euler", 1024, 768, 81, 24),
        video=True,
    )
    for checkpoint in (False, True):
        words = read_words(SD, split_command("\n".join(sd_lines(replace(launch, full_checkpoint=checkpoint))))[1:])
        assert [word.text for word in words if word.row is None] == []


def test_llama_table_is_in_step_with_the_servers_options():
    upstream = {}
    for option in OPTIONS:
        for name in (*option["names"], *option.get("negated", ())):
            upstream[name] = option
    for entry in LLAMA.rows:
        if entry.canonical in REMOVED_UPSTREAM:
            continue
        for spelling in entry.spellings:
            assert spelling.lstrip("-") in upstream, spelling
        siblings = upstream[entry.canonical.lstrip("-")]
        for name in (*siblings["names"], *siblings.get("negated", ())):
            assert any(dashes + name in LLAMA.by_spelling for dashes in ("-", "--")), name
        if not entry.joined:
            assert entry.values == siblings["values"], entry.canonical


def test_underscores_count_as_dashes_for_llama_only():
    assert LLAMA.lookup("--ctx_size") is LLAMA.lookup("-c")
    assert LLAMA.lookup("-ctx_size") is None
    assert SD.lookup("--clip_l")
    assert SD.lookup("--clip-l") is None


def test_help_tells_spellings_and_value_hints():
    text = (
        "usage: llama-server [options]\n"
        "-m,    --model FNAME                    model path (see --hf-repo)\n"
        "--lora-scaled FNAME:SCALE,...           adapters\n"
        "--lora-init-without-apply               load only\n"
        "-np,   --parallel N                     slots\n"
        "       continued text -- not a flag, and --trailing-\n"
    )
    found = parse_help(text)
    assert found.spellings[:3] == ("-m", "--model", "--hf-repo")
    assert "--trailing-" not in found.spellings
    assert (found.values("--model"), found.values("--lora-init-without-apply"), found.values("--hf-repo")) == (
        1,
        0,
        None,
    )
    assert found.hints["--lora-scaled"] == "FNAME:SCALE,..."


def test_a_huge_help_text_is_bounded():
    assert len(parse_help("-a " * 10_000_000).spellings) == 1


def test_suggestions_are_stable_and_few():
    assert suggest(LLAMA, "---CMS") == ("-cms", "--checkpoint-min-step")
    assert suggest(LLAMA, "--parallell") == ("--parallel",)
    assert len(suggest(LLAMA, "--to-k")) <= 2
    assert suggest(LLAMA, "--" + "x" * 100_000) == ()


@pytest.mark.parametrize("launcher", LAUNCHERS, ids=lambda launcher: launcher.kind)
def test_launchers_are_sound(launcher):
    kind = kind_of(launcher.kind)
    assert kind is not None
    assert kind.name == launcher.kind
    assert launcher_of(launcher.kind) is launcher
    assert set(launcher.classes) <= set(MODEL_CLASSES)
    assert launcher.health_path.startswith("/")
    for model_class in launcher.classes:
        assert launcher.accepts(model_class, "gguf")
        assert not launcher.accepts(model_class, "hf")


def test_engines_that_nothing_starts_have_no_launcher():
    assert launcher_of("unheard-of") is None
