"""API keys inside the text of a router's file: found by its structure, and replaced wherever they stand.

The text may be anybody's, broken YAML included, so a text that cannot be parsed is read line by line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from models_app.core.export import load

KEY_LIST = "apiKeys"
KEY_SCOPES = "apiKeyModels"
PLACEHOLDER = re.compile(r"<(?:env-)?key-([0-9]{1,12})>")
"""Stands for a key of ours in every text but the one on the host."""
SECRET_PLACEHOLDER = re.compile(r"<key-[0-9]{1,12}>")
"""In whose place the secret is written."""
NAME_PLACEHOLDER = re.compile(r"<env-key-([0-9]{1,12})>")
"""In whose place the name of a variable of the router is written."""
_NAME = "${"
"""Begins the name of a variable, in whose place its router puts a secret."""
_BLOCK = re.compile(rf"^({KEY_LIST}|{KEY_SCOPES})[ \t]*:(.*)$")
_ITEM = re.compile(r"^[ \t]*(?:-[ \t]*)?[\"']?([^\"'\s:#\[\]{},][^\"'\s:#\[\]{},]*)[\"']?")
_FLOW_WORD = re.compile(r"[\"']?([^\"'\s:#\[\]{},]+)[\"']?[ \t]*(?=[:,\]}]|$)")


def key_material(text: str) -> tuple[str, ...]:
    """Every secret that `apiKeys` and `apiKeyModels` of a YAML text hold, the longest first."""
    try:
        tree = load.load(text)
    except load.LoadError:
        found = set(_by_lines(text))
    else:
        found = set(_by_tree(tree))
    secrets = {text for text in found if text and _NAME not in text and not PLACEHOLDER.fullmatch(text)}
    return tuple(sorted(secrets, key=lambda secret: (-len(secret), secret)))


def _by_tree(tree: load.Node) -> Iterator[str]:
    listed, scoped = tree.child(KEY_LIST), tree.child(KEY_SCOPES)
    if listed is not None:
        yield from (item.raw for item in listed.items)
        yield listed.raw
    if scoped is not None:
        yield from scoped.pairs


def _by_lines(text: str) -> Iterator[str]:
    block = ""
    for line in text.splitlines():
        if start := _BLOCK.match(line):
            block = start[1]
            yield from _FLOW_WORD.findall(start[2])
        elif block and line[:1] in (" ", "\t", "-"):
            if item := _ITEM.match(line):
                yield item[1]
        elif line.strip() and not line.startswith("#"):
            block = ""


def without_key_blocks(text: str) -> str:
    """The text without its key blocks, line by line."""
    kept, inside = [], False
    for line in text.split("\n"):
        if _BLOCK.match(line):
            inside = True
        elif inside and line[:1] not in (" ", "\t", "-", "]", "}"):
            inside = False
        if not inside:
            kept.append(line)
    return "\n".join(kept)


def with_replaced(text: str, secrets: Mapping[str, str]) -> str:
    """The text with every occurrence of each secret replaced; a secret inside a longer one loses to it."""
    if not secrets:
        return text
    ordered = sorted(secrets, key=len, reverse=True)
    pattern = re.compile("|".join(re.escape(secret) for secret in ordered))
    return pattern.sub(lambda found: secrets[found[0]], text)


def without_keys(text: str, known: Mapping[str, str], mask: Callable[[str], str]) -> str:
    """The text for storing: known secrets become their placeholders, unknown ones are masked."""
    return with_replaced(text, {secret: mask(secret) for secret in key_material(text)} | dict(known))
