"""Masks values that look like secrets before anything is stored or shown (web.md 10.3)."""

from __future__ import annotations

import re
from typing import Any

_NAME = r"[\w.-]*(?:key|token|secret|password|authorization)[\w.-]*"
_SECRET_NAME = re.compile(rf"(?i)\A-{{0,2}}{_NAME}\Z")
_ASSIGNED = re.compile(
    rf"(?i)(?P<name>{_NAME})(?P<sep>[\"']?\s*[=:]\s*[\"']?(?:bearer\s+)?|\s+(?=\S{{8,}}))(?P<value>[^\s\"',}}]+)"
)
_NUMBER = re.compile(r"[0-9][0-9,.]*")
_COUNTED = re.compile(r"(?i)(?:key|token)")
"""Names that may count something (`max_tokens: 4096`): a bare number under them is no secret."""
_OUR_KEY = re.compile(r"\bqm-[0-9a-f]{8,}")
_USER_INFO = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]*://)[^\s/@]+@", re.IGNORECASE)
_NOT_SECRET = frozenset({"model_key", "family_key", "kv_key", "object_key"})


def mask(value: str) -> str:
    """The first four characters, then an ellipsis."""
    return f"{value[:4]}…"


def redact(value: Any) -> Any:
    """The same value with every secret-looking part masked; dicts and lists are walked."""
    if isinstance(value, str):
        return _redact_text(value)
    if isinstance(value, dict):
        return {key: _redact_named(key, item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [redact(item) for item in value]
    return value


def redact_lines(text: str) -> str:
    """A file masked line by line, so that a name on one line does not take a value from the next."""
    return "\n".join(_redact_text(line) for line in text.split("\n"))


def _redact_named(name: Any, value: Any) -> Any:
    if isinstance(name, str) and _SECRET_NAME.match(name) and not _is_harmless(name, value):
        return _masked(value)
    return redact(value)


def _masked(value: Any) -> Any:
    """Every text in lists masked; that there is nothing is no secret."""
    if isinstance(value, list | tuple):
        return [_masked(item) for item in value]
    return mask(str(value)) if value not in (None, "") else value


def _redact_text(text: str) -> str:
    text = _USER_INFO.sub(lambda found: f"{found['scheme']}…@", text)
    text = _OUR_KEY.sub(lambda found: mask(found[0]), text)
    return _ASSIGNED.sub(_mask_assigned, text)


def _is_harmless(name: str, value: Any) -> bool:
    if name in _NOT_SECRET or value in (None, "", True, False):
        return True
    return bool(_COUNTED.search(name) and _NUMBER.fullmatch(str(value)))


def _mask_assigned(found: re.Match[str]) -> str:
    if _is_harmless(found["name"], found["value"]):
        return found[0]
    return f"{found['name']}{found['sep']}{mask(found['value'])}"
