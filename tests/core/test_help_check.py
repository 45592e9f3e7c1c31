"""Launch texts against the help of a build: what the current llama-server prints, and two other layouts."""

from __future__ import annotations

from pathlib import Path

import pytest

from models_app.core.launch.findings import port_problem, text_findings
from models_app.core.launch.help import parse_help
from models_app.core.launch.llama_flags import LLAMA
from models_app.core.launch.sd_flags import SD

REAL = (Path(__file__).parents[1] / "data" / "llama-server-help.txt").read_text(encoding="utf-8")
"""`llama-server --help` of llama.cpp b11434."""

OLDER = """\
usage: server [options]

options:
  -h, --help                show this message
  -c N, --ctx-size N        window in tokens (default: 512)
  -t N, --threads N         threads of the CPU; also see --numa
  -ngl N, --n-gpu-layers N  layers on the GPU
      --mlock               keep the model in RAM
  --port PORT               where to listen (default: 8080)
"""
"""Indented, each spelling with its own value: how builds of 2023 and 2024 wrote it."""

IMAGES = """\
usage: sd-server [options]

Server:
  -l, --listen-ip <string>    address (default: 127.0.0.1)
  --listen-port <int>         port (default: 1234)

Context:
  -m, --model <string>        a whole model
  --clip_l <string>           a text encoder
  --diffusion-model <string>  a diffusion model alone
"""


def said(table, text, help_text):
    found = text_findings(table, text, help_spellings=parse_help(help_text).spellings)
    return [(finding.level, finding.word, finding.argument) for finding in found if finding.level != "note"]


@pytest.mark.parametrize(
    ("table", "help_text", "text", "expected"),
    [
        (LLAMA, REAL, "-c 8192 -t 3 --fit-margin-not 1", [("bad", "unknown", "--fit-margin-not")]),
        (LLAMA, REAL, "--no-mmproj-auto --rpc a:1 --numa distribute -Crb 0-3", []),
        (LLAMA, REAL, "--ctx_size 4096 --numa isolate --cpu_mask_batch ff", []),
        (LLAMA, OLDER, "-c 8192 -ngl 3 -t 2 --mlock --numa distribute", []),
        (
            LLAMA,
            OLDER,
            "--cache-reuse 256 -fa on",
            [("warn", "older build", "--cache-reuse"), ("warn", "older build", "-fa")],
        ),
        (LLAMA, OLDER, "--thraeds 3 --thraeds 4", [("bad", "unknown", "--thraeds")]),
        (SD, IMAGES, "--clip_l /a.safetensors", []),
        (SD, IMAGES, "--vae /v --stepps 3", [("bad", "unknown", "--stepps"), ("warn", "older build", "--vae")]),
        (SD, IMAGES, "--clip-l /a.safetensors", [("bad", "unknown", "--clip-l")]),
    ],
)
def test_flags_are_looked_up_in_table_and_help(table, help_text, text, expected):
    assert said(table, text, help_text) == expected


def test_an_unknown_flag_names_what_may_be_meant_and_is_asked_about():
    (finding,) = text_findings(LLAMA, "--fit-targget 512", help_spellings=parse_help(REAL).spellings)
    assert finding.confirm
    assert "--fit-target" in finding.suggestions


@pytest.mark.parametrize("help_text", [REAL, OLDER])
def test_what_only_the_build_knows_is_accepted(help_text):
    spellings = parse_help(f"{help_text}\n  --brand-new N   a flag of tomorrow").spellings
    assert text_findings(LLAMA, "--brand-new 1", help_spellings=spellings) == ()


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
        (LLAMA, "--port '9", ""),
        (SD, "--listen-port 9", "--listen-port takes"),
        (SD, "--port 9", ""),
    ],
)
def test_a_text_may_not_take_the_port_of_the_router(table, text, words):
    problem = port_problem(table, text)
    assert (words in problem) if words else problem == ""
