"""What host settings would change, said before they are applied."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from gpus_app import memory_settings
from gpus_app.models import Host, HostSetting
from gpus_app.selectors import get_host, target_vram_gib, with_section
from models_app.pages.bulk_page import figures_of
from models_app.plan_figures import PlanFigures
from models_app.services import impact as impact_module
from models_app.services.impact import settings_impact
from quartermaster_site.jobs.models import Job

MEMORY = "/hosts/local/settings/memory/"


@pytest.fixture(autouse=True)
def _no_cache(db: None) -> None:
    cache.clear()


def _text(answer: Any) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", answer.content.decode()))


def test_a_smaller_target_names_what_stops_fitting(admin: Client, scanned: Host) -> None:
    jobs = Job.objects.count()
    answer = admin.post(MEMORY, {"version": "1", "targetVramGB": "4", "maxRamGB": "6", "intent": "impact"})
    text = _text(answer)
    assert answer.status_code == 200
    assert re.search(r"[234] of 4 plans would change\. 1 model would no longer fit", text)
    assert re.search(r"mixtral-8x7b\S* .*does not fit", text)
    assert 'value="4"' in answer.content.decode(), "what was typed stays"
    assert HostSetting.objects.get(section="memory").values == {"targetVramGB": 22.5, "maxRamGB": 48.0}
    assert Job.objects.count() == jobs


def test_memory_is_where_it_moves() -> None:
    def moved(before: tuple[int, int], after: tuple[int, int]) -> str:
        old, new = (PlanFigures("fits", 4096, vram << 30, ram << 30) for vram, ram in (before, after))
        return figures_of(old, new)[1]

    assert moved((0, 20), (0, 16)) == "RAM 20.00 → 16.00", "a host without a GPU"
    assert moved((0, 20), (0, 20)) == "RAM 20.00"
    assert moved((8, 1), (6, 3)) == "VRAM 8.00 → 6.00, RAM 1.00 → 3.00"
    assert moved((8, 1), (8, 1)) == "VRAM 8.00"
    assert figures_of(None, PlanFigures("unknown", 0, 0, 0))[1] == "-"


def test_the_same_values_change_nothing(admin: Client, scanned: Host) -> None:
    answer = admin.post(MEMORY, {"version": "1", "targetVramGB": "22.5", "maxRamGB": "48", "intent": "impact"})
    assert "0 of 4 plans would change." in _text(answer)


def test_devices_have_it_too(admin: Client, scanned: Host) -> None:
    data = {"version": "0", "multiGpu": "on", "reserve-0": "20", "intent": "impact"}
    text = _text(admin.post("/hosts/local/settings/gpu/", data))
    assert re.search(r"[1-4] of 4 plans would change", text)
    assert not HostSetting.objects.filter(section="gpu").exists()


@pytest.mark.parametrize("rubbish", ["'", "1e309", "NaN", "1" + "0" * 30, "-5", "1,000,000.5.5", "٣"])
def test_rubbish_is_refused(admin: Client, scanned: Host, rubbish: str) -> None:
    for address, key in ((MEMORY, "targetVramGB"), ("/hosts/local/settings/gpu/", "minGpuVramGB")):
        assert admin.post(address, {"version": "1", key: rubbish, "intent": "impact"}).status_code == 422


def test_only_editors_ask(viewer: Client, scanned: Host) -> None:
    assert viewer.post(MEMORY, {"version": "1", "intent": "impact"}).status_code == 403


def test_a_complete_answer_is_kept_and_a_cut_one_says_so(scanned: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    values, person = {"targetVramGB": 4.0}, get_user_model().objects.create_user("ida")
    cut = settings_impact(scanned, memory_settings.SECTION, values, person, seconds=-1)
    assert (cut.planned, cut.total) == (1, 4)
    whole = settings_impact(scanned, memory_settings.SECTION, values, person)
    assert whole.planned == 4
    monkeypatch.setattr(impact_module, "_impact", lambda *arguments: pytest.fail("it was planned again"))
    with CaptureQueriesContext(connection) as queries:
        assert settings_impact(get_host("local"), memory_settings.SECTION, values, person) == whole
    assert len(queries) < 20


def test_a_tried_section_is_not_the_stored_one(scanned: Host) -> None:
    tried = with_section(scanned, "memory", {"targetVramGB": 3.0})
    assert (target_vram_gib(tried), target_vram_gib(scanned)) == (3.0, 22.5)
    assert not Host.tried
