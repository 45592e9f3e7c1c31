"""Hosts with Windows: texts, plans and the files of all routers are split by its rules, backslashes and all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpus_app.core.budget import Budget
from models_app.core.catalog import Row
from models_app.core.discovery.inventory import Inventory
from models_app.core.export.document import Entry
from models_app.core.export.llama_swap import Options
from models_app.core.export.llama_swap_entry import convert_entry
from models_app.core.export.presets import reading
from models_app.core.export.revisions.outline import outline_of, outline_of_document
from models_app.core.generate import generate
from models_app.core.launch.compose import compose
from models_app.core.launch.llama_flags import LLAMA
from models_app.core.launch.tokens import POSIX, WINDOWS, join_tokens, rules_for, split_command
from models_app.core.plans import plan_row
from models_app.core.plans.fits import PINNED, fits_of
from models_app.core.settings import BackendEntry, Override, Settings

EXE = r"C:\Program Files\llama\llama-server.exe"
TEXT = r'-c 8192 --chat-template-file "C:\my files\t.jinja" --slot-save-path C:\kv\ --api-key-file \\nas\keys\k.txt'
WORDS = [
    *("-c", "8192", "--chat-template-file", r"C:\my files\t.jinja", "--slot-save-path", "C:\\kv\\"),
    *("--api-key-file", r"\\nas\keys\k.txt"),
]
SETTINGS = Settings(
    target_vram_gb=24.0,
    max_ram_gb=48.0,
    backends=(BackendEntry(id="llama", kind="llama", path=EXE, default=True),),
)
BUDGET = Budget(device_bytes=(24 << 30,), ram_bytes=48 << 30)
ROW = Row(id="m", base_id="m", full_path=r"D:\models\my m.gguf", file_name="my m.gguf", model_class="llm")


@pytest.fixture
def made(zoo_header):
    """`made(dialect)` is the file of one model with the text on a Windows host, and its plan."""
    header = zoo_header("qwen3-8b-q4_k_m")
    own = Override(match=ROW.full_path, custom_args=TEXT)

    def run(dialect):
        plans = plan_row(ROW, header, settings=SETTINGS, override=own, budget=BUDGET, word_rules=WINDOWS)
        generated = generate(
            Inventory((ROW,), (), ()),
            lambda *_: plans,
            header_of=lambda _path: header,
            settings=SETTINGS,
            timestamp="T",
            overrides=[own],
            dialect=dialect,
            word_rules=WINDOWS,
        )
        return generated, plans[0]

    return run


def test_each_system_has_its_rules():
    assert [rules_for(name) for name in ("windows", "linux", "darwin")] == [WINDOWS, POSIX, POSIX]


@given(st.lists(st.text(st.sampled_from("ab \\\"'#=-"), max_size=8), min_size=1))
def test_joined_words_split_again(words):
    """All but a backslash at the very end, which joins lines."""
    words = [word if word != words[-1] else f"{word}." for word in words]
    assert split_command(join_tokens(words, WINDOWS), WINDOWS) == words


def test_a_line_that_loses_a_word_keeps_the_backslashes_of_the_others():
    line = r'-c 1 --override-kv "\\nas\a b" --slot-save-path C:\kv\ -ub 64'
    rest = compose(LLAMA, [line], "-c 2", WINDOWS).lines[0]
    assert split_command(rest, WINDOWS) == ["--override-kv", r"\\nas\a b", "--slot-save-path", "C:\\kv\\", "-ub", "64"]


def test_a_plan_has_the_words_of_the_text(made):
    _, plan = made("quartermaster")
    assert list(plan.argv[0:3]) == [EXE, "-m", "D:/models/my m.gguf"]
    assert list(plan.argv[-len(WORDS) :]) == WORDS
    assert plan.placement.ctx_tokens == 8192


@pytest.mark.parametrize("dialect", ["quartermaster", "llama-swap"])
def test_written_commands_are_split_by_the_hosts_rules(made, dialect):
    generated, plan = made(dialect)
    command = generated.document.entries[0].command
    argv = list(plan.argv)
    if dialect == "llama-swap":
        at = argv.index("--slot-save-path")
        del argv[at : at + 2]
        assert generated.document.entries[0].fields["capabilities"]["context"] == 8192
    assert split_command(" ".join(command), WINDOWS) == argv
    assert not [item for item in generated.findings if item.severity == "block"]


def test_presets_take_the_models_of_this_program(made):
    generated, _ = made("llama-server")
    given_options = reading.read(generated.text).models["m"]
    assert given_options["chat-template-file"] == r"C:\my files\t.jinja"
    assert f'RUN: "{EXE}" --models-preset' in generated.text


@pytest.mark.parametrize("dialect", ["quartermaster", "llama-swap"])
def test_an_outline_has_the_flags(made, dialect):
    generated, _ = made(dialect)
    for outline in (
        outline_of(dialect, generated.text, rules=WINDOWS),
        outline_of_document(generated.document, generated.text),
    ):
        model = outline.models["m"]
        assert model.program == EXE
        assert model.flags["chat-template-file"] == r"C:\my files\t.jinja"
        assert model.flags["model"] == "D:/models/my m.gguf"


def test_a_word_that_ends_in_a_backslash_is_no_join(made):
    entry = Entry("m", (EXE.replace(" ", "_"), "-c 8192 --slot-save-path C:\\kv\\ --parallel 2"), model_class="llm")
    converted = convert_entry(entry, Options(), WINDOWS)
    assert converted.entry.command[-1] == "-c 8192 --parallel 2"
    assert converted.entry.fields["capabilities"]["context"] == 4096


def test_the_table_of_what_fits_reads_the_text_alike(zoo_header):
    own = Override(custom_args=r'--slot-save-path "C:\kv dir"\ -c 8192')
    asked = {"settings": SETTINGS, "override": own, "budget": BUDGET}
    found = fits_of(ROW, zoo_header("qwen3-8b-q4_k_m"), [8192, 16384], word_rules=WINDOWS, **asked)
    assert (found[8192].state, found[16384].state) == ("fits", PINNED)
