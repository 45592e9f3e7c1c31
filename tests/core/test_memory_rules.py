"""V-10 and V-11: what a model needs against the budget, and what is always loaded."""

from __future__ import annotations

import time

import pytest

from models_app.core.catalog import Placement, Plan, Reason
from models_app.core.export.memory_rules import (
    BudgetFigures,
    figures_from_json,
    plan_concerns,
    plan_findings,
    resident_findings,
)
from models_app.core.export.residents import residents
from models_app.core.export.revisions.outline import ModelOutline, Outline, outline_of


def planned(verdict: str, tokens: int = 0, *kinds: str) -> Plan:
    placement = Placement(tokens, 99, 0, "f16", "f16", 512, 2048) if tokens else None
    reasons = tuple(Reason(kind, "because") for kind in kinds)
    return Plan("m", "llm", verdict, placement, None, reasons=reasons)


@pytest.mark.parametrize(
    ("plan", "expected"),
    [
        (planned("fits", 8192), ()),
        (planned("fits", 8192, "ctx-pinned"), ()),
        (planned("fits", 8192, "ctx-trained"), ()),
        (planned("fits", 8192, "ctx-limited-by-vram"), ("short",)),
        (planned("fits", 32768, "ctx-limited-by-vram"), ()),
        (planned("spills", 8192, "ctx-limited-by-ram"), ("spills", "short")),
        (planned("over", 4096, "ctx-limited-by-vram"), ("over",)),
        (planned("unknown"), ("unknown",)),
        (planned("fits"), ()),
    ],
)
def test_what_is_worth_a_warning_of_a_plan(plan: Plan, expected: tuple[str, ...]) -> None:
    assert plan_concerns(plan, 32768) == expected


def entry(name: str, *concerns: str, **values: object) -> dict[str, object]:
    return {"id": name, "class": "llm", "concerns": list(concerns), **values}


def outline(count: int, top: dict[str, str] | None = None) -> Outline:
    models = {f"m{n}": ModelOutline(flags={"model": f"/m{n}.gguf"}, vram_gb=1.0) for n in range(count)}
    return Outline(models, top or {})


def said(*args: object, **options: object) -> list[str]:
    found = list(plan_findings(*args, **options))  # type: ignore[arg-type]
    assert {(item.rule, item.severity) for item in found} <= {("V-10", "warn")}
    return [f"{item.where}: {item.message}" for item in found]


def test_one_line_for_each_kind_of_trouble() -> None:
    entries = [
        entry("m0", "over"),
        entry("m1", "spills", "short"),
        *(entry(f"m{n}", "spills") for n in range(2, 9)),
        entry("m9"),
    ]
    assert said(outline(10), entries) == [
        "models.m0: 1 model does not fit the budget: m0",
        "models.m1: 1 model has a window below the configured minimum: m1",
        "models.m1: 8 models lie partly in RAM and are slower: m1, m2, m3 and 5 more",
    ]
    assert said(outline(10), []) == [], "a text from before these were noted"


def test_models_without_an_estimate() -> None:
    models = {name: ModelOutline() for name in ("helper", "odd", "by-hand", "strange")}
    entries = [entry("helper", **{"class": "asr"}), entry("odd", "unknown"), entry("by-hand", **{"class": ""})]
    assert said(Outline(models), entries) == ["models.odd: 2 models have no estimate: odd, by-hand"]
    (text,) = said(Outline(models, {"vramBudgetGB": "24"}), entries)
    assert "without which its router admits no model under a budget: odd" in text


def test_only_models_that_a_person_sees_are_counted() -> None:
    entries = [entry("m0", "over"), entry("m1", "over")]
    assert said(outline(2), entries, sees=lambda name, path: path != "/m0.gguf") == [
        "models.m1: 1 model does not fit the budget: m1"
    ]


def test_ten_thousand_models_are_judged_in_a_moment() -> None:
    large = outline(10_000, {"groups.all.members": [f"m{n}" for n in range(10_000)], "globalTTL": "0"})  # type: ignore[dict-item]
    entries = [entry(f"m{n}", "spills") for n in range(10_000)]
    began = time.process_time()
    assert len(said(large, entries)) == 1
    list(resident_findings(large, entries, BudgetFigures(1.0)))
    assert time.process_time() - began < 0.2


FILE = """
globalTTL: {file_ttl}
models:
  a: {{cmd: x, ttl: {ttl}}}
  b: {{cmd: x, ttl: 0, aliases: [bee]}}
  c: {{cmd: x}}
  d: {{cmd: x, ttl: 60}}
"""
HELPERS = "groups:\n  helpers: {swap: false, exclusive: false, persistent: true, members: [a, b, d]}\n"
TOGETHER = "groups:\n  all: {swap: false, members: [a, b, c, d]}\n"
TWO = "groups:\n  one: {swap: false, members: [a, b]}\n  two: {swap: false, members: [c, d]}\n"
APART = "groups:\n  one: {swap: false, members: [a, b]}\n  two: {swap: false, exclusive: false, members: [c, d]}\n"
TURNS = "groups:\n  one: {swap: true, persistent: true, members: [a, b]}\n  two: {persistent: true, members: [c]}\n"
BUDGET = "vramBudgetGB: 24\n"
PRELOAD = "hooks: {on_startup: {preload: [d, bee]}}\n"


@pytest.mark.parametrize(
    ("blocks", "ttl", "file_ttl", "expected"),
    [
        ("", 0, 0, ""),  # by default one after the other
        (HELPERS, 0, 0, "abc"),  # nothing but helpers runs beside c
        (HELPERS, 600, 0, "bc"),
        (HELPERS, -1, 0, "abc"),
        (HELPERS, -1, 60, "b"),
        (HELPERS + PRELOAD, 600, 60, "bd"),
        (TOGETHER, 0, 0, "abc"),
        (TOGETHER, 0, 60, "ab"),
        (TOGETHER + BUDGET, 0, 0, ""),  # the router makes room by itself
        (HELPERS + BUDGET, 0, 0, "ab"),
        (TWO, 0, 0, ""),
        (APART, 0, 0, "ab"),  # what stops nobody is stopped itself
        (TURNS, 0, 0, "c"),
        (TOGETHER + "matrix: {sets: {s1: a & b}}\n", 0, 0, ""),
        (TOGETHER + "routing: {router: {use: matrix}}\n", 0, 0, ""),
        (TOGETHER + "routing: {scheduler: {use: fifo}}\n", 0, 0, "abc"),
    ],
)
def test_what_is_always_loaded(blocks: str, ttl: int, file_ttl: int, expected: str) -> None:
    text = FILE.format(ttl=ttl, file_ttl=file_ttl) + blocks
    assert residents(outline_of("llama-swap", text)) == list(expected)


def test_presets_name_what_is_loaded_at_the_start() -> None:
    text = (
        "version = 1\n\n[a]\nmodel = /a.gguf\nload-on-startup = on\n\n[b]\nmodel = /b.gguf\n\n"
        "[c]\nmodel = /c.gguf\nload-on-startup = 0\n"
    )
    assert residents(outline_of("llama-server", text)) == ["a"]


def loaded(*figures: tuple[float, float]) -> Outline:
    """Models with these needs of VRAM and RAM that stay."""
    models = {
        f"m{n}": ModelOutline(flags={"model": f"/m{n}"}, keys={"ttl": "0"}, vram_gb=vram, ram_gb=ram)
        for n, (vram, ram) in enumerate(figures)
    }
    top = {"groups.g.members": list(models), "groups.g.swap": "false", "groups.g.persistent": "true"}
    return Outline(models, top)


@pytest.mark.parametrize(
    ("figures", "budget", "expected"),
    [
        ([(10, 0), (10, 0)], BudgetFigures(20, 8), ""),
        ([(10, 0), (10.5, 0)], BudgetFigures(20, 8), "20.5 GiB of VRAM, where 20.0 are planned"),
        ([(30, 0)], BudgetFigures(20, 8), ""),  # that is V-10's
        ([(30, 0), (0, 0)], BudgetFigures(20, 8), ""),
        ([(1, 5), (0, 4)], BudgetFigures(20, 8), "9.0 GiB of RAM, where 8.0 are planned"),
        ([(30, 5), (30, 4)], BudgetFigures(), ""),  # no limit
    ],
)
def test_what_is_always_loaded_has_to_fit_together(
    figures: list[tuple[float, float]], budget: BudgetFigures, expected: str
) -> None:
    found = list(resident_findings(loaded(*figures), [], budget))
    assert [(item.rule, item.severity, item.where) for item in found] == [("V-11", "warn", "models.m0")] * bool(
        expected
    )
    assert not expected or f"are always loaded and need together {expected}: m0, m1" in found[0].message


def test_each_device_has_to_hold_what_is_always_loaded_there() -> None:
    entries = [
        {"id": "m0", "est_device_gib": {"CUDA0": 9.0, "CUDA1": 1.0}},
        {"id": "m1", "est_device_gib": {"CUDA0": 9.0}},
    ]
    budget = figures_from_json({"vram_gib": 32.0, "ram_gib": 8.0, "devices": {"CUDA0": 16.0, "CUDA1": 16.0}})
    (item,) = resident_findings(loaded((10, 0), (9, 0)), entries, budget)
    assert (
        "2 models are always loaded and need together 18.0 GiB on CUDA0, where 16.0 are planned: m0, m1" in item.message
    )
    assert not list(resident_findings(loaded((10, 0), (9, 0)), entries, budget, lambda name, path: name != "m0"))
