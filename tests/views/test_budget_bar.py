"""The overview's budget bar: totals, target, headroom, the largest plan and the RAM limit of each host."""

from __future__ import annotations

import pytest

from gpus_app.models import HostSetting
from gpus_app.selectors import get_host
from models_app.models import StoredPlan
from models_app.pages.budget_bar import budget_bar
from models_app.selectors import overview
from models_app.selectors.fleet import LargestPlans, largest_plans
from tests.seer import seer

GIB = 1 << 30


def figures(host):
    largest = largest_plans(seer()).get(host.pk, LargestPlans())
    return {figure.label: figure for figure in budget_bar(host, largest).figures}


def test_the_largest_plans_are_those_that_fit(scanned):
    plans = StoredPlan.objects.filter(verdict__in=("fits", "spills"))
    largest = largest_plans(seer())[scanned.pk]
    assert largest.vram.size_bytes == max(plan.est_vram_bytes for plan in plans)
    assert largest.ram.size_bytes == max(plan.est_ram_bytes for plan in plans)
    plan = plans.get(profile_id=largest.vram.profile_id)
    StoredPlan.objects.filter(pk=plan.pk).update(verdict="over")
    assert largest_plans(seer())[scanned.pk].vram.profile_id != plan.profile_id


def test_figures_and_drawing_agree(scanned):
    found = figures(scanned)
    assert (found["VRAM"].text, found["VRAM target"].text) == ("24.00", "22.50")
    assert (found["Headroom"].text, found["RAM limit"].text) == ("0.50", "48.00")
    assert found["Largest plan"].url.startswith("/models/")
    bar = budget_bar(scanned, largest_plans(seer())[scanned.pk]).bar
    vram, ram = bar.rows
    assert found["Largest plan"].text in vram.note
    assert found["RAM limit"].text in ram.note
    assert [part.key for part in vram.stretches] == ["weights", "headroom"]
    assert vram.budget_x
    assert ram.budget_x


@pytest.mark.parametrize("values", [{}, {"maxRamGB": 8.0}, {"targetVramGB": 10.0, "vramOverheadGB": 0.0}])
def test_without_a_gpu_or_a_plan(host, values):
    HostSetting.objects.create(host=host, section="memory", values=values)
    found = figures(get_host(host.slug))
    assert found["Largest plan"].text == "-"
    assert found["VRAM target"].text == ("10.00" if "targetVramGB" in values else "none: CPU only")


def test_the_overview_shows_it(viewer, scanned):
    html = viewer.get("/").content.decode()
    assert "Largest plan against the budget of Local machine" in html
    assert overview(seer())[0].largest.vram.size_bytes > 0


def test_other_classes_keep_no_headroom_in_their_figure(scanned):
    plan = StoredPlan.objects.select_related("row").get(row__model_class="embedding")
    StoredPlan.objects.filter(pk=plan.pk).update(est_vram_bytes=23 * GIB)
    vram = budget_bar(scanned, largest_plans(seer())[scanned.pk]).bar.rows[0]
    assert [part.key for part in vram.stretches] == ["weights"]


def test_what_waits_for_its_plan_is_not_called_not_served(scanned):
    before = overview(seer())[0]
    waiting = StoredPlan.objects.filter(skip_reason="").first()
    assert waiting is not None
    StoredPlan.objects.filter(row=waiting.row).delete()
    after = overview(seer())[0]
    assert (after.served, after.not_served) == (before.served - 1, before.not_served)
