"""Launch texts against the help of builds: five llama-servers of three years and an sd-server."""

from __future__ import annotations

from pathlib import Path

import pytest

from models_app.core.launch.findings import text_findings, text_problem
from models_app.core.launch.help import parse_help
from models_app.core.launch.llama_flags import LLAMA
from models_app.core.launch.lora import takes_joined_scale
from models_app.core.launch.program_text import program_facts
from models_app.core.launch.sd_flags import SD

DATA = Path(__file__).parents[1] / "data"
BUILDS = {
    "b11434": "llama-server-help.txt",
    "b10068": "llama-server-help-b10068.txt",
    "2025-05": "llama-server-help-2025-05.txt",
    "2024-08": "llama-server-help-2024-08.txt",
    "2023-11": "llama-server-help-2023-11.txt",
}
"""What real builds print for `--help`, recorded on a machine without a GPU; which ones: tests/data/README.md."""
HELP = {build: (DATA / name).read_text(encoding="utf-8") for build, name in BUILDS.items()}
REAL = HELP["b11434"]

IMAGES = (DATA / "sd-server-help.txt").read_text(encoding="utf-8")


def OLDER(flag):
    return ("warn", "older build", flag)


def UNKNOWN(flag):
    return ("bad", "unknown", flag)


def said(table, text, help_text):
    found = text_findings(table, text, help_spellings=parse_help(help_text).spellings)
    return [(finding.level, finding.word, finding.argument) for finding in found if finding.level != "note"]


@pytest.mark.parametrize(
    ("table", "help_text", "text", "expected"),
    [
        (LLAMA, REAL, "-c 8192 -t 3 --fit-margin-not 1", [("bad", "unknown", "--fit-margin-not")]),
        (LLAMA, REAL, "--no-mmproj-auto --rpc a:1 --numa distribute -Crb 0-3", []),
        (LLAMA, REAL, "--ctx_size 4096 --numa isolate --cpu_mask_batch ff", []),
        (LLAMA, HELP["b10068"], "--spec-type ngram-mod --lora-scaled a:1 --load-mode dio", [OLDER("--load-mode")]),
        (LLAMA, HELP["2025-05"], "-c 8192 -t 2 --mlock --cache-reuse 256 -sm row", []),
        (LLAMA, HELP["2025-05"], "--swa-full -ctk q8_0 --mmproj p", [OLDER("--swa-full"), OLDER("--mmproj")]),
        (LLAMA, HELP["2024-08"], "-c 8192 -t 2 -fa --mlock --numa distribute --lookup-cache-static f", []),
        (LLAMA, HELP["2024-08"], "--cache-reuse 256 --jinja", [OLDER("--cache-reuse"), OLDER("--jinja")]),
        (LLAMA, HELP["2023-11"], "-c 8192 -t 2 --mlock --no-mmap -np 2 --memory-f32", []),
        (LLAMA, HELP["2023-11"], "-fa on --thraeds 3 --thraeds 4", [UNKNOWN("--thraeds"), OLDER("-fa")]),
        (LLAMA, HELP["b10068"], "--memory-f32 --lora-base f", [UNKNOWN("--memory-f32"), UNKNOWN("--lora-base")]),
        (SD, IMAGES, "--clip_l /a.safetensors", []),
        (SD, IMAGES, "--vae /v --stepps 3 --stream-layers", [UNKNOWN("--stepps"), OLDER("--stream-layers")]),
        (SD, IMAGES, "--clip-l /a.safetensors", [("bad", "unknown", "--clip-l")]),
    ],
)
def test_flags_are_looked_up_in_table_and_help(table, help_text, text, expected):
    assert said(table, text, help_text) == expected


def test_an_unknown_flag_names_what_may_be_meant_and_is_asked_about():
    (finding,) = text_findings(LLAMA, "--fit-targget 512", help_spellings=parse_help(REAL).spellings)
    assert finding.confirm
    assert "--fit-target" in finding.suggestions


@pytest.mark.parametrize("help_text", HELP.values(), ids=HELP)
def test_what_only_the_build_knows_is_accepted(help_text):
    spellings = parse_help(f"{help_text}\n  --brand-new N   a flag of tomorrow").spellings
    assert text_findings(LLAMA, "--brand-new 1", help_spellings=spellings) == ()


@pytest.mark.parametrize("build", HELP)
def test_every_layout_tells_spellings_apart_from_their_values(build):
    found = parse_help(HELP[build])
    assert {"-c", "--ctx-size", "-m", "--model", "--port", "-t", "--threads", "--lora"} <= found.hints.keys()
    assert (found.values("-c"), found.values("--ctx-size"), found.values("--mlock")) in ((1, 1, 0), (1, 1, None))
    assert len(found.hints) >= 0.98 * len(found.spellings), "few are only named in prose"
    assert not [hint for hint in found.hints.values() if "  " in hint or "(default" in hint]


@pytest.mark.parametrize(("build", "words"), [("b11434", 1), ("b10068", 1), ("2025-05", 2), ("2024-08", 2)])
def test_builds_say_whether_a_scale_stands_behind_its_file(build, words):
    found = parse_help(HELP[build])
    assert found.values("--lora-scaled") == words
    assert takes_joined_scale(found.hints["--lora-scaled"]) == (words == 1)


@pytest.mark.parametrize("build", HELP)
def test_every_build_is_known_for_what_it_is(build):
    facts = program_facts(HELP[build])
    assert facts.kind == "llama"
    assert facts.joined_lora_scale == build.startswith("b")


def test_values_with_blanks_are_one_value():
    assert parse_help(REAL).values("-ot") == 1


def test_without_a_help_there_is_one_remark():
    (unknown,) = text_findings(LLAMA, "--aaa 1 --bbb 2")
    assert (unknown.level, unknown.word, unknown.argument) == ("warn", "unverified", "--aaa --bbb")
    assert not unknown.confirm
    known = [finding for finding in text_findings(LLAMA, "-t 3 --prio 2") if "help" in finding.text]
    assert [finding.level for finding in known] == ["note"]


@pytest.mark.parametrize(
    ("table", "text", "words"),
    [
        (LLAMA, "--port 9", "--port takes the port from the router"),
        (LLAMA, "--port ${PORT}", ""),
        (LLAMA, "--port ${PORT} --alias ${PORT}", "only once"),
        (LLAMA, "--alias ${PORT}", "only once"),
        (LLAMA, "--alias port --host 0.0.0.0", ""),
        (LLAMA, "# --port 9", ""),
        (LLAMA, "--port '9", "Close the quotation"),
        (SD, "--listen-port 9", "--listen-port takes"),
        (SD, "--port 9", ""),
    ],
)
def test_a_text_may_neither_take_the_port_of_the_router_nor_stay_open(table, text, words):
    problem = text_problem(table, text)
    assert (words in problem) if words else problem == ""


@pytest.mark.parametrize(
    ("text", "loose"),
    [
        ("/opt/llama-server -m /a.gguf -t 3 --lora a b", ["/opt/llama-server", "b"]),
        ("-t 3 --brand-new 1 2 -c 4096", []),
        ("-t 3 && reboot", ["reboot"]),
        ("--lora-scaled a.gguf 0.5 --lora-scaled b.gguf:1 c", ["c"]),
    ],
)
def test_words_that_belong_to_no_flag_are_asked_about(text, loose):
    found = [item for item in text_findings(LLAMA, text) if item.word == "no flag"]
    assert [item.argument for item in found] == loose
    assert all(item.confirm for item in found)
