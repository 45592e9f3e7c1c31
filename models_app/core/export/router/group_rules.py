"""Groups, matrix and listeners of a file as the readers judge them (config-yaml.md 10.1 steps 6 and 7, 10.2)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from models_app.core.export.router import matrix
from models_app.core.export.router.readers import GROUP_KEYS, Reader, TypeViolation, Violation, decoded, typed

LEFTOVER_GROUP = "(default)"
GROUP_DEFAULTS: Mapping[str, Any] = {"swap": True, "exclusive": True, "persistent": False, "members": ()}
VARIABLE = re.compile(r"[a-zA-Z0-9.-]{1,32}\Z")
Path = tuple[str | int, ...]


@dataclass(slots=True)
class Grouping:
    """The effective groups, and per address the models it serves."""

    violations: list[Violation] = field(default_factory=list)
    groups: dict[str, dict[str, Any]] = field(default_factory=dict)
    catalogue: dict[str, list[str]] = field(default_factory=dict)


def group_violations(reader: Reader, top: Mapping[str, Any], models: Collection[str]) -> Grouping:
    """Everything that concerns who may run beside whom."""
    result = Grouping()
    router = _router(top)
    legacy = bool(top.get("groups")) or top.get("matrix") is not None
    groups, sets, where = _effective(top, router, legacy)
    if legacy and router:
        message = "top-level groups or matrix together with routing.router: migrate them into routing.router"
        result.violations.append(Violation("V-06", ("routing", "router"), message))
    elif groups and sets is not None:
        result.violations.append(Violation("V-06", ("matrix",), "a file cannot use both groups and matrix"))
    if not legacy and router.get("use", "") not in ("", "group", "matrix"):
        message = f"routing.router.use: unknown router {router.get('use')!r}"
        result.violations.append(Violation("V-02", ("routing", "router", "use"), message))
    if sets is not None:
        result.violations += matrix_violations(sets, models, (*where, "matrix"))
    else:
        _read_groups(result, groups, models, (*where, "groups"))
    if reader.listeners:
        _read_listeners(result, top.get("listeners") or {}, with_matrix=sets is not None)
    return result


def _router(top: Mapping[str, Any]) -> dict[str, Any]:
    """`routing.router`, empty where it says nothing that counts."""
    router = _mapping(_mapping(top.get("routing")).get("router"))
    settings = _mapping(router.get("settings"))
    says = router.get("use") or settings.get("groups") or settings.get("matrix") is not None
    return router if says else {}


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _effective(top: Mapping[str, Any], router: Mapping[str, Any], legacy: bool) -> tuple[Any, Any, Path]:
    """Groups, matrix and the path that leads to them."""
    if legacy or not router:
        return top.get("groups") or {}, top.get("matrix"), ()
    settings = _mapping(router.get("settings"))
    where = ("routing", "router", "settings")
    if router.get("use") == "matrix":
        return {}, settings.get("matrix") or {}, where
    return settings.get("groups") or {}, None, where


def _read_groups(result: Grouping, groups: Any, models: Collection[str], where: Path) -> None:
    owner: dict[str, str] = {}
    for name, given in _mapping(groups).items():
        path = (*where, name)
        try:
            fields = typed(decoded_mapping(given, path), GROUP_KEYS, path)
        except TypeViolation as error:
            result.violations.append(error.violation)
            continue
        extra = {key: value for key, value in _mapping(given).items() if key not in GROUP_KEYS}
        result.groups[name] = {**GROUP_DEFAULTS, **extra, **fields}
        result.violations += _member_violations(name, result.groups[name]["members"], owner, path)
    outside = sorted(model for model in models if model not in owner)
    if outside or not result.groups:
        result.groups[LEFTOVER_GROUP] = {**GROUP_DEFAULTS, "members": outside}


def decoded_mapping(value: Any, path: Path) -> dict[str, Any]:
    """A mapping or nothing; anything else is a type violation."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise TypeViolation(Violation("V-02", path, "expected a mapping"))
    return value


def _member_violations(name: str, members: list[str], owner: dict[str, str], path: Path) -> Iterator[Violation]:
    for index, member in enumerate(members):
        where = (*path, "members", index)
        if owner.get(member) == name:
            yield Violation("V-06", where, f"duplicate model member {member} found in group: {name}")
        elif member in owner:
            message = f"model member {member} is used in multiple groups: {owner[member]} and {name}"
            yield Violation("V-06", where, message)
        owner.setdefault(member, name)


def _read_listeners(result: Grouping, listeners: Any, *, with_matrix: bool) -> None:
    if not listeners:
        return
    if with_matrix:
        message = "listeners need the group router; this file uses a matrix"
        result.violations.append(Violation("V-06", ("listeners",), message))
        return
    for address, given in _mapping(listeners).items():
        where = ("listeners", address)
        try:
            names = decoded(GROUP_KEYS["members"], _mapping(given).get("groups")) or []
        except ValueError as error:
            result.violations.append(Violation("V-02", (*where, "groups"), f"groups: {error}"))
            continue
        result.violations += _listener_violations(address, names, result.groups, where)
        known = [result.groups[name]["members"] for name in names if name in result.groups]
        result.catalogue[address] = list(dict.fromkeys(member for members in known for member in members))


def _listener_violations(address: str, names: list[str], groups: Collection[str], where: Path) -> Iterator[Violation]:
    if not address.strip():
        yield Violation("V-06", where, "a listener without an address")
    if not names:
        yield Violation("V-06", where, f"listener {address} has no groups")
    for index, name in enumerate(names):
        path = (*where, "groups", index)
        if name in names[:index]:
            yield Violation("V-06", path, f"listener {address} lists group {name} more than once")
        elif name not in groups:
            yield Violation("V-06", path, f"listener {address} names group {name}, which does not exist")


def matrix_violations(given: Any, models: Collection[str], where: Path) -> Iterator[Violation]:
    """What is wrong with a `matrix` block."""
    block = _mapping(given)
    variables, sets = _mapping(block.get("vars")), _mapping(block.get("sets"))
    if not sets:
        yield Violation("V-06", (*where, "sets"), "a matrix needs at least one set")
    for name, model in variables.items():
        if not VARIABLE.match(name):
            yield Violation("V-06", (*where, "vars", name), f"matrix name {name!r} is not 1 to 32 of a-z, 0-9, . and -")
        if model not in models:
            yield Violation("V-06", (*where, "vars", name), f"matrix name {name!r} stands for {model!r}, no model here")
    for name, cost in _mapping(block.get("evict_costs")).items():
        if isinstance(cost, bool) or not isinstance(cost, int) or cost < 1:
            yield Violation(
                "V-06", (*where, "evict_costs", name), f"the cost of {name!r} must be a whole number above 0"
            )
        if name not in variables and name not in models:
            yield Violation("V-06", (*where, "evict_costs", name), f"{name!r} is neither a matrix name nor a model")
    yield from _set_violations(sets, {*variables, *models}, (*where, "sets"))


def _set_violations(sets: Mapping[str, Any], known: Collection[str], where: Path) -> Iterator[Violation]:
    parsed: dict[str, matrix.Expression] = {}
    for name, text in sets.items():
        try:
            parsed[name] = matrix.parse(str(text))
        except matrix.MatrixError as error:
            yield Violation("V-06", (*where, name), f"set {name}: {error}")
    for name, expression in parsed.items():
        for leaf in expression.names("leaf"):
            if leaf not in known:
                yield Violation("V-06", (*where, name), f"set {name}: {leaf!r} is neither a matrix name nor a model")
        for other in expression.names("ref"):
            if other not in sets:
                yield Violation("V-06", (*where, name), f"set {name} refers to {other!r}, which is no set")
    if cycle := _cycle(parsed):
        yield Violation("V-06", (*where, cycle), f"set {cycle} refers to itself")


def _cycle(sets: Mapping[str, matrix.Expression]) -> str:
    """A set that reaches itself through references, "" for none: what is left when all free ends are taken off."""
    waiting = {name: {other for other in tree.names("ref") if other in sets} for name, tree in sets.items()}
    while free := [name for name, others in waiting.items() if not others & waiting.keys()]:
        for name in free:
            del waiting[name]
    return next(iter(waiting), "")
