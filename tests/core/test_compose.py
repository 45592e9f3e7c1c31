"""Custom text over generated lines: what it owns, what it replaces, what comes back unchanged."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models_app.core.catalog import Header
from models_app.core.errors import LaunchError
from models_app.core.fields import OVERRIDE_FIELDS
from models_app.core.launch.compose import CUSTOM, REPLACED, compose
from models_app.core.launch.flag_table import read_words
from models_app.core.launch.llama import llama_lines
from models_app.core.launch.llama_flags import LLAMA
from models_app.core.launch.ownership import clear_owned, clear_owned_by_text, custom_text, fields_behind, owned_knobs
from models_app.core.launch.pins import pin_estimate, pin_profile, pinned_offload, read_pins
from models_app.core.launch.sd_flags import SD
from models_app.core.launch.tokens import join_tokens, split_command
from models_app.core.launch.validate import check_commands, plumbing_warnings, validate_tokens
from models_app.core.settings import Override, Variant
from tests.core.launch_cases import EVERYTHING, EVERYTHING_PROFILE, HEADER, PLACEMENT, ROW, SETTINGS

LINES = llama_lines(SETTINGS, HEADER, ROW, EVERYTHING_PROFILE, PLACEMENT, EVERYTHING)

VALUES = st.text(
    st.characters(min_codepoint=33, max_codepoint=126, blacklist_characters="\"'\\#-"), min_size=1, max_size=6
)


@st.composite
def flag_texts(draw):
    """Launch texts of known flags with values, each on a line of its own, some with comments."""
    lines = []
    for row in draw(st.lists(st.sampled_from(LLAMA.rows), max_size=6)):
        values = [draw(VALUES) for _ in range(row.values)]
        lines.append(" ".join([draw(st.sampled_from(row.spellings)), *values]))
        if draw(st.booleans()):
            lines.append("  # a comment")
    return "\n".join(lines)


@given(flag_texts())
def test_text_is_kept_applied_and_owns_each_knob_alone(text):
    result = compose(LLAMA, LINES, text)
    assert result.custom == text
    assert not result.error
    words = (
        split_command(text) if [line for line in text.split("\n") if line and not line.strip().startswith("#")] else []
    )
    assert [token.text for token in result.tokens if token.source == CUSTOM] == words
    kept = [token for token in result.tokens if token.source == "generated"]
    assert not {token.knob for token in kept} & result.owned
    assert list(result.argv) == split_command(result.effective)


@given(flag_texts())
def test_composing_twice_gives_the_same(text):
    assert compose(LLAMA, LINES, text) == compose(LLAMA, LINES, text)
    owned_only = [line for line in text.split("\n") if "--lora" not in line]
    once = compose(LLAMA, LINES, "\n".join(owned_only))
    assert compose(LLAMA, once.lines, "\n".join(owned_only)).lines == once.lines


@given(st.text(max_size=100))
def test_any_text_composes(text):
    result = compose(LLAMA, LINES, text)
    assert result.custom == text
    assert result.generated == " ".join(LINES)


@given(st.text(st.sampled_from("ab \\\"'\n#-"), max_size=30))
def test_emitted_lines_hold_the_words_of_the_text(text):
    """Taking comments and line joins out changes no word, whatever a text does with quotes and backslashes.

    No file can hold a word with a line break: its model is left out (export/build.py).
    """
    try:
        words = split_command(text)
    except LaunchError:
        return
    if any("\n" in word for word in words):
        return
    lines = compose(LLAMA, ["llama-server"], text).lines
    for joint in ("\n", " "):
        assert split_command(joint.join(lines)) == ["llama-server", *words]


def test_comments_are_kept_in_the_text_but_not_emitted():
    result = compose(LLAMA, ["llama-server"], "# why\n--temp 1\r\n\n  # more")
    assert result.lines == ("llama-server", "--temp 1")
    assert result.custom == "# why\n--temp 1\r\n\n  # more"


def test_line_joins_do_not_end_up_in_the_command():
    result = compose(LLAMA, ["llama-server"], "-c 4096 \\\n  -ub 256")
    assert split_command(result.effective) == ["llama-server", "-c", "4096", "-ub", "256"]


def test_negated_and_alternative_spellings_replace_the_generated_flag():
    for text, gone in (
        ("--gpu-layers 3", "-ngl"),
        ("--no-kv-unified", "--kv-unified"),
        ("-dev none", "--device"),
        ("--verbosity 4", "-lv"),
        ("--swa-checkpoints 1", "--ctx-checkpoints"),
        ("--chat_template_file x", "--chat-template-file"),
    ):
        assert gone in compose(LLAMA, LINES, text).replaced, text


def test_replaced_words_name_their_knob():
    tokens = compose(LLAMA, ["-c 8192 -t 7"], "-c 4096").tokens
    assert [(token.text, token.source, token.knob) for token in tokens[:3]] == [
        ("-c", REPLACED, "ctx"),
        ("8192", REPLACED, "ctx"),
        ("-t", "generated", "threads"),
    ]


def test_inline_values_warn_for_llama_server_only():
    assert compose(LLAMA, [], "--temp=0.5").warnings
    assert not compose(SD, [], "--steps=8").warnings


def test_scaled_adapters_of_old_and_new_builds():
    new = [word.text for word in read_words(LLAMA, split_command("--lora-scaled /l/a.gguf:0.5 -c 1")) if word.is_value]
    old = [word.text for word in read_words(LLAMA, split_command("--lora-scaled D:/a.gguf -0.5 -c 1")) if word.is_value]
    assert new == ["/l/a.gguf:0.5", "1"]
    assert old == ["D:/a.gguf", "-0.5", "1"]


def test_every_field_knob_is_in_a_table():
    known = {*LLAMA.knobs, *SD.knobs}
    for field in OVERRIDE_FIELDS:
        assert set(field.knobs) <= known, field.key


def test_offload_is_cleared_only_by_the_flag_of_the_models_kind():
    own = Override(cpu_offload=12)
    assert clear_owned(own, ["ngl"])[0].cpu_offload == 12
    assert clear_owned(own, ["ngl"], is_moe=True)[0].cpu_offload == 12
    assert clear_owned(own, ["ngl"], is_moe=False) == (Override(), ("ngl",))
    assert clear_owned(own, ["nCpuMoe"], is_moe=True) == (Override(), ("nCpuMoe",))
    assert fields_behind("device") != ()


def test_a_variants_own_text_clears_the_variants_fields():
    own = Override(
        temp=0.5,
        custom_args="-c 4096",
        ctx=8192,
        variants=(Variant(name="v", temp=1.0, top_k=3, custom_args="--temp 2"), Variant(name="w", temp=1.0)),
    )
    cleared = clear_owned_by_text(own)
    assert (cleared.ctx, cleared.temp) == (0, 0.5)
    assert (cleared.variants[0].temp, cleared.variants[0].top_k, cleared.variants[1].temp) == (None, 3, 1.0)
    assert clear_owned_by_text(cleared) == cleared


def test_switched_off_text_is_kept_and_not_applied():
    own = Override(custom_args="-c 1", extra_args="-c 2", custom_args_off=True)
    assert custom_text(own) == ""
    assert custom_text(replace(own, custom_args_off=False)) == "-c 1"
    assert custom_text(replace(own, custom_args_off=False, custom_args=" \n")) == "-c 2"
    assert custom_text(None) == ""


def test_layers_of_auto_and_all():
    dense = Header(block_count=32)
    assert pinned_offload(read_pins("-ngl -1"), dense) is None
    assert pinned_offload(read_pins("-ngl auto"), dense) is None
    assert pinned_offload(read_pins("-ngl all"), dense) == 0
    assert pinned_offload(read_pins("-ngl -2"), dense) == 0
    assert pinned_offload(read_pins("-ngl 30"), dense) == 2


def test_a_later_invalid_value_erases_the_pin():
    assert read_pins("-c 4096 -c abc").ctx is None
    assert read_pins("--no-kv-offload -kvo").kv_in_ram is False
    assert read_pins("-c ٤٠٩٦").ctx is None
    assert read_pins("-c 99999999999999999999999").ctx is None


def test_spec_types_accumulate():
    assert read_pins("--spec-type draft-mtp --spec-type ngram-mod").spec == "draft-mtp+ngram-mod"
    assert read_pins("--spec-type draft-mtp,ngram-mod").spec == "draft-mtp+ngram-mod"


def test_a_pinned_pool_is_shared_out_exactly():
    pinned = pin_profile(read_pins("-c 131073 -np 2"), Header(block_count=1), 4)
    assert (pinned.ctx, pinned.ctx_exact, pinned.is_long) == (65536, True, True)


def test_the_text_beats_the_form_in_an_estimate():
    form, pinned = pin_estimate(Override(ctx=9, kv_k="f16", cpu_offload=3), "-ctk q8_0", Header(block_count=4))
    assert (form.ctx, form.kv_k, form.cpu_offload, pinned.cpu_offload) == (9, "q8_0", 3, None)


def test_plumbing_flags_warn():
    owned = owned_knobs(LLAMA, split_command("-m x --port 1 --temp 1"))
    assert [knob for knob, _ in plumbing_warnings(owned)] == ["model", "port"]


def test_commands_are_checked_once_per_binary():
    probed = []

    def probe(exe):
        probed.append(exe)
        return ["-m", "-c"]

    found = check_commands({"b": "llama-server -c 1 --nope", "a": "llama-server -m x", "c": "'open"}, probe)
    assert list(found) == ["b"]
    assert probed == ["llama-server"]
    assert check_commands({"b": "llama-server --nope"}, lambda exe: None) == {}


def test_negative_scales_are_values():
    assert validate_tokens(LLAMA, ["--lora-scaled", "a.gguf", "-0.5"], ["--lora-scaled"]) == ()


@pytest.mark.parametrize("word", ["plain", "two words", 'q"uote', ""])
def test_rebuilt_lines_keep_their_words(word):
    line = join_tokens(["-c", "1", "--chat-template-file", word])
    rest = compose(LLAMA, [line], "-c 2").lines[0]
    assert split_command(rest) == ["--chat-template-file", word]
