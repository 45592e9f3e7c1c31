"""What an import would do, item by item: the same for every kind of file (web.md 12.3).

A reader of one kind of file gives items, each with its line, what it says and where that would go. `judged` compares
them with what is set here. Everything is plain JSON, so that a batch can be kept and applied later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any


class Kind(StrEnum):
    """Where an item goes. What `subject`, `variant` and `field` of its target mean depends on it."""

    OVERRIDE = "override"
    """`subject`: path of a model file, or a pattern; `field`: key of the catalogue."""
    VARIANT = "variant"
    """The same for one named variant of that model."""
    RULE = "rule"
    """`subject`: a pattern, `variant`: the quantisation that it is for. The value is all that the row sets, with its
    variants: rules shadow each other as a whole."""
    SETTING = "setting"
    """`subject`: section of the host's settings (memory, gpu, encoders, …); `field`: key."""
    FLEET_VARIANT = "fleet-variant"
    """`variant`: name; `field`: key."""
    BACKEND = "backend"
    """`subject`: path of an executable. The value is a mapping with at least `kind`."""
    ROOT = "root"
    """`subject`: a folder to scan; the value is its category, blank for the main root."""
    API_KEY = "api-key"
    """`subject`: name of the key; the value is its record. Always a secret."""
    FRAGMENT = "fragment"
    """Kept as it is and written again: `subject` is a served id, "" the top of the file; `field`: key."""
    NOWHERE = "nowhere"
    """Cannot be kept; the note says why."""


class Status(StrEnum):
    NEW = "new"
    SAME = "same"
    CONFLICT = "conflict"
    """Set here already, to something else: `ours`."""
    LOST = "not representable"


class Needs(StrEnum):
    """What a person must be allowed to do, beside editing."""

    EDIT = "edit"
    ARGUMENTS = "arguments"
    """Commands from a file: administrators, as web.md 7.2 says of imports."""
    MANAGE = "manage"


@dataclass(frozen=True, slots=True)
class Target:
    kind: Kind
    subject: str = ""
    variant: str = ""
    field: str = ""


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that a file says. Items are told apart by their place in the batch's list."""

    source: str
    """What the file calls it: `models.qwen3.ttl`."""
    line: int
    target: Target
    value: Any = None
    section: str = ""
    """The heading that it is listed under: `models`, `settings`, `overrides`, …"""
    group: str = ""
    """Items of one thing (a model of the file) are chosen together; "" stands for itself."""
    choice: str = ""
    """Of a group that can be taken over in several ways: the way that this item belongs to; "" belongs to all."""
    note: str = ""
    needs: Needs = Needs.EDIT
    secret: bool = False
    """The value is masked wherever it is shown."""
    status: Status = Status.NEW
    ours: Any = None

    def noted(self, note: str) -> Item:
        return replace(self, note=note)


CurrentOf = Callable[[Target], Any]
"""What is set here for a target, None where nothing is."""
SameValue = Callable[[Target, Any, Any], bool]


def equal_values(target: Target, given: Any, ours: Any) -> bool:
    """1 and 1.0 are the same number, a list and a tuple the same list; true is no 1."""
    if isinstance(given, bool) or isinstance(ours, bool):
        return given is ours
    if isinstance(given, list | tuple) and isinstance(ours, list | tuple):
        return len(given) == len(ours) and all(map(lambda a, b: equal_values(target, a, b), given, ours))
    return bool(given == ours)


def judged(items: Iterable[Item], current_of: CurrentOf, same: SameValue = equal_values) -> tuple[Item, ...]:
    """The items with their status."""
    return tuple(_judged(item, current_of, same) for item in items)


def _judged(item: Item, current_of: CurrentOf, same: SameValue) -> Item:
    if item.target.kind == Kind.NOWHERE:
        return replace(item, status=Status.LOST)
    ours = current_of(item.target)
    if ours is None:
        return replace(item, status=Status.NEW)
    return replace(item, status=Status.SAME if same(item.target, item.value, ours) else Status.CONFLICT, ours=ours)


def counts(items: Iterable[Item]) -> dict[str, int]:
    """How many items have each status, those with none left out."""
    found = dict.fromkeys((status.value for status in Status), 0)
    for item in items:
        found[item.status.value] += 1
    return {word: number for word, number in found.items() if number}


def item_to_json(item: Item) -> dict[str, Any]:
    return asdict(item)


def item_from_json(data: Mapping[str, Any]) -> Item:
    """What `item_to_json` gave."""
    target = Target(**{**data["target"], "kind": Kind(data["target"]["kind"])})
    return Item(**{**data, "target": target, "needs": Needs(data["needs"]), "status": Status(data["status"])})
