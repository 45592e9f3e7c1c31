"""Text and numbers as YAML scalars (config-yaml.md 2), in forms that PyYAML, libyaml and Go's yaml.v3 read alike."""

from __future__ import annotations

import json
import re
from decimal import Decimal

from models_app.core.units import round_half_up

UNSAFE = re.compile("[^\t\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
"""What no reader takes raw inside one line: controls, line separators, the byte order mark, lone surrogates."""

ESCAPED = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]")
"""What `json.dumps` leaves raw and YAML readers refuse, fold or lose."""

PLAIN_WORD = re.compile(r"(?:[a-z][a-z0-9_-]*|3d|/[A-Za-z0-9/_-]*)\Z")
PLAIN_KEY = re.compile(r"[A-Za-z][A-Za-z0-9_]*\Z")
TYPED_WORDS = frozenset({"null", "true", "false", "yes", "no", "on", "off", "y", "n"})


def quote(text: str) -> str:
    """A double-quoted scalar. Only lone surrogates are beyond it: libyaml refuses their escape too."""
    return ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(text, ensure_ascii=False))


def word(text: str) -> str:
    """A word of a fixed list: bare where no reader takes it for another type, else quoted."""
    return text if PLAIN_WORD.match(text) and text not in TYPED_WORDS else quote(text)


def key(text: str) -> str:
    """A mapping key of ours: bare when it is a plain name, else quoted."""
    return text if PLAIN_KEY.match(text) and text.lower() not in TYPED_WORDS else quote(text)


def number(value: float) -> str:
    """Shortest form: `7`, `7.5`; never `7.0`, and never `1e-05`, which YAML 1.1 takes for text."""
    if isinstance(value, int):
        return str(int(value))
    return str(int(value)) if value.is_integer() else f"{Decimal(repr(value)):f}"


def gb(value_gb: float) -> float:
    """A GB figure as written: two decimals, halves away from zero, whole numbers as integers."""
    rounded = round_half_up(value_gb, 2)
    return int(rounded) if rounded.is_integer() else rounded


def one_line(text: str) -> str:
    """Text for a comment: one physical line, without anything a reader would refuse."""
    return UNSAFE.sub(" ", text).replace("\t", " ").strip()


def has_lone_surrogate(text: str) -> bool:
    """True for names whose bytes are not UTF-8: no YAML reader can be given them."""
    return any("\ud800" <= character <= "\udfff" for character in text)


def forward(path: str) -> str:
    """A path with forward slashes only, as every written file has them."""
    return path.replace("\\", "/")


def long_text(text: str, indent: int) -> str:
    """A scalar for prose such as a system prompt: a literal block where it keeps every byte, else a quoted line.

    `indent` is the column of the key. Two or more final newlines need the keep indicator, which would also swallow the
    blank line that separates blocks; those texts are quoted.
    """
    body = text.removesuffix("\n")
    lines = body.split("\n")
    literal = len(lines) > 1 and bool(lines[-1]) and bool(lines[0].strip())
    if not literal or any(UNSAFE.search(line) for line in lines):
        return quote(text)
    indicator = "2" if lines[0][0] in " \t" else ""
    chomping = "" if text.endswith("\n") else "-"
    margin = " " * (indent + 2)
    return f"|{indicator}{chomping}\n" + "\n".join(margin + line if line else "" for line in lines)
