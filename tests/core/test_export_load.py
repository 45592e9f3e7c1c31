"""The loader of foreign YAML: what it takes, what it refuses, and that it stays bounded."""

from __future__ import annotations

import time
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models_app.core.export.load import MAX_BYTES, LoadError, decode, load


def test_values_as_the_routers_read_them():
    text = "a: on\nb: yes\nc: true\nd: 0x1f\ne: 012\nf: 1_000\ng: 1e3\nh: ~\ni: 12:30\nj: 2026-11-30\nk: .inf\nl: -0\n"
    assert load(text).value == {
        "a": "on",
        "b": "yes",
        "c": True,
        "d": 31,
        "e": 10,
        "f": "1_000",
        "g": 1000.0,
        "h": None,
        "i": "12:30",
        "j": "2026-11-30",
        "k": float("inf"),
        "l": 0,
    }


def test_keys_are_text():
    assert load("1: a\ntrue: b\nnull: c\n").value == {"1": "a", "true": "b", "null": "c"}


def test_lines_of_every_place():
    tree = load("models:\n  m:\n    cmd: x\n    aliases:\n      - a\n      - b\n")
    assert tree.line_of(("models", "m", "cmd")) == 3
    assert tree.line_of(("models", "m", "aliases", 1)) == 6
    assert tree.line_of(("models", "m", "missing", "deeper")) == 3


def test_merge_keys_fill_what_is_missing():
    text = "base: &b {ttl: 1, name: x}\nm:\n  <<: *b\n  ttl: 2\nn:\n  <<: [{a: 1}, {a: 2, c: 3}]\n"
    value = load(text).value
    assert value["m"] == {"ttl": 2, "name": "x"}
    assert value["n"] == {"a": 1, "c": 3}


LAUGHS = "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{name}: &{name} [{','.join([f'*{before}'] * 10)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "problem", "line"),
    [
        ("a: 1\nb: 2\na: 3\n", "twice (first in line 1)", 3),
        ("m:\n  'x': 1\n  \"x\": 2\n", "twice", 3),
        (LAUGHS, "too many values", 4),
        ("a: &a [*a]\n", "holds itself", 1),
        ("a: &a {b: *a}\n", "holds itself", 1),
        ("a: *nowhere\n", "no anchor", 1),
        ("a: !!python/object/apply:os.system ['id']\n", "refused", 1),
        ("a: !Custom 1\n", "refused", 1),
        ("a: !!binary aGk=\n", "refused", 1),
        ("a: !!int word\n", "no int", 1),
        ("? [a, b]\n: c\n", "a key must be one word", 1),
        ("a: 1\n---\nb: 2\n", "second document", 2),
        ("a: [1\n", "", 2),
        ("a: 'open\n", "", 2),
        ("a:\n\tb: 1\n", "", 2),
        ("- " * 100 + "x\n", "deeper", 1),
        ("[" * 100_000, "", 1),
        ("{a: " * 100_000, "deeper", 1),
        ("a: \0\n", "U+0000", 1),
        ("a: 1\nb: \x1b\n", "U+001B", 2),
        ("m:\n  <<: 1\n", "takes a mapping", 2),
    ],
)
def test_what_is_refused(text, problem, line):
    started = time.monotonic()
    with pytest.raises(LoadError) as refused:
        load(text)
    assert problem in str(refused.value)
    assert refused.value.line == line
    assert time.monotonic() - started < 2


def test_too_many_values():
    with pytest.raises(LoadError, match="more than"):
        load("[" + "x," * 500_001 + "]")


def test_bytes():
    assert decode(b"\xef\xbb\xbfa: 1") == "a: 1"
    with pytest.raises(LoadError, match="UTF-8") as refused:
        decode(b"a: 1\nb: \xff\n")
    assert refused.value.line == 2
    with pytest.raises(LoadError, match="at most"):
        decode(b"#" * (MAX_BYTES + 1))


def test_an_empty_file_is_null():
    assert load("").value is None
    assert load("# only a comment\n").value is None


@given(st.text(max_size=200))
def test_any_text_loads_or_is_refused(text):
    with suppress(LoadError):
        load(text)


@given(st.binary(max_size=200))
def test_any_bytes_load_or_are_refused(data):
    with suppress(LoadError):
        load(decode(data))
