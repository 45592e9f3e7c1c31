"""Launch texts to words and back, numbers and paths as text."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models_app.core.errors import LaunchError
from models_app.core.launch.macros import unsafe_macro
from models_app.core.launch.numbers import format_float
from models_app.core.launch.paths import argument_path, folder_of, join_lora, quoted_path, raw_path, unlaunchable
from models_app.core.launch.tokens import WINDOWS, join_tokens, quote, split_command, split_flag_token

WORDS = st.text(st.characters(blacklist_categories=("Cs",), blacklist_characters="\n\r"), max_size=20)


@given(st.lists(WORDS, min_size=1, max_size=6))
def test_words_survive_quoting_and_splitting(words):
    assert split_command(f"exe {join_tokens(words)}")[1:] == words


@given(st.text(max_size=200))
def test_any_text_splits_or_says_why(text):
    for rules in ("posix", WINDOWS):
        with contextlib.suppress(LaunchError):
            assert split_command(text, rules)


def test_windows_keeps_backslashes():
    assert split_command(r'-m "C:\My Models\a.gguf" -t 4', WINDOWS) == ["-m", r"C:\My Models\a.gguf", "-t", "4"]
    assert split_command(r'--kwargs "{\"a\": 1}"', WINDOWS) == ["--kwargs", '{"a": 1}']
    with pytest.raises(LaunchError):
        split_command('-m "open', WINDOWS)


def test_a_word_that_looks_like_a_comment_is_quoted():
    assert quote("#1") == '"#1"'
    assert quote("a#1") == "a#1"


def test_only_double_dash_flags_have_inline_values():
    assert split_flag_token("-c=5") == ("-c=5", "", False)
    assert split_flag_token("--temp=0.5=x") == ("--temp", "0.5=x", True)
    assert split_flag_token("--temp=") == ("--temp", "", True)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_float_text_reads_back_as_the_same_number(value):
    assert float(format_float(value)) == value


@given(st.floats(min_value=1e-4, max_value=999999))
def test_ordinary_numbers_have_no_exponent(value):
    assert "e" not in format_float(value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.8, "0.8"),
        (2.0, "2"),
        (0.0, "0"),
        (-0.0, "0"),
        (1e6, "1e+06"),
        (1234567, "1.234567e+06"),
        (1e-5, "1e-05"),
        (1.5e-7, "1.5e-07"),
        (-0.25, "-0.25"),
        (1e100, "1e+100"),
        (123456.789, "123456.789"),
        (1000001.5, "1.0000015e+06"),
    ],
)
def test_float_text(value, text):
    assert format_float(value) == text


def test_numbers_that_no_command_can_hold_are_refused():
    for value in (float("nan"), float("inf"), -float("inf")):
        with pytest.raises(LaunchError):
            format_float(value)


@pytest.mark.parametrize(
    "path", ["/m/a b.gguf", "/m/it's.gguf", '/m/a"b.gguf', "/m/#a.gguf", "/m/$(x).gguf", "/m/ü.gguf"]
)
def test_paths_stay_one_word(path):
    assert split_command(f"-m {raw_path(path)}") == ["-m", path]
    assert split_command(f"--vae {argument_path(path)}") == ["--vae", path]


def test_plain_paths_are_not_quoted():
    assert raw_path("D:\\m\\a.gguf") == "D:/m/a.gguf"
    assert quoted_path(' D:\\m\\a".gguf') == '"D:/m/a.gguf"'


def test_control_characters_cannot_be_launched():
    assert unlaunchable("/m/a\nb.gguf") == "\n"
    assert unlaunchable("/m/a\u2028b.gguf") == "\u2028"
    assert unlaunchable("/m/a b'\"${x}.gguf") is None


def test_folders():
    assert folder_of("D:\\m\\a.gguf") == "D:/m"
    assert folder_of("/a.gguf") == ""
    assert folder_of("a.gguf") == ""
    assert join_lora("/l/", "/x/a.gguf") == "/x/a.gguf"
    assert join_lora("/l/", "sub\\a.gguf") == "/l/sub/a.gguf"


@pytest.mark.parametrize("text", ["/m/${HOME}.gguf", "${env.X", "a${PORT}b", "${a-b.c}"])
def test_macros_are_found(text):
    assert unsafe_macro(text)


def test_harmless_dollars_are_not_macros():
    assert unsafe_macro("/m/$HOME/{a}/${}") is None
    assert unsafe_macro("--port ${PORT}", allow_port=True) is None
    assert unsafe_macro("--port ${PORT} ${X}", allow_port=True) == "${X}"
