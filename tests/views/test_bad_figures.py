"""Absurd figures typed into the forms: an error of the field, and nothing is stored.

Each test goes through all its figures: what it needs takes longer than what it asks.
"""

from __future__ import annotations

from gpus_app.models import HostSetting

MEMORY = "/hosts/local/settings/memory/"
ABSURD = ("nan", "NaN", "inf", "-inf", "1e12", "-1", "1000000000000", "0x10", "1_000")
WHAT_IFS = {
    "vramTargetGB": (*ABSURD, "0"),
    "ctx": ("nan", "-4096", "0", "41k", "1000000000000", "1e12"),
    "ngl": ("-1", "38", "nan"),
    "parallel": ("-1", "0"),
    "ub": ("1000000000000", "-1"),
}
"""For a model of 36 blocks that was trained for 40,960 tokens."""


def test_budgets(admin, gpu_host):
    for field, typed in [("targetVramGB", "0"), ("maxRamGB", "0")] + [
        (field, typed) for field in ("targetVramGB", "maxRamGB", "vramOverheadGB") for typed in ABSURD
    ]:
        answer = admin.post(MEMORY, {"version": "1", field: typed})
        assert (answer.status_code, list(answer.context["form"].errors)) == (422, [field]), (field, typed)
    assert HostSetting.objects.get(section="memory").version == 1


def test_what_if(viewer, scanned, row_named):
    address = f"/models/{row_named('qwen3-8b').pk}/"
    for field, figures in WHAT_IFS.items():
        for typed in figures:
            answer = viewer.get(address, {field: typed})
            assert (answer.status_code, list(answer.context["form"].errors)) == (422, [field]), (field, typed)


def test_figures_that_were_stored_by_other_means_do_no_harm(viewer, scanned, row_named):
    pk = row_named("qwen3-8b").pk
    for values in ({"targetVramGB": 0.0}, {"maxRamGB": 0.0}, {"targetVramGB": 1e12, "maxRamGB": 1e12}):
        HostSetting.objects.filter(section="memory").update(values=values)
        for path in ("/", "/models/", f"/models/{pk}/", "/hosts/local/", "/hosts/local/fits/", MEMORY):
            assert viewer.get(path).status_code == 200, (values, path)
