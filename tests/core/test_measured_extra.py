"""What a check against llama.cpp has shown is kept free by later plans, and said."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpus_app.core.budget import budget_of
from models_app.core.planning.wishes import Excess
from models_app.core.plans import plan_curve, plan_row
from models_app.core.plans.fits import fits_of
from models_app.core.settings import BackendEntry, Override, Settings
from models_app.core.units import MIB
from models_app.core.verbs.planning_run import row_of

FULL = Override(kv_k="f16", kv_v="f16")
SEEN = Excess("llama-server", "b11434", device_bytes=640 * MIB, ram_bytes=30 * MIB)


@pytest.fixture
def header(zoo_header):
    return zoo_header("qwen3-8b-q4_k_m")


def _plan(header, excesses=(), devices=(9.0,), ram=64.0, **arguments):
    values = {"settings": Settings(), "override": FULL, "budget": budget_of(devices, ram), **arguments}
    return plan_row(row_of(header.path, header), header, excesses=excesses, **values)[0]


def _extra(plan):
    return next((term for term in plan.terms if term.key == "measured"), None)


@pytest.mark.parametrize("devices", [(9.0,), (4.5, 6.0)])
def test_it_is_a_term_with_its_reason(header, devices):
    plan, before = _plan(header, [SEEN], devices), _plan(header, devices=devices)
    term = _extra(plan)
    assert term.device_bytes == (640 * MIB,) * len(devices)
    assert term.ram_bytes == 30 * MIB
    assert "640 MiB (on a device) and 30 MiB (in RAM) more than projected on build b11434" in term.how
    assert plan.est_vram_bytes == sum(sum(each.device_bytes) for each in plan.terms) <= plan.target_bytes
    assert [reason.text for reason in plan.reasons if reason.kind == "measured-extra"] == [
        "Kept free: llama.cpp measured 640 MiB (on a device) and 30 MiB (in RAM) more than projected on build b11434."
    ]
    assert plan.placement.ctx_tokens < before.placement.ctx_tokens
    assert plan == _plan(header, [SEEN], devices)


def test_it_holds_for_one_executable_only(header):
    other = _plan(header, [replace(SEEN, server="/opt/llama.cpp/llama-server")])
    assert other == _plan(header)
    backend = BackendEntry(id="1", kind="llama", path="/opt/my llama/llama-server")
    settings = Settings(backends=(backend,))
    seen = replace(SEEN, server=backend.path)
    assert _extra(_plan(header, [SEEN, seen], settings=settings)).how.startswith("llama.cpp measured 640 MiB")
    assert _extra(_plan(header, [SEEN], settings=settings)) is None


def test_without_a_device_only_ram_counts(header):
    term = _extra(_plan(header, [SEEN], devices=()))
    assert (term.device_bytes, term.ram_bytes) == ((), 30 * MIB)
    assert _extra(_plan(header, [replace(SEEN, ram_bytes=0)], override=Override(device="cpu"))) is None


def test_the_curve_and_the_table_of_what_fits_know_it(header):
    row, budget = row_of(header.path, header), budget_of([9.0], 64.0)
    plan = _plan(header, [SEEN])
    curve = plan_curve(row, header, settings=Settings(), override=FULL, budget=budget, excesses=[SEEN])
    assert curve.now.vram_bytes == plan.est_vram_bytes
    assert curve.own.longest_tokens == plan.placement.ctx_tokens
    fits = [
        fits_of(row, header, [16384], settings=Settings(), override=FULL, budget=budget, excesses=seen)
        for seen in ((), [SEEN])
    ]
    assert fits[1][16384].vram_bytes - fits[0][16384].vram_bytes == 640 * MIB
