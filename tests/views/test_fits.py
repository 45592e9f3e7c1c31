"""The table of what fits: its cells are the plans that a what-if of the same window gives, and it stays quick."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from gpus_app.models import HostSetting
from models_app import convert
from models_app.core.settings import Override
from models_app.models import HeaderFacts, Row, StoredPlan
from models_app.models import Override as StoredOverride
from models_app.pages.fits_page import FitsTable, figure_of, word_of
from models_app.selectors.fits import FitsFilter
from models_app.services import preview_plan
from models_app.services.fits import KEPT, host_fits
from tests.seer import seer

PATH = "/hosts/local/fits/"


@pytest.fixture(autouse=True)
def _nothing_kept():
    KEPT.clear()


def page_of(host, **wanted):
    return host_fits(host, FitsFilter(**wanted), seer())


def test_each_cell_is_the_plan_of_its_what_if(scanned):
    page = page_of(scanned)
    assert {row.base_id for row in page.rows} >= {"qwen3-8b", "mixtral-8x7b"}
    seen = set()
    for row in page.rows:
        stored = Row.objects.select_related("host").get(pk=row.pk)
        for tokens, fit in page.fits[row.pk].items():
            seen.add(fit.state)
            if fit.state == "beyond":
                assert tokens > convert.core_header(stored.header).context_length
                continue
            plan = preview_plan(row=stored, override=Override(ctx=tokens)).base
            assert (fit.vram_bytes, fit.ram_bytes) == (plan.est_vram_bytes, plan.est_ram_bytes)
            assert fit.placement == plan.placement
            assert {"stepped": "fits"}.get(fit.state, fit.state) == plan.verdict
    assert {"fits", "spills", "beyond"} <= seen


def test_a_step_down_and_a_spill_are_named(scanned):
    HostSetting.objects.filter(host=scanned).update(values={"targetVramGB": 6.5, "maxRamGB": 9.0})
    page = page_of(type(scanned).objects.get(pk=scanned.pk))
    words = {word_of(fit) for fits in page.fits.values() for fit in fits.values()}
    assert "with q8_0 cache" in words
    assert any("layers GPU" in word for word in words)
    assert any("RAM short" in word for word in words)
    over = [fit for fits in page.fits.values() for fit in fits.values() if fit.state == "over"]
    assert over
    assert all(fit.short_ram_bytes > 0 or fit.short_vram_bytes > 0 for fit in over)


def test_cells_lead_to_the_model_with_the_window_filled_in(viewer, scanned, row_named):
    pk = row_named("qwen3-8b").pk
    content = viewer.get(f"{PATH}?kv=q8_0&parallel=2").content.decode()
    address = f"/models/{pk}/?ctx=16384&amp;kvK=q8_0&amp;kvV=q8_0&amp;parallel=2"
    assert address in content
    assert viewer.get(address.replace("&amp;", "&")).status_code == 200


def test_filters_and_order(scanned):
    assert [row.base_id for row in page_of(scanned, q="mixtral").rows] == ["mixtral-8x7b"]
    on_gpu = page_of(scanned, show="gpu", at=32768)
    assert on_gpu.rows
    assert all(on_gpu.fits[row.pk][32768].state in ("fits", "stepped") for row in on_gpu.rows)
    rest = page_of(scanned).total - on_gpu.total
    assert rest > 0
    by_need = page_of(scanned, sort="32768")
    ranked = [by_need.fits[row.pk][32768] for row in by_need.rows]
    assert [fit.total_bytes for fit in ranked if fit.state == "fits"] == sorted(
        fit.total_bytes for fit in ranked if fit.state == "fits"
    )
    sizes = [row.size_bytes for row in page_of(scanned, sort="-size").rows]
    assert sizes == sorted(sizes, reverse=True)


def test_an_odd_address_is_no_error(viewer, scanned):
    odd = ("sort=x", "sort=-", "at=99", "kv=q3", "parallel=-1", "page=0", "page=99999999999", "show=all", "q=%00")
    for query in odd:
        assert viewer.get(f"{PATH}?{query}").status_code == 200, query


def test_an_answer_is_kept_until_something_changes(scanned, monkeypatch):
    asked = []
    real = __import__("models_app.services.fits", fromlist=["fits_of"]).fits_of
    monkeypatch.setattr(
        "models_app.services.fits.fits_of", lambda row, *a, **k: asked.append(row.id) or real(row, *a, **k)
    )
    first = page_of(scanned)
    assert len(asked) == first.total
    assert page_of(scanned).fits == first.fits
    assert len(asked) == first.total
    HostSetting.objects.filter(host=scanned).update(values={"targetVramGB": 8.0, "maxRamGB": 48.0})
    host = type(scanned).objects.get(pk=scanned.pk)
    assert page_of(host).fits != first.fits
    assert len(asked) == 2 * first.total
    HeaderFacts.objects.filter(path=first.rows[0].path).update(read_at="2020-01-01T00:00:00Z")
    page_of(host)
    assert len(asked) == 2 * first.total + 1
    StoredOverride.objects.create(host=host, match=first.rows[1].path, fields={"kvK": "q4_0", "kvV": "q4_0"})
    fits = page_of(host).fits[first.rows[1].pk]
    assert len(asked) == 2 * first.total + 2
    assert {fit.placement.type_k for fit in fits.values() if fit.placement} == {"q4_0"}


def test_many_models_take_few_queries_and_pages(admin, scanned):
    copies(scanned, 130)
    admin.get(PATH)
    KEPT.clear()
    with CaptureQueriesContext(connection) as cold:
        content = admin.get(PATH).content.decode()
    assert len(cold) <= 12, "\n".join(query["sql"][:120] for query in cold.captured_queries)
    assert "Page 1 of 2" in content
    assert content.count("<tr>") == 101
    whole = admin.get(f"{PATH}?rows=all").content.decode()
    assert whole.count("<tr>") > 130


def copies(host, number):
    """More files with the same header as the smallest model."""
    model = Row.objects.select_related("header").get(served_id__startswith="qwen3-0.6b")
    for index in range(number):
        path = f"{model.path}.{index}"
        header = HeaderFacts.objects.create(
            host=host, path=path, size_bytes=model.header.size_bytes, mtime_ns=index, facts=model.header.facts
        )
        row = Row.objects.create(
            host=host, path=path, header=header, served_id=f"copy-{index}", base_id=f"copy-{index}", file_name="c.gguf",
            model_class="llm", model_key=f"copy-{index}", size_bytes=model.size_bytes,
            found={**model.found, "full_path": path, "id": f"copy-{index}"},
        )  # fmt: skip
        StoredPlan.objects.create(row=row, profile_id=row.served_id, verdict="fits", ctx_tokens=4096)


def test_a_row_that_cannot_be_planned_says_why(viewer, scanned, row_named):
    row = row_named("qwen3-8b")
    row.found = {**row.found, "missing_shards": [2], "shard_count": 3}
    row.save()
    content = viewer.get(PATH).content.decode()
    assert "incomplete: part 2 of 3 is not on disk" in content


def test_it_reads_without_colours(viewer, scanned):
    content = viewer.get(PATH).content.decode()
    for word in ("all on GPU", "expert layers CPU"):
        assert word in content
    for shape in ("#i-ok", "#i-part"):
        assert shape in content


def test_without_a_gpu_the_figures_are_of_ram(host, scanned):
    scanned.devices.all().delete()
    HostSetting.objects.filter(host=scanned).update(values={"maxRamGB": 48.0})
    page = page_of(type(scanned).objects.get(pk=scanned.pk))
    fits = [fit for row in page.fits.values() for fit in row.values() if fit.state == "fits"]
    assert fits
    assert {word_of(fit) for fit in fits} == {"in RAM"}
    assert all(figure_of(fit) == f"{fit.ram_bytes / (1 << 30):.1f}" for fit in fits)
    assert FitsTable(page, PATH).lines[0].cells[0].shape == "ok"
