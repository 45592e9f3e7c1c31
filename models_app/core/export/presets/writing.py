"""Pieces of text for a preset file. There is no escaping: what it cannot hold is refused, never altered (2.5)."""

from __future__ import annotations

import json
import re

MAX_VALUE_BYTES = 131_071
"""The longest argument that Linux passes to a process."""

_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f]")
"""Control characters except the tab: they would reach the router's terminal."""
_CONTROL_RUN = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_ESCAPED_IN_JSON = re.compile(r"[#;\x7f-\x9f]")
_TAG = re.compile(r"[-.]([A-Za-z0-9_]+)\Z")


class Unwritable(ValueError):
    """A piece that this file cannot hold. The message says why, without the piece."""


def value_text(text: str) -> str:
    """A value as it is. Raises `Unwritable`."""
    if not text:
        raise Unwritable("it is empty")
    _require_one_line(text)
    if mark := re.search("[#;]", text):
        raise Unwritable(f"it holds {mark[0]}, which begins a comment there")
    if text[0] in " \t" or text[-1] in " \t":
        raise Unwritable("it begins or ends in a blank, which would be cut")
    if len(_encoded(text)) > MAX_VALUE_BYTES:
        raise Unwritable(f"it is longer than {MAX_VALUE_BYTES:,} bytes")
    return text


def json_text(text: str) -> str:
    """A JSON value on one line; the comment marks are escaped, they can only stand inside its strings."""
    try:
        return json_value(json.loads(text, parse_constant=_refuse_constant))
    except (ValueError, RecursionError) as error:
        if isinstance(error, Unwritable):
            raise
        raise Unwritable("it is no JSON") from error


def json_value(value: object) -> str:
    """The same for a value that was read already."""
    compact = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return value_text(_ESCAPED_IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", compact))


def _refuse_constant(name: str) -> object:
    raise Unwritable(f"it holds {name}, which is no JSON")


def alias_text(text: str) -> str:
    """One further name. A comma would make two of it. Raises `Unwritable`."""
    if "," in text:
        raise Unwritable("it holds a comma, which separates names")
    return value_text(text)


def id_text(text: str) -> str:
    """A section's name. Only a bracket ends it. Raises `Unwritable`."""
    if not text:
        raise Unwritable("it is empty")
    if text == "*":
        raise Unwritable("* means every model")
    _require_one_line(text)
    if "\t" in text:
        raise Unwritable("it holds a control character")
    if "]" in text:
        raise Unwritable("it holds ], which ends a name")
    if text[0] == " " or text[-1] == " ":
        raise Unwritable("it begins or ends in a blank")
    _encoded(text)
    return text


def comment_text(text: str) -> str:
    """Text for a comment: one line."""
    return _CONTROL_RUN.sub(" ", text).encode("utf-8", "replace").decode("utf-8")


def served_id(name: str) -> str:
    """The name under which the router lists a section: what follows its last colon is a tag, in its short upper form.

    >>> served_id("qwen3:8b"), served_id("m:UD-q4_k_m"), served_id("plain")
    ('qwen3:8B', 'm:Q4_K_M', 'plain')
    """
    head, colon, tag = name.rpartition(":")
    if not colon:
        return name
    found = _TAG.search(tag)
    return head + colon + _ascii_upper(found[1] if found else tag)


def _ascii_upper(text: str) -> str:
    return "".join(character.upper() if "a" <= character <= "z" else character for character in text)


def _require_one_line(text: str) -> None:
    if _CONTROL.search(text):
        raise Unwritable("it holds a line break or another control character")


def _encoded(text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise Unwritable("it holds bytes that are not UTF-8") from error
