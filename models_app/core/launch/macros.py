"""`${…}` in text that reaches a router's file (config-yaml.md 12.7)."""

from __future__ import annotations

import re

PORT = "${PORT}"
"""What the router replaces with the port it assigned; the only macro that we write."""

_MACRO = re.compile(r"\$\{(?:env\.|[A-Za-z0-9_.-]+\})")


def unsafe_macro(text: str, *, allow_port: bool = False) -> str | None:
    """The first `${name}` (or start of `${env.`) in `text`; None when a router would leave the text alone.

    `allow_port` lets our own `${PORT}` of a command pass.
    """
    for match in _MACRO.finditer(text):
        if not (allow_port and match.group() == PORT):
            return match.group()
    return None
