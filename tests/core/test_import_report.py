"""Items of an import: judged against what is set here, and kept as JSON."""

from __future__ import annotations

import json
from typing import Any

from models_app.core.imports.report import (
    Item,
    Kind,
    Needs,
    Status,
    Target,
    counts,
    item_from_json,
    item_to_json,
    judged,
)

TTL = Target(Kind.OVERRIDE, "/models/a.gguf", field="ttlSec")
UNLISTED = Target(Kind.OVERRIDE, "/models/a.gguf", field="unlisted")
TIERS = Target(Kind.OVERRIDE, "/models/a.gguf", field="ctxVariants")


def judge(item: Item, ours: Any) -> Item:
    return judged([item], lambda target: ours)[0]


def test_an_item_is_new_the_same_or_in_conflict() -> None:
    item = Item("models.a.ttl", 7, TTL, 0)
    assert judge(item, None).status is Status.NEW
    assert judge(item, 0).status is Status.SAME
    conflict = judge(item, 600)
    assert (conflict.status, conflict.ours) == (Status.CONFLICT, 600)


def test_values_are_compared_by_meaning() -> None:
    assert judge(Item("", 1, TTL, 1), 1.0).status is Status.SAME
    assert judge(Item("", 1, UNLISTED, True), 1).status is Status.CONFLICT
    assert judge(Item("", 1, TIERS, [1, 2]), (1, 2)).status is Status.SAME
    assert judge(Item("", 1, TIERS, [True, 2]), (1, 2)).status is Status.CONFLICT


def test_what_goes_nowhere_is_lost_whatever_is_set() -> None:
    item = Item("logLevel", 3, Target(Kind.NOWHERE), "debug", note="no counterpart")
    assert judge(item, "debug").status is Status.LOST


def test_counts_name_only_what_there_is() -> None:
    items = [Item("a", 1, TTL, 1), Item("b", 2, Target(Kind.NOWHERE))]
    assert counts(judged(items, lambda target: None)) == {"new": 1, "not representable": 1}


def test_an_item_survives_json() -> None:
    item = Item("a", 1, TTL, [1, {"x": None}], "models", "a", "exact", "why", Needs.MANAGE, True, Status.CONFLICT, 5)
    assert item_from_json(json.loads(json.dumps(item_to_json(item)))) == item
