"""Which texts the readers take as the address of a server (Go's `url.Parse`)."""

from __future__ import annotations

import re

CONTROL = re.compile(r"[\x00-\x1f\x7f]")
SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
BROKEN_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
PORT = re.compile(r":[0-9]*\Z")


def address_problem(text: str) -> str:
    """Why a text is no address, "" when it is one. A blank one and a bare path are."""
    if CONTROL.search(text):
        return "it holds a control character"
    rest = text.partition("#")[0]
    scheme = SCHEME.match(rest)
    if scheme is None and ":" in rest.partition("/")[0].partition("?")[0]:
        return "it has no scheme, but a colon in its first part"
    rest = rest[scheme.end() :] if scheme else rest
    path, _, _ = rest.partition("?")
    if BROKEN_ESCAPE.search(path):
        return "it holds a broken escape"
    if not rest.startswith("//"):
        return ""
    host = path[2:].partition("/")[0].rpartition("@")[2]
    if " " in host:
        return "its host holds a blank"
    after = host.rpartition("]")[2]
    if ":" in after and not PORT.fullmatch(after[after.index(":") :]):
        return "its port is no number"
    return ""
