"""API keys of clients in a router's file (web.md 8.3 to 8.6): who may call what, and secrets only while writing.

A text holds a placeholder for each key. The host puts the secrets in their places when it writes, and the stamp is then
made anew, so that the file on disk vouches for itself. Where a router takes its keys from its environment, another form
of placeholder stands for the name of the variable, and the file holds no secret.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from models_app.core.export import load
from models_app.core.export.document import Document
from models_app.core.export.key_blocks import (
    KEY_LIST,
    KEY_SCOPES,
    NAME_PLACEHOLDER,
    PLACEHOLDER,
    SECRET_PLACEHOLDER,
    with_replaced,
)
from models_app.core.export.render import block_lines
from models_app.core.export.stamp import read_stamp, stamped, unstamped

AFTER = ("promptEnhancers", "models")
"""Blocks before which the keys stand, the first that a file has."""
_WARNING = re.compile(r"# WARNING: \d+ API keys? limited to some models (?:was|were) left out")


@dataclass(frozen=True, slots=True)
class ExportKey:
    """One key as a file needs it. Without `everything` it reaches the models of `files` and the ids of `ids` alone."""

    placeholder: str
    everything: bool = True
    files: frozenset[str] = frozenset()
    """Paths of model files: all profiles of these, those that are yet to come among them."""
    ids: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Served:
    """One entry of a file: its id, its further names, and the model file behind it."""

    id: str
    path: str = ""
    aliases: tuple[str, ...] = ()


def placeholder_of(number: int, *, by_name: bool = False) -> str:
    """`by_name`: the file is to name the variable that holds the secret."""
    return f"<env-key-{number}>" if by_name else f"<key-{number}>"


def variable_of(number: int) -> str:
    """The variable of a router's environment that holds a key; renaming the key does not change it."""
    return f"QM_ROUTER_KEY_{number}"


def reference_to(number: int) -> str:
    """What stands in a file for a key of the router's environment (config-yaml.md 10.1)."""
    return f"${{env.{variable_of(number)}}}"


def numbers_in(text: str) -> set[int]:
    """The keys whose placeholders a text holds."""
    return {int(number) for number in PLACEHOLDER.findall(text)}


def expanded(key: ExportKey, served: Iterable[Served]) -> list[str]:
    """Every name that a limited key may call: ids and aliases, in the order of the file."""
    names = [
        name for item in served if item.path in key.files or item.id in key.ids for name in (item.id, *item.aliases)
    ]
    return list(dict.fromkeys(names))


def key_fields(keys: Sequence[ExportKey], served: Sequence[Served], *, scopes: bool) -> dict[str, Any]:
    """`apiKeys` and `apiKeyModels`. A limited key that reaches nothing, or whose router cannot limit keys, is withheld:
    an empty list of models would mean all of them.
    """
    listed = [key.placeholder for key in keys if key.everything]
    limited = {key.placeholder: expanded(key, served) for key in keys if not key.everything} if scopes else {}
    limited = {placeholder: names for placeholder, names in limited.items() if names}
    wanted = {*listed, *limited}
    fields: dict[str, Any] = {}
    if order := [key.placeholder for key in keys if key.placeholder in wanted]:
        fields[KEY_LIST] = order
    if limited:
        fields[KEY_SCOPES] = limited
    return fields


def with_keys(document: Document, keys: Sequence[ExportKey]) -> Document:
    """A document of the quartermaster dialect with these keys, whatever it said of keys before."""
    if not keys:
        return document
    served = [Served(entry.id, entry.path, tuple(entry.fields.get("aliases") or ())) for entry in document.entries]
    fields = key_fields(keys, served, scopes=True)
    rest = {name: value for name, value in document.top.items() if name not in (KEY_LIST, KEY_SCOPES)}
    before = {name: value for name, value in rest.items() if name not in AFTER}
    behind = {name: value for name, value in rest.items() if name in AFTER}
    return replace(document, top={**before, **fields, **behind})


def with_key_fields(text: str, fields: Mapping[str, Any]) -> str:
    """The same YAML text with other key blocks, as rendering would have put them."""
    lines = text.split("\n")
    start, end = _key_lines(lines) or (_place_for_keys(lines),) * 2
    blocks = [line for name in (KEY_LIST, KEY_SCOPES) if name in fields for line in block_lines(name, fields[name])]
    return "\n".join([*lines[:start], *blocks, *lines[end:]])


def keys_by_hand(text: str) -> dict[str, Any]:
    """The part of the key blocks of a rendered text that is no key of ours: names of environment variables."""
    lines = text.split("\n")
    if (found := _key_lines(lines)) is None:
        return {}
    blocks = load.load("\n".join(lines[slice(*found)])).value
    listed = [key for key in blocks.get(KEY_LIST) or () if not PLACEHOLDER.fullmatch(str(key))]
    scopes = {key: names for key, names in (blocks.get(KEY_SCOPES) or {}).items() if key in listed}
    return {name: value for name, value in ((KEY_LIST, listed), (KEY_SCOPES, scopes)) if value}


def joined_fields(ours: Mapping[str, Any], by_hand: Mapping[str, Any]) -> dict[str, Any]:
    """The key blocks with those that people keep by hand behind ours."""
    listed = [*ours.get(KEY_LIST, ()), *by_hand.get(KEY_LIST, ())]
    scopes = {**ours.get(KEY_SCOPES, {}), **by_hand.get(KEY_SCOPES, {})}
    return {name: value for name, value in ((KEY_LIST, listed), (KEY_SCOPES, scopes)) if value}


def _key_lines(lines: Sequence[str]) -> tuple[int, int] | None:
    """Where the key blocks begin, with the blank line before them, and end; None where there are none."""
    start = next((n for n, line in enumerate(lines) if line.startswith(f"{KEY_LIST}:")), None)
    if start is None:
        return None
    return start - 1, next(n for n in range(start, len(lines)) if not lines[n])


def _place_for_keys(lines: Sequence[str]) -> int:
    """Before the blank line and the comments of the block that comes after the keys."""
    at = min(n for n, line in enumerate(lines) if line.startswith(tuple(f"{name}:" for name in AFTER)))
    while at > 0 and lines[at - 1].startswith("#"):
        at -= 1
    return at - 1


def with_withheld(text: str, count: int) -> str:
    """The warning about limited keys brought up to date, where a file has one or needs one."""
    lines = text.split("\n")
    kept = [line for line in lines if not _WARNING.fullmatch(line)]
    if not count:
        return "\n".join(kept)
    plural = ("s", "were") if count > 1 else ("", "was")
    warning = f"# WARNING: {count} API key{plural[0]} limited to some models {plural[1]} left out"
    at = next((n for n, line in enumerate(lines) if _WARNING.fullmatch(line)), None)
    if at is None:
        at = next(n for n, line in enumerate(kept) if not line.startswith("#"))
    return "\n".join([*kept[:at], warning, *kept[at:]])


def resolved(text: str, secrets: Mapping[str, str]) -> str:
    """The bytes to write: placeholders replaced, and a stamp that vouches for the result. `secrets`: by placeholder.

    Raises KeyError for a placeholder without a secret.
    """
    return _replaced(text, {match[0]: secrets[match[0]] for match in SECRET_PLACEHOLDER.finditer(text)})


def with_variables(text: str) -> str:
    """The text with the names of variables where they belong, and a stamp that vouches for the result."""
    return _replaced(text, {match[0]: reference_to(int(match[1])) for match in NAME_PLACEHOLDER.finditer(text)})


def _replaced(text: str, found: Mapping[str, str]) -> str:
    if not found:
        return text
    stamp = read_stamp(text)
    whole = with_replaced(text, found)
    return stamped(unstamped(whole), host=stamp.host, revision=stamp.revision) if stamp else whole
