"""`project` on the command line: words, batches, bad input, exit codes."""

from __future__ import annotations

import json
import os

import pytest

from models_app.core import cli

KEYS = {"model_bytes", "context_bytes", "compute_bytes"}


@pytest.fixture(autouse=True)
def _data_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("QM_DATA_DIR", str(tmp_path / "data"))


@pytest.fixture
def project(capsys):
    """Exit code, standard output and standard error of one call."""

    def call(*words):
        try:
            code = cli.main(["project", *map(str, words)])
        except SystemExit as error:
            code = error.code
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


@pytest.fixture
def batch(project, tmp_path):
    """Answers to a batch of objects or raw lines."""

    def call(*lines):
        path = tmp_path / "batch.jsonl"
        path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
        code, out, err = project("--batch", path)
        assert "Traceback" not in err
        return code, [json.loads(line) for line in out.splitlines()]

    return call


@pytest.fixture
def llama(zoo_folder):
    return str(zoo_folder / "llama31-8b-q4_k_m.gguf")


def test_json_names_every_device_and_the_host(project, llama):
    code, out, err = project(llama, "--json", "--ctx", 32768, "--devices", 2)
    answer = json.loads(out)
    assert (code, err) == (0, "")
    assert set(answer) == {"file", "engine", "devices", "host", "warnings"}
    assert (answer["file"], answer["engine"], answer["warnings"]) == (llama, "exact", [])
    assert [set(device) for device in answer["devices"]] == [{"name", *KEYS}] * 2
    assert set(answer["host"]) == KEYS
    assert [device["context_bytes"] for device in answer["devices"]] == [2176 << 20, 1920 << 20]
    assert all(isinstance(device[key], int) for device in answer["devices"] for key in KEYS)


def test_a_device_that_gets_nothing_is_listed(project, llama):
    _, out, _ = project(llama, "--json", "--ctx", 4096, "--devices", 2, "--ngl", 0)
    assert all(device[key] == 0 for device in json.loads(out)["devices"] for key in KEYS)


def test_the_table_for_people(project, llama):
    code, out, _ = project(llama, "--ctx", 32768, "--ctk", "q8_0", "--ctv", "q8_0")
    lines = out.splitlines()
    assert code == 0
    assert lines[0] == f"{llama}  (exact)"
    assert lines[1].split() == ["weights", "context", "compute", "total"]
    assert lines[2].split() == ["GPU0", "4.30", "GiB", "2.12", "GiB", "148.1", "MiB", "6.57", "GiB"]
    assert len({len(line) for line in lines[1:4]}) == 1


def test_any_shard_stands_for_its_set(project, zoo_folder):
    shards = sorted(zoo_folder.glob("llama33-70b-q4_k_m-*.gguf"))
    _, out, _ = project(*shards, "--json", "--ctx", 4096)
    answers = [json.loads(line) for line in out.splitlines()]
    assert len(shards) == 3
    assert len({answer["devices"][0]["model_bytes"] for answer in answers}) == 1


def test_an_embedder_counts_as_started_with_embeddings(project, zoo_folder):
    name = zoo_folder / "qwen3-embedding-0.6b-q8_0.gguf"
    _, out, _ = project(name, "--json", "--ctx", 4096)
    assert json.loads(out)["devices"][0]["compute_bytes"] > 4 * 151669 * 512


def test_a_file_that_fails_leaves_an_error_in_its_place(project, llama, tmp_path):
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF")
    code, out, err = project(broken, llama, tmp_path / "missing.gguf", "--json", "--ctx", 4096)
    first, second, third = map(json.loads, out.splitlines())
    assert code == 1
    assert first == {"file": str(broken), "error": first["error"]}
    assert set(first["error"]) == {"code", "message", "offset"}
    assert second["engine"] == "exact"
    assert third["error"]["code"] == "unreadable"
    assert err == ""


def test_the_cache_is_used_and_can_be_left_out(project, llama, tmp_path):
    _, fresh, _ = project(llama, "--json", "--ctx", 4096, "--no-cache")
    assert not (tmp_path / "data").exists()
    answers = [project(llama, "--json", "--ctx", 4096)[1] for _ in range(2)]
    assert answers == [fresh, fresh]
    assert (tmp_path / "data" / "headers.sqlite3").exists()


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--ctx", "0"],
        ["--ctx", "-5"],
        ["--ctx", "many"],
        ["--ctx", "4_096"],
        ["--ctx", "\N{FULLWIDTH DIGIT FOUR}096"],
        ["--ctx", "9" * 5000],
        ["--ctx", "4096", "--devices", "2", "--tensor-split", "1_0,1"],
        ["--ctx", "4096", "--ctk", "q3_k"],
        ["--ctx", "4096", "--ctv", "q8_0", "--fa", "off"],
        ["--ctx", "4096", "--devices", "2", "--tensor-split", "1"],
        ["--ctx", "4096", "--devices", "2", "--tensor-split", "0,0"],
        ["--ctx", "4096", "--devices", "2", "--tensor-split", "1,x"],
        ["--ctx", "4096", "--devices", "2", "--tensor-split", "1,inf"],
        ["--ctx", "4096", "--ngl", "some"],
        ["--ctx", "4096", "--ngl", "-1"],
        ["--ctx", "4096", "--kv-unified", "--no-kv-unified"],
        ["--ctx", "4096", "--batch", "x.jsonl"],
        ["--ctx", "4096", "--made-up"],
    ],
    ids=" ".join,
)
def test_wrong_usage(project, llama, words):
    code, out, err = project(llama, "--json", *words)
    assert (code, out) == (2, "")
    assert err
    assert "Traceback" not in err


def test_no_file_and_no_batch(project):
    assert project("--ctx", 4096)[0] == 2


def test_a_launch_that_this_model_refuses_is_wrong_usage(project, zoo_folder):
    code, out, _ = project(zoo_folder / "deepseek-v2-lite-q4_k_m.gguf", "--json", "--ctx", 4096, "--ctk", "q8_0")
    assert code == 2
    assert json.loads(out)["error"]["code"] == "usage"


def test_a_batch_answers_line_by_line(batch, project, llama):
    full = {"file": llama, "ctx": 32768, "ub": 1024, "b": 2048, "ctk": "q8_0", "ctv": "q8_0", "parallel": 4}
    full |= {"kv_unified": True, "ngl": "all", "n_cpu_moe": 0, "devices": 2, "tensor_split": [2, 3], "fa": "on"}
    code, answers = batch({**full, "outputs": "all"}, {"file": llama, "ctx": 4096, "ngl": 17, "ub": None})
    assert code == 0
    assert [device["context_bytes"] for device in answers[0]["devices"]] == [952 << 20, 1224 << 20]
    single = project(llama, "--json", "--ctx", 4096, "--ngl", 17)[1]
    assert answers[1] == json.loads(single)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "not json",
        "[1]",
        "[" * 100_000,
        {"ctx": 4096},
        {"file": 7, "ctx": 4096},
        {"file": "a\0b", "ctx": 4096},
        {"file": "LLAMA"},
        {"file": "LLAMA", "ctx": "4096"},
        {"file": "LLAMA", "ctx": 4096.5},
        {"file": "LLAMA", "ctx": True},
        {"file": "LLAMA", "ctx": 10**30},
        {"file": "LLAMA", "ctx": 4096, "ngl": "most"},
        {"file": "LLAMA", "ctx": 4096, "tensor_split": "1,1"},
        {"file": "LLAMA", "ctx": 4096, "tensor_split": []},
        {"file": "LLAMA", "ctx": 4096, "tensor_split": [10**400]},
        {"file": "LLAMA", "ctx": 4096, "fa": "auto"},
        {"file": "LLAMA", "ctx": 4096, "ctk": 8},
        {"file": "LLAMA", "ctx": 4096, "context": 1},
        {"file": "LLAMA", "ctx": 4096, "devices": 2, "tensor_split": [1e-320, 1e-320]},
        '{"file": "x.gguf", "ctx": 4096, "ctx": 8192}',
        '{"file": "' + "x" * (2 << 20) + '", "ctx": 4096}',
    ],
    ids=lambda line: json.dumps(line)[:60],
)
def test_a_bad_line_gets_an_error_and_the_rest_goes_on(batch, llama, line):
    if isinstance(line, dict) and line.get("file") == "LLAMA":
        line = {**line, "file": llama}
    code, (bad, good) = batch(line, {"file": llama, "ctx": 4096})
    assert code == 1
    assert bad["error"]["code"] == "usage"
    assert bad["error"]["message"]
    assert good["engine"] == "exact"


def test_a_batch_as_windows_writes_it(project, tmp_path, llama):
    path = tmp_path / "batch.jsonl"
    line = json.dumps({"file": llama, "ctx": 4096}).encode()
    path.write_bytes(b"\xef\xbb\xbf" + line + b"\r\n" + line + b"\r\n")
    code, out, _ = project("--batch", path)
    assert code == 0
    assert len(set(out.splitlines())) == 1
    assert len(out.splitlines()) == 2


def test_a_batch_from_standard_input(project, tmp_path, llama, monkeypatch):
    path = tmp_path / "batch.jsonl"
    path.write_text(json.dumps({"file": llama, "ctx": 4096}) + "\n")
    with path.open() as stream:
        monkeypatch.setattr("sys.stdin", stream)
        code, out, _ = project("--batch", "-")
        assert not stream.closed
    assert (code, len(out.splitlines())) == (0, 1)


def test_a_batch_that_cannot_be_read(project, tmp_path):
    code, out, err = project("--batch", tmp_path / "missing.jsonl")
    assert (code, out) == (2, "")
    assert "cannot read" in err


def test_names_that_are_no_text_do_not_break_the_output(project, llama, tmp_path):
    odd = tmp_path / "line\nbreak-\udcff.gguf"
    os.link(llama, odd)
    code, out, _ = project(odd, "--json", "--ctx", 4096)
    assert code == 0
    assert json.loads(out)["file"] == str(odd)
    assert "\ufffd" in project(odd, "--ctx", 4096)[1].splitlines()[0]


def test_a_missing_window_names_its_option(project, tmp_path):
    code, out, err = project(tmp_path / "model.gguf")
    assert (code, out) == (2, "")
    assert "--ctx N is missing" in err
