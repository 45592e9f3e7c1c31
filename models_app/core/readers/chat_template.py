"""What a chat template reveals: does it keep earlier thinking, and which effort levels does it know (headers.md 10).

A template can be a mebibyte of someone's ill will, so every search here is linear: no pattern repeats inside another.
"""

from __future__ import annotations

import re
from functools import lru_cache
from os import stat
from typing import NamedTuple

from models_app.core.errors import HeaderError
from models_app.core.readers._source import open_regular, read_fully
from models_app.core.readers.limits import MAX_STRING_BYTES

_KEEPS_THINKING = "preserve_thinking is undefined or preserve_thinking is true"
_REQUEST = "reasoning_effort"
_TAG_OPENER = "{%"
_GUARD = re.compile(r"reasoning_effort not in ?([(\[])")
_QUOTED = re.compile(r"""(["'])([A-Za-z0-9_-]{1,64}+)\1""")
_ASSIGNED = re.compile(r"""\bset ([A-Za-z_][\w.]*+) ?= ?(["'])([A-Za-z0-9_-]{1,64}+)\2""", re.ASCII)
_CLOSERS = {"(": ")", "[": "]"}
_SWITCHES = frozenset({"none", "off"})
"""Not levels but the thinking switch."""
_MAX_LEVELS = 32


class TemplateFacts(NamedTuple):
    preserves_thinking: bool = False
    effort_levels: tuple[str, ...] = ()


def scan_chat_template(template: str) -> TemplateFacts:
    """Read both facts off a template's text."""
    text = " ".join(template.split())
    if not text:
        return TemplateFacts()
    levels = _validated_levels(text)
    if levels is None:
        levels = _assigned_levels(text)
    return TemplateFacts(_KEEPS_THINKING in text, tuple(levels[:_MAX_LEVELS]))


def advertised_levels(
    baked_levels: tuple[str, ...], *, has_override: bool = False, override_text: str | None = None
) -> tuple[str, ...]:
    """The ladder to advertise: that of the override file if there is one (`override_text` None: unreadable), else the
    header's. Never the header's under an override; no template is ever put in place by itself."""
    if not has_override:
        return baked_levels
    return scan_chat_template(override_text).effort_levels if override_text is not None else ()


def template_file_levels(path: str) -> tuple[str, ...]:
    """Effort levels of a template file, () when it cannot be read. An edit is seen, an unchanged file is read once."""
    try:
        status = stat(path)
    except (OSError, ValueError):
        return ()
    return _file_levels(path, status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=256)
def _file_levels(path: str, size_bytes: int, mtime_ns: int) -> tuple[str, ...]:
    try:
        with open_regular(path) as (stream, _):
            raw = read_fully(stream, MAX_STRING_BYTES)
    except HeaderError:
        return ()
    return scan_chat_template(raw.decode("utf-8", "replace")).effort_levels


def _validated_levels(text: str) -> list[str] | None:
    """The strict shape: the values that the template checks the request against. None when it checks nothing."""
    last_closers = {opener: text.rfind(closer) for opener, closer in _CLOSERS.items()}
    for guard in _GUARD.finditer(text):
        opener = guard[1]
        if last_closers[opener] >= guard.end():
            inside = text[guard.end() : text.index(_CLOSERS[opener], guard.end())]
            return [match[2].lower() for match in _QUOTED.finditer(inside)]
    return None


def _assigned_levels(text: str) -> list[str]:
    """The tolerant shape: literals assigned to an effort variable. Compared ones are aliases that get folded away."""
    if _REQUEST not in text or _raises_about_effort(text):
        return []
    levels: dict[str, None] = {}
    for match in _ASSIGNED.finditer(text):
        level = match[3].lower()
        if ("effort" in match[1] or "Effort" in match[1]) and level not in _SWITCHES:
            levels[level] = None
    return list(levels)


def _raises_about_effort(text: str) -> bool:
    """Does a tag speak of effort and then raise? A raise behind the next tag belongs to something else."""
    for piece in text.lower().split(_TAG_OPENER):
        effort = piece.find("effort")
        if effort >= 0 and piece.rfind("raise_exception") > effort:
            return True
    return False
