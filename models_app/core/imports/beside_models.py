"""Keys beside the models of a router's file, and models of the host that the file does not have (web.md 12.4)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from models_app.core.export.fragments import ADDED, EVERYWHERE, groups_by_hand
from models_app.core.export.key_blocks import PLACEHOLDER
from models_app.core.export.router.load_rules import DEFAULTS, MIN_HEALTH_TIMEOUT_SECONDS
from models_app.core.imports.report import Item, Kind, Needs, Target
from models_app.core.imports.router_file import RouterFile

TOP, ELSEWHERE = "top", "elsewhere"
QUARTERMASTER = "quartermaster"
ELLIPSIS = "…"
"""With which an export masks a secret."""
BUDGETS = {"vramBudgetGB": ("memory", "targetVramGB"), "ramBudgetGB": ("memory", "maxRamGB")}
TIMEOUT = "healthCheckTimeout"
SECRET_TOP = frozenset({"apiKeys", "apiKeyModels"})
GROUPING = frozenset({"groups", "matrix", "routing"})


def clashing(ours: Any, value: Any, place: str = "it") -> list[str]:
    """The places at which two values say different things; lists of names may be added to."""
    if isinstance(ours, Mapping) and isinstance(value, Mapping):
        return [found for key in value if key in ours for found in clashing(ours[key], value[key], str(key))]
    if isinstance(ours, list | tuple) and isinstance(value, list | tuple) and place in ADDED:
        return []
    return [] if _plain(ours) == _plain(value) else [place]


def contained(value: Any, ours: Any) -> bool:
    """Whether everything that a value says is said here already."""
    if isinstance(ours, Mapping) and isinstance(value, Mapping):
        return all(key in ours and contained(inner, ours[key]) for key, inner in value.items())
    return bool(_plain(ours) == _plain(value))


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def top_items(file: RouterFile, ours: Mapping[str, Any]) -> Iterator[Item]:
    """`ours` are these keys as this host would write them now."""
    by_hand = groups_by_hand(file.top)
    yield from _keys(file)
    for key, value in file.top.items():
        line = file.lines.get(key, 0)
        if key in SECRET_TOP and (value := _left_to_the_router(value)) in (None, [], {}):
            continue
        if key in BUDGETS:
            section, name = BUDGETS[key]
            yield Item(key, line, Target(Kind.SETTING, section, field=name), value, TOP)
        elif key == TIMEOUT:
            yield _timeout(value, line)
        elif key in ours and key not in GROUPING:
            clash = clashing(ours[key], value, key)
            note = f"Planning writes {', '.join(clash)} itself." if clash else "As it would be written here."
            target = Target(Kind.NOWHERE if clash else Kind.FRAGMENT, field=key)
            yield Item(key, line, target, value, TOP, note=note, needs=Needs.MANAGE, secret=key in SECRET_TOP)
        else:
            note = "These groups take the place of planned ones." if by_hand and key in GROUPING else ""
            where = Target(Kind.FRAGMENT, EVERYWHERE) if key == EVERYWHERE else Target(Kind.FRAGMENT, field=key)
            yield Item(key, line, where, value, TOP, note=note, needs=Needs.MANAGE, secret=key in SECRET_TOP)
    if TIMEOUT not in file.top and file.dialect == "llama-swap":
        yield replace(_timeout(DEFAULTS[TIMEOUT], 0), note="Not given in the file: what its router takes then.")


def _is_named(key: Any) -> bool:
    """Whether a key is the name of one, such as an environment variable, which only the router can replace."""
    return "${" in str(key)


def _left_to_the_router(value: Any) -> Any:
    """A key block without the keys that become ours."""
    if isinstance(value, Mapping):
        return {key: models for key, models in value.items() if _is_named(key)}
    return [key for key in value if _is_named(key)] if isinstance(value, list) else value


def _keys(file: RouterFile) -> Iterator[Item]:
    """One item a key. Only one router limits keys; in the files of the other each opens every model."""
    listed = file.top.get("apiKeys")
    scopes = file.top.get("apiKeyModels") if file.dialect == QUARTERMASTER else None
    for number, secret in enumerate(listed if isinstance(listed, list) else ()):
        if _is_named(secret):
            continue
        source, line = f"apiKeys.{number + 1}", file.lines.get("apiKeys", 0)
        if PLACEHOLDER.fullmatch(str(secret)) or ELLIPSIS in str(secret):
            note = "The secret itself is not in the file. What is set here stays."
            yield Item(source, line, Target(Kind.NOWHERE), None, TOP, note=note, secret=True)
            continue
        models = scopes.get(secret) if isinstance(scopes, Mapping) else None
        value = {"key": secret, "models": models if isinstance(models, list) else []}
        note = "" if models else "This key opens every model."
        yield Item(source, line, Target(Kind.API_KEY), value, TOP, note=note, needs=Needs.MANAGE, secret=True)


def _timeout(value: Any, line: int) -> Item:
    sound = isinstance(value, int) and not isinstance(value, bool)
    seconds = max(MIN_HEALTH_TIMEOUT_SECONDS, value) if sound else DEFAULTS[TIMEOUT]
    return Item(TIMEOUT, line, Target(Kind.SETTING, "advanced", field=TIMEOUT), seconds, TOP)


def models_elsewhere(served: Iterable[tuple[str, str]], named: Collection[str]) -> Iterator[Item]:
    """Models of the host, as (path, id), that the file does not name: they would be new in it."""
    for path, served_id in served:
        if path not in named:
            yield Item(served_id, 0, Target(Kind.OVERRIDE, path, field="skip"), True, ELSEWHERE, served_id)
