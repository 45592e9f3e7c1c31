"""The verb `check`: shapes of its answers, exit codes, and files that nobody should be able to hurt it with."""

from __future__ import annotations

import json
import os
import time

import pytest

from models_app.core import cli

GOOD = b'healthCheckTimeout: 300\nmodels:\n  "m":\n    cmd: srv --port ${PORT}\n'
LAUGHS = b"a: &a [1,1,1,1,1,1,1,1,1,1]\n" + b"".join(
    b"%c: &%c [%s]\n" % (after, after, b",".join([b"*%c" % before] * 10))
    for before, after in zip(b"abcdefghijk", b"bcdefghijkl", strict=True)
)


def run(capsys, path, *words):
    code = cli.main(["check", str(path), "--dialect", "llama-swap", *words])
    return code, *capsys.readouterr()


@pytest.fixture
def config(tmp_path):
    def write(data):
        path = tmp_path / "config.yaml"
        path.write_bytes(data)
        return path

    return write


def test_a_good_file(config, capsys):
    path = config(GOOD)
    code, out, _ = run(capsys, path, "--json")
    assert code == 0
    assert json.loads(out) == {"file": str(path), "dialect": "llama-swap", "findings": []}
    assert run(capsys, path)[:2] == (0, f"{path}: no findings\n")


def test_findings_have_lines_and_decide_the_exit_code(config, capsys):
    warned = config(GOOD + b'  "n":\n    cmd: srv --port ${PORT}\n')
    code, out, _ = run(capsys, warned, "--json")
    assert code == 0
    assert json.loads(out)["findings"] == [
        {
            "rule": "V-20",
            "severity": "warn",
            "where": "models.n.cmd",
            "line": 6,
            "message": "n runs the same command as m",
        }
    ]
    blocked = config(GOOD + b"    ttl: -2\n")
    code, out, _ = run(capsys, blocked)
    assert code == 1
    assert out.startswith(f"{blocked}:5: block V-02: ")


@pytest.mark.parametrize(
    "data",
    [
        LAUGHS,
        b"[" * 1_000_000,
        b"{a: " * 1_000_000,
        b"- " * 100_000,
        b"a: \x00\n",
        b"a: \xff\xfe\n",
        b"a: \xed\xa0\x80\n",
        b"a: 1\na: 2\n",
        b"a: !!python/object/apply:os.system [id]\n",
        b"a: &a {b: *a}\n",
        b"#" * ((16 << 20) + 1),
        b"a: 1\n---\nb: 2\n",
        b"models:\n  m:\n    cmd: 'open\n",
        b"? {a: b}\n: c\n",
        b"%YAML 9.9\n---\na: 1\n",
        b"\x1f\x8b\x08\x00",
        b"GGUF\x03\x00\x00\x00",
    ],
    ids=range(17),
)
def test_hostile_files_are_one_finding(config, capsys, data):
    path = config(data)
    started = time.monotonic()
    code, out, errors = run(capsys, path, "--json")
    assert time.monotonic() - started < 5
    assert (code, errors) == (1, "")
    (finding,) = json.loads(out)["findings"]
    assert (finding["rule"], finding["severity"]) == ("V-01", "block")


@pytest.mark.parametrize(
    "data", [b"", b"# nothing\n", b"[]\n", b"word\n", b"7\n", b"models: 7\n", b"models: {m: []}\n"]
)
def test_files_of_another_shape(config, capsys, data):
    code, out, _ = run(capsys, config(data), "--json")
    assert code == 1
    assert all(finding["rule"] == "V-02" for finding in json.loads(out)["findings"])


def macros(last, copies=10):
    lines = [f"  a{number}: '{f'${{a{number - 1}}}' * copies}'" for number in range(1, last + 1)]
    return "\n".join(["macros:", f"  a0: {'x' * 10}", *lines, "models:"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f"{macros(14)}\n  m: {{cmd: '${{a14}} ${{PORT}}'}}\n", "longer than 1,048,576 characters"),
        (
            macros(4) + "".join(f"\n  m{number}: {{cmd: '${{a4}} ${{PORT}}'}}" for number in range(2000)),
            "of all texts together",
        ),
    ],
    ids=["one text", "many texts"],
)
def test_macros_that_grow_without_measure(config, capsys, text, words):
    started = time.monotonic()
    code, out, _ = run(capsys, config(text.encode()))
    assert code == 1
    assert words in out
    assert time.monotonic() - started < 20


def test_a_fault_in_every_model_is_found_in_good_time(config, capsys):
    text = "models: {" + ",".join(f"m{number}: [{number}]" for number in range(20_000)) + "}"
    started = time.monotonic()
    code, out, _ = run(capsys, config(text.encode()), "--json")
    assert code == 1
    assert len(json.loads(out)["findings"]) == 20_000
    assert time.monotonic() - started < 20


def test_files_that_cannot_be_read(tmp_path, capsys):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    for path in (tmp_path / "missing", tmp_path, fifo, tmp_path / ("x" * 300), "nul\0byte"):
        code, out, _ = run(capsys, path, "--json")
        assert code == 1
        assert json.loads(out)["findings"][0]["rule"] == "V-01"


def test_terminal_text_is_harmless(config, capsys):
    code, out, _ = run(capsys, config(b'models:\n  "\\e[31mred":\n    cmd: srv\n'))
    assert code == 1
    assert "\x1b" not in out


def test_usage(capsys):
    for words in (["check"], ["check", "x"], ["check", "x", "--dialect", "nope"]):
        with pytest.raises(SystemExit) as stopped:
            cli.main(words)
        assert stopped.value.code == 2
    capsys.readouterr()
