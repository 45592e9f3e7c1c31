"""V-08: which flags are asked about, and which were confirmed."""

from __future__ import annotations

import pytest

from models_app.core.export.confirming import confirm_findings, doubts_of, record_of, unconfirmed
from models_app.core.export.revisions.outline import ModelOutline, Outline, outline_of
from models_app.core.launch.findings import doubtful_flags
from models_app.core.launch.llama_flags import LLAMA
from models_app.core.launch.sd_flags import SD

HELP = ("-m", "--model", "--threads", "--brand-new", "--host")


@pytest.mark.parametrize(
    ("text", "known", "expected"),
    [
        ("--threads 3 -fa on", HELP, ()),
        ("--thraeds 3 --brand-new 1 --thraeds 4", HELP, ("--thraeds",)),
        ("--thraeds 3", None, ()),  # where the help was not read it cannot be told
        ("-m /other.gguf --host 0.0.0.0 --slot-save-path /x", None, ("-m", "--host", "--slot-save-path")),
        ("--port ${PORT}", HELP, ()),
    ],
)
def test_doubtful_flags(text: str, known: tuple[str, ...] | None, expected: tuple[str, ...]) -> None:
    assert doubtful_flags(LLAMA, text.split(), known) == expected


def test_doubtful_flags_of_another_server() -> None:
    assert doubtful_flags(SD, ["-l", "0.0.0.0", "--steps", "4"], ("--steps",)) == ("-l",)


def of_values(**values: str) -> Outline:
    return Outline({"a": ModelOutline(flags={"--odd": "1", "host": "0.0.0.0"} | values), "b": ModelOutline()})


ENTRIES = [
    {"id": "a", "doubtful": ["--odd", "--host", "--not-in-the-file"]},
    {"id": "b"},
    {"id": "gone", "doubtful": ["-x"]},
]
DOUBTS = {"a": {"--odd": "1", "host": "0.0.0.0"}}


def test_only_what_the_file_has_is_doubtful() -> None:
    assert doubts_of(of_values(), ENTRIES) == DOUBTS


def test_flags_are_found_however_the_program_is_called() -> None:
    text = "models:\n  a:\n    cmd: {} -m /other.gguf --odd 1 2 --port ${{PORT}}\n"
    entries = [{"id": "a", "doubtful": ["-m", "--odd"]}]
    known = outline_of("llama-swap", text.format("/opt/llama-server"))
    assert doubts_of(known, entries) == {"a": {"model": "/other.gguf", "--odd": "1 2"}}
    wrapped = outline_of("llama-swap", text.format("/opt/start.sh"))
    assert doubts_of(wrapped, entries) == {"a": {"-m": "/other.gguf", "--odd": "1 2"}}
    presets = outline_of("llama-server", "version = 1\n\n[a]\nmodel = /other.gguf\n")
    assert doubts_of(presets, entries) == {"a": {"model": "/other.gguf"}}


def test_nothing_is_asked_twice_and_another_value_is_new() -> None:
    kept = [{"rule": "V-18", "by": "ada"}, record_of(DOUBTS)]
    assert unconfirmed(DOUBTS, Outline(), []) == DOUBTS
    assert unconfirmed(DOUBTS, Outline(), kept) == {}
    assert unconfirmed({"a": {"--odd": "2", "host": "0.0.0.0"}}, Outline(), kept) == {"a": {"--odd": "2"}}
    assert unconfirmed({"b": {"--odd": "1"}}, Outline(), kept) == {"b": {"--odd": "1"}}, "another model"


def test_what_is_live_is_not_asked_about() -> None:
    assert unconfirmed(DOUBTS, of_values(), []) == {}
    assert unconfirmed(DOUBTS, of_values(host="127.0.0.1"), []) == {"a": {"host": "0.0.0.0"}}


def test_no_value_is_kept_in_clear() -> None:
    assert "secret-value" not in str(record_of({"a": {"--my-token": "secret-value"}}))


def test_one_line_with_the_first_models() -> None:
    many = {f"m{n}": {"--odd": "1"} for n in range(5)}
    (item,) = confirm_findings(many, many)
    assert (item.rule, item.severity, item.where) == ("V-08", "confirm", "models.m0")
    assert item.message.startswith("5 models have flags that their server does not know")
    assert item.message.endswith("m0 (--odd), m1 (--odd), m2 (--odd) and 2 more")
    (item,) = confirm_findings(DOUBTS, {})
    assert (item.severity, item.message[-30:]) == ("note", ": a (--odd, --host); confirmed")
    assert not list(confirm_findings({}, {}))
