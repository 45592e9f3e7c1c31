"""Validation of a file alone: each rule finds its faults, names the line, and leaves good files in peace."""

from __future__ import annotations

import pytest

from models_app.core.export.validate import validate_bytes, validate_text

GOOD = """\
healthCheckTimeout: 300
models:
  "m":
    cmd: >
      llama-server
      -m /m.gguf
      --port ${PORT}
    ttl: 600
    aliases: ["chat"]
groups:
  "g":
    members:
      - "m"
"""
BOTH = ("llama-swap", "quartermaster")


def found(text, dialect):
    return {(item.rule, item.severity, item.line) for item in validate_text(text, dialect)}


@pytest.mark.parametrize("dialect", BOTH)
def test_a_good_file_has_no_findings(dialect):
    assert validate_text(GOOD, dialect) == []


MODEL = "models:\n  m:\n    cmd: srv --port ${PORT}\n"


@pytest.mark.parametrize(
    ("text", "rule", "severity", "line"),
    [
        ("models: {}\nmodels: {}\n", "V-01", "block", 2),
        ("models: [\n", "V-01", "block", 2),
        ("[]\n", "V-02", "block", 1),
        ("healthCheckTimeout: 5\nmodels: {}\n", "V-02", "block", 1),
        (MODEL + "    ttl: -2\n", "V-02", "block", 4),
        (MODEL + "    ttl: soon\n", "V-02", "block", 4),
        (MODEL + "    capabilities: {out: [smell]}\n", "V-02", "block", 4),
        (MODEL + "apiKeys:\n  - 'a b'\n", "V-02", "block", 5),
        ("models:\n  m: {ttl: 1}\n", "V-02", "block", 2),
        (MODEL + "    aliases: [a]\n  n:\n    cmd: x --port ${PORT}\n    aliases: [a]\n", "V-03", "block", 7),
        (MODEL + "    aliases: [n]\n  n:\n    cmd: x --port ${PORT}\n", "V-03", "block", 4),
        (MODEL + "    aliases: [M]\n", "V-03", "warn", 4),
        (MODEL + "    filters: {setParamsByID: {n: {}}}\n  n:\n    cmd: x --port ${PORT}\n", "V-03", "block", 4),
        (MODEL + '  n:\n    cmd: x --port ${PORT} "open\n', "V-04", "block", 5),
        (MODEL + "  n:\n    cmd: '# only a comment'\n    proxy: http://x\n", "V-04", "block", 5),
        (MODEL + "  n:\n    cmd: x --port ${PORT} ${what}\n", "V-05", "block", 5),
        (MODEL + "    name: ${PID}\n", "V-05", "block", 4),
        (MODEL + "  n:\n    cmd: no port here\n", "V-05", "block", 5),
        (MODEL + "  n:\n    cmd: x\n    proxy: http://h:${PORT}\n", "V-05", "block", 6),
        (MODEL + "macros: {PORT: 1}\n", "V-05", "block", 4),
        (MODEL + "groups:\n  g: {members: [m, ghost]}\n", "V-06", "block", 5),
        (MODEL + "groups:\n  g: {members: [m]}\n  h: {members: [m]}\n", "V-06", "block", 6),
        (MODEL + "groups:\n  g: {members: [m]}\nmatrix: {vars: {a: m}, sets: {s: a}}\n", "V-06", "block", 6),
        (MODEL + "matrix: {vars: {a: m}, sets: {s: a & nobody}}\n", "V-06", "block", 4),
        (MODEL + "matrix: {vars: {a: m}, sets: {s: +t, t: +s}}\n", "V-06", "block", 4),
        ("models:\n  m:\n    cmd: srv --port ${PORT} --api-key abcdefgh\n", "V-15", "warn", 3),
        ("models:\n  m:\n    cmd: srv --port ${PORT} --hf-token=abcdefgh\n", "V-15", "warn", 3),
        ("models:\n  m:\n    cmd: srv --port ${PORT} -x hf_aaaaaaaaaaaaaaaaaaaa\n", "V-15", "warn", 3),
        (MODEL + "  n:\n    cmd: srv  --port ${PORT}\n", "V-20", "warn", 5),
    ],
)
@pytest.mark.parametrize("dialect", BOTH)
def test_rules(text, rule, severity, line, dialect):
    assert (rule, severity, line) in found(text, dialect)


@pytest.mark.parametrize(
    "text",
    [
        MODEL + "macros: {a: 1}\n  ".rstrip() + "\n",
        "macros: {bin: srv}\nmodels:\n  m:\n    cmd: ${bin} --port ${PORT} --id ${MODEL_ID}\n",
        "models:\n  m:\n    cmd: srv --port ${PORT}\n    cmdStop: kill ${PID}\n",
        "models:\n  m:\n    cmd: srv --port 9000\n    proxy: http://localhost:9000\n",
        "models:\n  m:\n    cmd: srv --port ${PORT} --api-key ${env.KEY}\n",
        "models:\n  m:\n    cmd: srv --port ${PORT}\n  n:\n    cmd: srv --port ${PORT} --id ${MODEL_ID}\n",
        "models:\n  m:\n    cmd: |\n      srv\n      # a note\n      --port ${PORT}\n",
        "models:\n  m: &m\n    cmd: srv --port ${PORT}\n    ttl: 1\n  n:\n    <<: *m\n    cmd: other --port ${PORT}\n",
    ],
)
@pytest.mark.parametrize("dialect", BOTH)
def test_what_people_write_is_left_in_peace(text, dialect):
    assert validate_text(text, dialect) == []


def test_the_dialects_disagree():
    listeners = MODEL + "groups: {g: {members: [m]}}\nlisteners: {':1': {groups: [nobody]}}\n"
    assert found(listeners, "llama-swap") == set()
    assert ("V-06", "block", 5) in found(listeners, "quartermaster")
    prompt = MODEL + "    promptEnhancerPrompt: use ${x}\n"
    assert ("V-05", "block", 4) in found(prompt, "llama-swap")
    assert found(prompt, "quartermaster") == set()
    video = MODEL + "    capabilities: {out: [video]}\n"
    assert ("V-02", "block", 4) in found(video, "llama-swap")
    assert found(video, "quartermaster") == set()


def test_a_secret_is_not_repeated():
    (finding,) = validate_text("models:\n  m:\n    cmd: srv --port ${PORT} --api-key hunter2hunter2\n", "llama-swap")
    assert "hunter2" not in finding.message


def test_messages_are_one_bounded_line():
    text = 'models:\n  "a\\nb":\n    cmd: srv --port ${PORT}\n    ttl: "' + "x" * 10_000 + '"\n'
    for item in validate_text(text, "llama-swap"):
        assert len(item.message) <= 400
        assert len((item.message + item.where).splitlines()) == 1


def test_windows_words_are_split_by_windows_rules():
    text = "models:\n  m:\n    cmd: C:\\srv.exe --port ${PORT} it's\n"
    assert validate_text(text, "llama-swap", "windows") == []
    assert [item.rule for item in validate_text(text, "llama-swap")] == ["V-04"]


def test_bytes_that_are_no_text():
    (finding,) = validate_bytes(b"models:\n  m: \xff\n", "llama-swap")
    assert (finding.rule, finding.severity, finding.line) == ("V-01", "block", 2)


def test_a_large_file_in_reasonable_time():
    model = '  "m{0}":\n    cmd: >\n      srv\n      -m /m{0}.gguf\n      --port ${{PORT}}\n    ttl: 600\n'
    text = "models:\n" + "".join(model.format(number) for number in range(2000))
    assert validate_text(text, "llama-swap") == []
