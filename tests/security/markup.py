"""Reads a page as a browser does, and says what in it would run or lead away. Marks are words that tests plant."""

from __future__ import annotations

import re
from html.parser import HTMLParser

MARK = "zq"
"""Planted elements and attributes begin with it; nothing of ours does."""
ADDRESSES = {"href", "src", "action", "formaction", "poster", "data", "cite", "ping", "srcset", "xlink:href"}
HTMX_ADDRESSES = {"hx-get", "hx-post", "hx-put", "hx-patch", "hx-delete", "hx-push-url", "hx-replace-url"}
_RUNS = re.compile(r"(?:javascript|vbscript|data|file|blob):", re.IGNORECASE)
_PICTURE = re.compile(r"data:image/(?:png|svg\+xml);base64,[A-Za-z0-9+/=]+")
"""As an <img> it runs nothing, and the policy of the site lets it be shown: the code of an authenticator."""
_HTMX_CODE = re.compile(r"hx-on|data-hx-on|hx-vars|hx-vals=.?js:|hx-ext")
_BLANKS = re.compile(r"[\x00-\x20]")


class Page(HTMLParser):
    """`faults` are sentences; `texts` everything that a person reads or a browser passes on as a value."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.faults: list[str] = []
        self.texts: list[str] = []
        self._inside = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self._inside = tag if tag in ("script", "style") else ""
        if tag.startswith(MARK) or tag in ("iframe", "object", "embed", "base", "style"):
            self.faults.append(f"element <{tag}>")
        is_ours = given.get("src", "").startswith("/static/") or given.get("type") == "application/json"
        if tag == "script" and not is_ours:
            self.faults.append(f"script {given}")
        for name, value in given.items():
            self._attribute(tag, name, value)

    def _attribute(self, tag: str, name: str, value: str) -> None:
        self.texts.append(value)
        if name.startswith((MARK, "on", "style")) or not re.fullmatch(r"[a-z][a-z0-9:._-]*", name):
            self.faults.append(f"attribute {name} of <{tag}>")
        if _HTMX_CODE.match(f"{name}={value}"):
            self.faults.append(f"code for htmx in {name} of <{tag}>")
        is_picture = tag == "img" and name == "src" and _PICTURE.fullmatch(value)
        if name in ADDRESSES | HTMX_ADDRESSES and not is_picture:
            plain = _BLANKS.sub("", value).replace("\\", "/")
            if _RUNS.match(plain) or plain.startswith("//") or (name in HTMX_ADDRESSES and plain.startswith("http")):
                self.faults.append(f"{name}={value[:60]!r} of <{tag}>")

    def handle_data(self, data: str) -> None:
        self.texts.append(data)
        if self._inside == "style":
            self.faults.append(f"style {data[:60]!r}")

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_comment(self, data: str) -> None:
        if MARK in data:
            self.faults.append(f"comment {data[:60]!r}")

    def handle_decl(self, decl: str) -> None:
        if decl.lower() != "doctype html":
            self.faults.append(f"declaration {decl[:60]!r}")


def faults(html: str) -> list[str]:
    return Page(html).faults
