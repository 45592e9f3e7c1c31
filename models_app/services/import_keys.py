"""API keys in a router's file: each becomes a key of ours, sealed as soon as it was read (web.md 8.6)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from gpus_app.models import Host
from models_app.core.imports.report import Item, Kind, Target
from models_app.core.imports.settings_lists import KEY_BLOCKS
from models_app.models import ApiKey
from models_app.selectors.key_environment import environment_of
from models_app.services.api_keys import digest_of
from quartermaster_site.sealing import seal

NAME = "imported key"
_USABLE = re.compile(r"[\x21-\x7e]{8,512}")


def sealed_keys(host: Host, items: Iterable[Item]) -> Iterator[Item]:
    """The items, keys among them under a name that is free and by the digest of their secret."""
    ours = frozenset(item.reference for item in environment_of(host).variables if item.is_set)
    names = {name.lower() for name in ApiKey.objects.filter(hosts=host, revoked_at=None).values_list("name", flat=True)}
    for item in items:
        if item.target.kind != Kind.API_KEY:
            yield _without_ours(item, ours)
            continue
        secret = str(item.value["key"])
        if not _USABLE.fullmatch(secret):
            note = "Not a usable key: 8 to 512 characters without blanks."
            yield replace(item, target=Target(Kind.NOWHERE), value=None, note=note)
            continue
        held = ApiKey.objects.filter(hosts=host, digest=digest_of(secret), revoked_at=None).first()
        name = held.name if held else _free(names)
        names.add(name.lower())
        value = {"name": name, "sealed": seal(secret), "models": item.value["models"]}
        yield replace(item, target=Target(Kind.API_KEY, name, digest_of(secret)), value=value)


def _without_ours(item: Item, ours: frozenset[str]) -> Item:
    """Names of variables that planning writes for keys of ours are nothing to keep by hand; others are, as they are."""
    if not ours or item.target.kind != Kind.FRAGMENT or item.target.field not in KEY_BLOCKS:
        return item
    if isinstance(item.value, Mapping):
        rest: Any = {name: models for name, models in item.value.items() if name not in ours}
    else:
        rest = [name for name in item.value if name not in ours] if isinstance(item.value, list) else item.value
    if rest:
        return replace(item, value=rest)
    return replace(item, target=Target(Kind.NOWHERE), value=None, note="Variables of keys that are here.")


def _free(names: set[str]) -> str:
    number = 1
    while f"{NAME} {number}" in names:
        number += 1
    return f"{NAME} {number}"
