"""The plan of a model and its what-if form."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from gpus_app.models import Device, Host, HostSetting
from models_app.models import Override, Revision, Row, StoredPlan
from models_app.views import model_detail
from quartermaster_site.rate import RateLimit

HTMX = {"HX-Request": "true", "HX-Target": "plan"}
Named = Callable[[str], Row]


@pytest.fixture(autouse=True)
def _fresh_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_detail, "PREVIEWS", RateLimit(per_second=5, burst=1000))


def _text(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html))


def _preview(client: Client, row: Row, **values: str) -> Any:
    return client.post(f"/models/{row.pk}/preview/", {"seq": "3", **values}, headers=HTMX)


def test_the_page_has_verdict_bar_table_reasons_and_command(scanned: Host, viewer: Client, row_named: Named) -> None:
    html = viewer.get(f"/models/{row_named('qwen3-8b').pk}/").content.decode()
    text = _text(html)
    assert re.search(r"Fits: \d+\.\d of 22\.5 GiB, context [\d,]+", text)
    assert 'role="img"' in html
    assert "Memory by part, GiB" in text
    assert "Why this plan" in text
    assert "llama-server" in text
    assert 'id="plan-say" role="status"' in html


def test_the_curve_is_a_drawing_a_sentence_and_a_table(scanned: Host, viewer: Client, row_named: Named) -> None:
    row = row_named("qwen3-8b")
    html = viewer.get(f"/models/{row.pk}/").content.decode()
    section = html[html.index("Context against memory") : html.index("Why this plan")]
    text = _text(section)
    assert 'aria-label="VRAM against context per conversation. Planned: 40,960 tokens' in section
    assert "This placement fits at every window up to 40,960, the trained length." in text
    assert re.search(r"<th [^>]*><span class=\"q-n\">40,960</span>", section)
    assert "planned, trained length" in text
    assert "style=" not in section
    shown = re.search(r"planned ([\d.]+) GiB", text)
    total = re.search(r"<tfoot>.*?<span class=\"q-n\">([\d.]+)</span>", html, re.S)
    assert shown
    assert total
    assert shown.group(1) == total.group(1)


def test_the_curve_follows_a_what_if(scanned: Host, viewer: Client, row_named: Named) -> None:
    text = _text(_preview(viewer, row_named("qwen3-8b"), vramTargetGB="7", ngl="37").content.decode())
    assert re.search(r"This placement fits up to [\d,]+ tokens; then VRAM is full\.", text)
    assert re.search(r"fits up to [\d,]+ ", text)
    assert "does not fit: " in text
    small = _text(_preview(viewer, row_named("qwen3-8b"), vramTargetGB="2", ngl="37").content.decode())
    assert "This placement fits at no window: VRAM is too small for it." in small


def test_the_table_adds_up(scanned: Host, viewer: Client, row_named: Named) -> None:
    html = viewer.get(f"/models/{row_named('mixtral').pk}/").content.decode()
    table = html[html.index("Memory by part") : html.index("</tfoot>")]
    body, foot = table.split("<tfoot>")
    rows = [re.findall(r'<span class="q-n">([^<]+)</span>', row) for row in body.split("<tr>")[2:]]
    total = [float(cell.replace(",", "")) for cell in re.findall(r'<span class="q-n">([^<]+)</span>', foot)]
    for column in range(2):
        cells = [float(row[column].replace(",", "")) for row in rows if row[column] != "-"]
        assert round(sum(cells), 2) == total[column]


def test_a_what_if_changes_the_plan_and_stores_nothing(scanned: Host, viewer: Client, row_named: Named) -> None:
    row = row_named("qwen3-8b")
    before = (StoredPlan.objects.count(), Override.objects.count(), Revision.objects.count())
    answer = _preview(viewer, row, ctx="8k", parallel="2", kvK="q8_0", kvV="q8_0")
    assert answer.status_code == 200
    assert answer["X-Sequence"] == "3"
    html = answer.content.decode()
    assert html.lstrip().startswith('<aside class="q-plan" id="plan"')
    assert "context 8,192" in html
    assert "pool 16,384" in html
    assert 'id="e-ctx" hx-swap-oob="true"' in html
    assert 'id="dock"' in html
    assert (StoredPlan.objects.count(), Override.objects.count(), Revision.objects.count()) == before


def test_placement_pins_show_where_they_come_from(scanned: Host, viewer: Client, row_named: Named) -> None:
    html = _preview(viewer, row_named("qwen3-8b"), ngl="10").content.decode()
    assert "10 of 37 layers on the GPU" in html
    assert re.search(r'<li class="c">.*?-ngl 10', html, re.S), "the pin is marked as custom"


def test_experts_can_only_be_moved_where_there_are_some(scanned: Host, viewer: Client, row_named: Named) -> None:
    assert 'name="nCpuMoe"' in viewer.get(f"/models/{row_named('mixtral').pk}/").content.decode()
    assert 'name="nCpuMoe"' not in viewer.get(f"/models/{row_named('qwen3-8b').pk}/").content.decode()


@pytest.mark.parametrize(
    ("field", "typed"),
    [
        ("ctx", "1e"),
        ("ctx", "'"),
        ("ctx", "９"),
        ("ctx", "999999999"),
        ("ctx", "1"),
        ("ctx", "x" * 20000),
        ("parallel", "9"),
        ("parallel", "1.5"),
        ("ub", "-0"),
        ("vramTargetGB", "0"),
        ("vramTargetGB", "1,500"),
        ("ngl", "99"),
        ("kvK", "iq4_nl"),
        ("flashAttn", "<script>"),
    ],
)
def test_bad_values_get_a_message_beside_the_field(
    scanned: Host, viewer: Client, row_named: Named, field: str, typed: str
) -> None:
    row = row_named("qwen3-8b")
    answer = _preview(viewer, row, **{field: typed})
    assert answer.status_code == 422
    assert answer["HX-Reswap"] == "none", "the panel keeps the plan it has"
    html = answer.content.decode()
    assert f'id="e-{field}" hx-swap-oob="true"><p class="q-err"' in html
    assert "<script>" not in html
    whole = viewer.post(f"/models/{row.pk}/preview/", {field: typed, "intent": "preview"})
    assert whole.status_code == 422
    assert "Not accepted yet" in whole.content.decode()


def test_without_javascript_values_become_an_address(scanned: Host, viewer: Client, row_named: Named) -> None:
    row = row_named("qwen3-8b")
    answer = viewer.post(f"/models/{row.pk}/preview/", {"ctx": "16k", "intent": "preview"})
    assert answer.status_code == 302
    assert answer["Location"] == f"/models/{row.pk}/?ctx=16k#plan"
    html = viewer.get(answer["Location"].partition("#")[0]).content.decode()
    assert "context 16,384" in html
    assert "tried here, not stored" in html


def test_picks_and_resets_are_plain_buttons(scanned: Host, viewer: Client, row_named: Named) -> None:
    address = f"/models/{row_named('qwen3-8b').pk}/preview/"
    picked = viewer.post(address, {"ctx": "", "parallel": "2", "pick": "ctx=8192"})
    assert picked["Location"].endswith("?ctx=8192&parallel=2#plan")
    reset = viewer.post(address, {"ctx": "8192", "parallel": "2", "reset": "ctx"})
    assert reset["Location"].endswith("?parallel=2#plan")


def test_the_largest_window_is_offered_only_where_it_fits(scanned: Host, viewer: Client, row_named: Named) -> None:
    address = f"/models/{row_named('qwen3-8b').pk}/"
    assert "40,960 = trained length" in viewer.get(address).content.decode()
    HostSetting.objects.update(values={"targetVramGB": 1.0, "maxRamGB": 1.0})
    html = viewer.get(address).content.decode()
    assert "Does not fit" in html
    assert "most that fits" not in html


def test_too_many_previews_are_told_to_wait(
    scanned: Host, viewer: Client, row_named: Named, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_detail, "PREVIEWS", RateLimit(per_second=5, burst=2, clock=lambda: 0.0))
    row = row_named("qwen3-8b")
    assert [_preview(viewer, row).status_code for _ in range(3)] == [200, 200, 429]
    assert _preview(viewer, row)["Retry-After"] == "1"


def test_a_class_without_a_window_has_an_estimate_and_no_form(scanned: Host, viewer: Client, row_named: Named) -> None:
    html = viewer.get(f"/models/{row_named('nomic').pk}/").content.decode()
    assert re.search(r"Fits: \d+\.\d of 22\.5 GiB", _text(html))
    assert "Context against memory" not in html
    assert 'id="edit"' not in html


def test_a_file_that_is_gone_keeps_its_page(scanned: Host, viewer: Client, row_named: Named) -> None:
    row = row_named("qwen3-8b")
    Row.objects.filter(pk=row.pk).update(state=Row.State.MISSING, state_reason="the file is gone")
    html = viewer.get(f"/models/{row.pk}/").content.decode()
    assert "the file is gone" in html
    assert "Final command" in html


def test_an_unreadable_header_leaves_the_other_tabs(scanned: Host, viewer: Client, row_named: Named) -> None:
    row = row_named("qwen3-8b")
    assert row.header is not None
    row.header.facts, row.header.error, row.header.error_code = None, "truncated at byte 99", "truncated"
    row.header.save()
    page = viewer.get(f"/models/{row.pk}/")
    assert page.status_code == 200
    assert "truncated at byte 99" in page.content.decode()
    assert viewer.get(f"/models/{row.pk}/files/").status_code == 200
    assert _preview(viewer, row).status_code == 422


def test_the_header_can_be_searched(scanned: Host, viewer: Client, row_named: Named) -> None:
    address = f"/models/{row_named('qwen3-8b').pk}/files/"
    html = viewer.get(address).content.decode()
    assert "context_length" in html
    assert "None" not in _text(html)
    found = viewer.get(f"{address}?q=context_length").content.decode()
    assert "context_length" in found
    assert "embedding_length" not in found
    assert "No fact matches" in viewer.get(f"{address}?q=zzz").content.decode()


def test_a_target_for_one_model_counts_where_no_gpu_was_seen(scanned: Host, viewer: Client, row_named: Named) -> None:
    Device.objects.all().delete()
    HostSetting.objects.update(values={"maxRamGB": 48.0})
    row = row_named("qwen3-8b")
    assert "Runs on the CPU" in _preview(viewer, row).content.decode()
    assert re.search(r"Fits: \d+\.\d of 24\.0 GiB", _text(_preview(viewer, row, vramTargetGB="24").content.decode()))


def test_a_file_without_a_readable_header_is_not_served_and_says_so_once(
    scanned: Host, viewer: Client, row_named: Named
) -> None:
    text = _text(viewer.get(f"/models/{row_named('broken').pk}/").content.decode())
    assert "Not planned yet" not in text
    assert text.count("The header cannot be used") == 1
    assert "Not served" in text


def test_a_plan_that_cannot_be_judged_has_a_sentence_for_a_curve(
    scanned: Host, viewer: Client, row_named: Named
) -> None:
    row = row_named("qwen3-8b")
    Device.objects.create(host=scanned, index=1, name="RTX 3060", total_bytes=12 << 30, free_bytes=11 << 30)
    Override.objects.create(host=scanned, match=row.path, fields={"tensorSplit": "1,2,3"})
    html = viewer.get(f"/models/{row.pk}/").content.decode()
    assert "Cannot judge" in html
    assert "No curve: this plan cannot be judged" in html
    assert "l-budget" not in html[html.index("Context against memory") :]
