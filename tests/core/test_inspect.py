"""`inspect`: one answer a file, whatever the file is."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bench.header import inspect_peak_mib
from models_app.core import cli
from models_app.core.verbs import inspect
from models_app.core.verbs.environment import Environment
from tests.core.test_gguf_hostile import REFUSED, SMALL
from tests.core.test_gguf_reader import write_shards
from tests.gguf_bytes import gguf, header_bytes, pair, tensor


@pytest.fixture
def run(tmp_path):
    """`run(*arguments)` -> exit code, text on standard output."""
    import argparse

    def call(*arguments: str) -> tuple[int, str]:
        parser = argparse.ArgumentParser()
        inspect.add_arguments(parser)
        out = io.StringIO()
        environment = Environment(tmp_path / "data", datetime(2026, 1, 1, tzinfo=UTC), out, io.StringIO())
        return inspect.run(parser.parse_args(arguments), environment), out.getvalue()

    return call


@pytest.fixture
def model(tmp_path) -> str:
    path = tmp_path / "model.gguf"
    path.write_bytes(SMALL)
    return str(path)


def test_one_object_a_line(run, model, tmp_path):
    missing = str(tmp_path / "missing.gguf")
    code, out = run("--json", model, missing, model)
    first, second, third = (json.loads(line) for line in out.splitlines())
    assert code == 1
    assert set(first) == {"file", "format", "size_bytes", "class", "meta", "warnings"}
    assert (first["file"], first["format"], first["class"], first["size_bytes"]) == (model, "gguf", "llm", len(SMALL))
    assert first["meta"]["block_count"] == 2
    assert first["meta"]["data_complete"] is False
    assert first["warnings"]
    assert set(second) == {"file", "error"}
    assert set(second["error"]) == {"code", "message", "offset"}
    assert second["error"]["code"] == "unreadable"
    assert first == third


def test_the_cache_gives_the_same_answer(run, model, tmp_path):
    answers = [run("--json", model), run("--json", model), run("--json", "--no-cache", model)]
    assert answers[0] == answers[1] == answers[2]
    assert (tmp_path / "data" / "headers.sqlite3").exists()


def test_without_cache_nothing_is_written(run, model, tmp_path):
    assert run("--no-cache", model)[0] == 0
    assert not (tmp_path / "data").exists()


def test_any_part_of_a_set_gives_the_whole(run, tmp_path):
    paths = write_shards(tmp_path)
    code, out = run("--json", *paths)
    answers = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert [answer["file"] for answer in answers] == paths
    assert {answer["size_bytes"] for answer in answers} == {sum(os.path.getsize(path) for path in paths)}
    assert {answer["meta"]["vocab_size"] for answer in answers} == {16}


def test_a_folder(run, tmp_path):
    folder = tmp_path / "Model"
    folder.mkdir()
    (folder / "config.json").write_text('{"architectures":["XForCausalLM"],"num_hidden_layers":3}')
    (folder / "model.safetensors").write_bytes(bytes(10))
    code, out = run("--json", f"{folder}/")
    answer = json.loads(out)
    assert (code, answer["class"], answer["format"], answer["meta"]["block_count"]) == (0, "hf", "hf", 3)
    assert run("--json", str(tmp_path))[0] == 1


def test_a_folder_of_files_says_what_to_name(run, tmp_path):
    code, text = run(str(tmp_path))
    assert code == 1
    assert "name the files in it" in text


def test_a_segmentation_file_is_known_by_its_name(run, tmp_path):
    path = tmp_path / "sam3-f16.ggml"
    path.write_bytes(b"lmgg" + bytes(100))
    code, out = run("--json", str(path))
    answer = json.loads(out)
    assert (code, answer["class"], answer["format"], answer["size_bytes"]) == (0, "sam", "ggml", 104)
    path.write_bytes(b"")
    assert run("--json", str(path))[0] == 1


@pytest.mark.parametrize("raw", [raw for raw, _ in REFUSED.values()], ids=REFUSED.keys())
def test_no_broken_file_is_a_traceback(run, tmp_path, raw):
    path = tmp_path / "x.gguf"
    path.write_bytes(raw)
    code, out = run("--json", "--no-cache", str(path))
    assert code == 1
    assert json.loads(out)["error"]["code"]
    assert run("--no-cache", str(path))[0] == 1


def test_text_for_people(run, tmp_path):
    path = tmp_path / "m-q8_0.gguf"
    kv = [
        ["general.architecture", "string", "llama"],
        ["general.name", "string", "Nice\x1b[31m\nname"],
        ["llama.block_count", "u32", 2],
        ["llama.context_length", "u32", 4096],
        ["llama.embedding_length", "u32", 64],
        ["llama.attention.head_count", "u32", 4],
        ["llama.expert_count", "u32", 8],
    ]
    raw = header_bytes({"kv": kv, "tensors": [{"name": "blk.0.ffn_up_exps.weight", "shape": [32, 4], "type": 8}]})
    path.write_bytes(raw + bytes(4096))
    code, out = run(str(path), str(tmp_path / "gone.gguf"))
    assert code == 1
    assert "architecture" in out
    assert "4,096 tokens trained" in out
    assert "8, 0 used (100% of the bytes)" in out
    assert "\x1b" not in out
    assert "No such file or directory [unreadable]" in out
    assert out.count("\n") == len(out.splitlines())


def test_names_that_no_terminal_can_show(run, tmp_path):
    path = os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9\n.gguf")
    Path(path).write_bytes(SMALL)
    code, out = run("--no-cache", path)
    assert code == 0
    assert len([line for line in out.splitlines() if not line.startswith("  ")]) == 1
    assert json.loads(run("--json", "--no-cache", path)[1])["file"] == path


def test_wrong_usage_is_code_2(capsys):
    with pytest.raises(SystemExit) as caught:
        cli.main(["inspect"])
    assert caught.value.code == 2
    assert "Traceback" not in capsys.readouterr().err


def test_the_command_in_a_process_of_its_own(model, tmp_path):
    finished = subprocess.run(
        [sys.executable, "-m", "models_app.core.cli", "inspect", "--json", model, "/dev/null"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "QM_DATA_DIR": str(tmp_path / "data"), "PYTHONIOENCODING": "ascii"},
        cwd=Path(__file__).resolve().parents[2],
    )
    assert finished.returncode == 1
    assert finished.stderr == ""
    assert [set(json.loads(line)) for line in finished.stdout.splitlines()][1] == {"file", "error"}


TEXT_KEYS = (
    "general.architecture",
    "general.type",
    "general.name",
    "general.basename",
    "general.size_label",
    "general.finetune",
)

HEAVY = {
    "long texts": gguf([pair(key, "string", "\U0001f600" + "a" * ((1 << 20) - 4)) for key in (*TEXT_KEYS, "config")]),
    "a template of words": gguf([pair("tokenizer.chat_template", "string", "ab " * 349_525)]),
    "most keys": gguf([pair(f"{number:0250d}", "u64", (1 << 62) + number) for number in range(65_536)]),
    "most tensors": gguf([], [tensor(f"{number:064d}", [1 << 40], 12) for number in range(131_072)]),
    "endless names": gguf([], [tensor(f"{number}" + "x" * 1_000_000, [1], 0) for number in range(80)]),
}


@pytest.mark.slow
@pytest.mark.parametrize("raw", HEAVY.values(), ids=HEAVY.keys())
def test_inspect_stays_under_60_mib(tmp_path, raw):
    path = tmp_path / "x.gguf"
    path.write_bytes(raw)
    assert inspect_peak_mib(str(path)) < 60
