"""The list of models: filters, sorting, quants as pills, paging, and a fixed number of queries."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from gpus_app.models import Host
from models_app.models import Root, Row, StoredPlan


def _html(client: Client, address: str) -> str:
    answer = client.get(address)
    assert answer.status_code == 200
    return answer.content.decode()


def _names(html: str) -> list[str]:
    return re.findall(r'<a class="q-name" href="/models/\d+/"[^>]*>([^<]+)</a>', html)


def _add(host: Host, name: str, quant: str = "Q4_K_M", **columns: Any) -> Row:
    plan = columns.pop("plan", {"verdict": "fits", "est_vram_bytes": 4 << 30, "ctx_tokens": 32768})
    defaults = {
        "path": f"/models/{name}-{quant}.gguf",
        "served_id": f"{name}-{quant}".lower(),
        "base_id": name,
        "quant": quant,
        "file_name": f"{name}-{quant}.gguf",
        "model_class": "llm",
        "model_key": name,
        "family_key": name.partition("-")[0],
        "size_bytes": 3 << 30,
    }
    row = Row.objects.create(host=host, **{**defaults, **columns})
    StoredPlan.objects.create(row=row, profile_id=row.served_id, **plan)
    return row


@pytest.fixture
def shelf_rows(gpu_host: Host) -> Host:
    _add(gpu_host, "alpha-7b", size_bytes=9 << 30)
    _add(gpu_host, "beta-3b", size_bytes=2 << 30, category="embed", model_class="embedding")
    _add(gpu_host, "gamma-70b", plan={"verdict": "over", "est_vram_bytes": 40 << 30, "ctx_tokens": 8192})
    return gpu_host


def test_lists_every_model_with_its_figures(shelf_rows: Host, viewer: Client) -> None:
    html = _html(viewer, "/models/")
    assert _names(html) == ["alpha-7b", "beta-3b", "gamma-70b"]
    assert "32,768" in html
    assert "does not fit" in html
    assert "s-bad" in html, "the small bar of a model over budget"


def test_text_filter_takes_words_in_any_order(shelf_rows: Host, viewer: Client) -> None:
    assert _names(_html(viewer, "/models/?q=Q4_K_M+alpha")) == ["alpha-7b"]
    assert _names(_html(viewer, "/models/?q=%00%27%22%3Cb%3E")) == []


def test_filters_combine_and_can_be_lifted(shelf_rows: Host, viewer: Client) -> None:
    html = _html(viewer, "/models/?cat=embed&q=beta")
    assert _names(html) == ["beta-3b"]
    assert 'href="/models/?cat=embed"' in html, "the chip that lifts the text filter"
    assert "filters hide 2" in html


def test_says_how_many_the_filters_hide(shelf_rows: Host, viewer: Client) -> None:
    html = _html(viewer, "/models/?q=nothing-like-this")
    assert "No model matches" in html
    assert "hide all 3 quants" in html


def test_sorts_up_then_down_then_naturally(shelf_rows: Host, viewer: Client) -> None:
    up = _html(viewer, "/models/?sort=size")
    assert _names(up) == ["beta-3b", "gamma-70b", "alpha-7b"]
    assert 'aria-sort="ascending"' in up
    assert 'href="/models/?sort=-size"' in up
    down = _html(viewer, "/models/?sort=-size")
    assert _names(down) == ["alpha-7b", "gamma-70b", "beta-3b"]
    assert 'aria-sort="descending"' in down


def test_unknown_words_in_the_address_are_dropped(shelf_rows: Host, viewer: Client) -> None:
    html = _html(viewer, "/models/?sort=evil&cat=zzz&state=zzz&page=99999999999&pick=x&pick=9999999999999999999999")
    assert len(_names(html)) == 3


def test_quants_of_a_model_share_a_row(gpu_host: Host, viewer: Client) -> None:
    small = _add(gpu_host, "alpha-7b", "Q4_K_M", size_bytes=4 << 30)
    large = _add(gpu_host, "alpha-7b", "Q8_0", size_bytes=8 << 30, plan={"verdict": "over", "ctx_tokens": 4096})
    html = _html(viewer, "/models/")
    assert _names(html) == ["alpha-7b"]
    assert f'href="/models/{small.pk}/"' in html, "the largest that fits is shown"
    picked = _html(viewer, f"/models/?pick={large.pk}")
    assert f'href="/models/{large.pk}/"' in picked
    assert "4,096" in picked
    row = viewer.get(f"/models/{large.pk}/row/", headers={"HX-Request": "true"}).content.decode()
    assert row.lstrip().startswith("<tr")
    assert "4,096" in row
    assert 'aria-current="true"' in row


def test_families_get_headings_when_asked(gpu_host: Host, viewer: Client) -> None:
    _add(gpu_host, "zeta-7b", family_key="zeta")
    _add(gpu_host, "zeta-coder-7b", family_key="zeta")
    _add(gpu_host, "alone-1b", family_key="alone")
    assert _names(_html(viewer, "/models/")) == ["alone-1b", "zeta-7b", "zeta-coder-7b"]
    html = _html(viewer, "/models/?group=family")
    assert _names(html) == ["zeta-7b", "zeta-coder-7b", "alone-1b"]
    assert html.index("zeta <span") < html.index("Without relatives")


def test_states_on_disk_come_before_the_verdict(gpu_host: Host, viewer: Client) -> None:
    _add(gpu_host, "away-7b", state=Row.State.OFFLINE)
    html = _html(viewer, "/models/?state=offline")
    assert _names(html) == ["away-7b"]
    assert "offline</span>" in html


def test_a_list_of_a_host_that_was_never_scanned_says_so(shelf_rows: Host, admin: Client) -> None:
    """No filter hides what nobody has looked for."""
    fresh = Host.objects.create(slug="fresh", name="Fresh")
    html = _html(admin, "/models/?host=fresh")
    assert "Fresh has no folder of models to scan" in html
    assert 'href="/hosts/fresh/folders/"' in html
    root = Root.objects.create(host=fresh, path="/srv/models")
    html = _html(admin, "/models/?host=fresh&q=alpha")
    assert "Fresh has 1 folder and no finished scan yet" in html
    assert 'action="/hosts/fresh/scan/"' in html
    assert "filters hide all" not in html.replace("Filters", "filters")
    root.last_scan_at = timezone.now()
    root.save()
    assert "hide all 3 quants" in _html(admin, "/models/?host=fresh")
    assert "hide all 3 quants" in _html(admin, f"/models/?host={shelf_rows.slug}&q=nothing-like-this")


def test_empty_states(gpu_host: Host, admin: Client) -> None:
    assert "No folders yet" in _html(admin, "/models/")
    root = Root.objects.create(host=gpu_host, path="/srv/models")
    assert "Never scanned" in _html(admin, "/models/")
    Root.objects.filter(pk=root.pk).update(
        state=Root.State.MISSING, state_reason="not mounted", last_scan_at="2026-01-01T00:00Z"
    )
    html = _html(admin, "/models/")
    assert "/srv/models" in html
    assert "not mounted" in html


def test_names_from_files_are_escaped(gpu_host: Host, viewer: Client) -> None:
    _add(gpu_host, '<img src=x onerror="1">')
    assert "<img" not in _html(viewer, "/models/")


def test_five_hundred_rows_take_at_most_twelve_queries(
    gpu_host: Host, viewer: Client, django_assert_max_num_queries: Callable[[int], Any]
) -> None:
    for number in range(500):
        _add(gpu_host, f"model-{number // 2:03}", ("Q4_K_M", "Q8_0")[number % 2])
    for address in ("/models/", "/models/?q=model&state=present&sort=-vram", "/issues/", "/jobs/", "/hosts/"):
        viewer.get(address)
        with django_assert_max_num_queries(12):
            answer = viewer.get(address)
        assert answer.status_code == 200
    html = _html(viewer, "/models/?page=3")
    assert len(_names(html)) == 50
    assert "Page 3 of 3" in html


@pytest.mark.parametrize("address", ["/models/", "/models/?sort=-vram", "/models/?group=family", "/models/?page=2"])
def test_only_the_rows_of_a_page_are_loaded(
    gpu_host: Host, viewer: Client, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setattr("models_app.selectors.listing.PAGE_SIZE", 5)
    for number in range(20):
        for quant in ("Q4_K_M", "Q8_0"):
            _add(gpu_host, f"model-{number:02}", quant)
    loaded = 0
    real = Row.from_db.__func__  # type: ignore[attr-defined]

    def count(cls: type[Row], *given: Any) -> Row:
        nonlocal loaded
        loaded += 1
        return real(cls, *given)  # type: ignore[no-any-return]

    monkeypatch.setattr(Row, "from_db", classmethod(count))
    html = _html(viewer, address)
    assert len(_names(html)) == 5
    assert "20 models in 40 quants" in html
    assert loaded == 10


def test_a_quant_that_cannot_be_served_is_not_the_one_shown(gpu_host: Host, viewer: Client) -> None:
    gap = {"verdict": "unplanned", "skip_reason": "incomplete: part 2 of 3 is not on disk"}
    _add(gpu_host, "delta-70b", size_bytes=2 << 30, plan=gap)
    _add(gpu_host, "delta-70b", served_id="delta-70b-two", path="/two/delta.gguf", plan={"verdict": "over"})
    html = _html(viewer, "/models/")
    assert "does not fit" in html
    assert re.findall(r'class="q-pill"[^>]*>([^<]+)<', html) == ["Q4_K_M #1", "Q4_K_M #2"]
    assert 'title="delta-70b-two"' in html
    assert "not planned yet" not in _html(viewer, "/models/?pick=" + str(Row.objects.first().pk))  # type: ignore[union-attr]


def test_a_plan_that_does_not_fit_counts_as_a_warning(shelf_rows: Host, viewer: Client) -> None:
    assert _names(_html(viewer, "/models/?state=warning")) == ["gamma-70b"]
    assert 'state=warning"><span class="q-st q-warn">' in _html(viewer, "/")


@pytest.mark.parametrize("sort", ["", "size"])
def test_a_quant_that_is_gone_is_not_the_one_shown(gpu_host: Host, viewer: Client, sort: str) -> None:
    here = _add(gpu_host, "moved-1b", "Q8_0")
    _add(gpu_host, "moved-1b", "BF16", size_bytes=9 << 30, state=Row.State.MISSING)
    html = _html(viewer, f"/models/?sort={sort}")
    assert re.findall(r'<a class="q-name" href="/models/(\d+)/"', html) == [str(here.pk)]
