"""Two settings of a model side by side, named by the address."""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import parse_qsl, urlsplit

from django.test import Client

from gpus_app.models import Host
from models_app.core.catalog import MemoryTerm, Plan, Reason
from models_app.models import Override, Row
from models_app.pages.comparison import BOTH, ONLY_A, ONLY_B, Comparison, comparison
from models_app.pages.plan_panel import plan_panel
from tests.views.test_plan_panel import MACHINE, _placement, _plan
from tests.views.test_preview import _text

Named = Callable[[str], Row]
GIB = 1 << 30


def compared(a: Plan, b: Plan) -> Comparison:
    panels = (plan_panel(a, MACHINE, block_count=32), plan_panel(b, MACHINE, block_count=32))
    return comparison(a, b, panels, device_names=[device.name for device in MACHINE.devices], block_count=32)


def test_two_equal_plans_have_no_difference() -> None:
    found = compared(_plan(), _plan())
    assert found.say == "The two plans are the same."
    assert not any(line.differs or line.change for line in found.facts)
    assert (found.removed_count, found.added_count) == (0, 0)


def test_differences_of_the_rounded_figures_add_up_in_every_place() -> None:
    third = GIB // 3
    other = (
        MemoryTerm("weights", "Weights", (third * 7, third * 4), third, "layers"),
        MemoryTerm("kv", "Context", (third * 3, third), 0, "cells"),
        MemoryTerm("drafter", "Drafter", (0, third), 0, "own head"),
    )
    found = compared(_plan(), _plan(terms=other))
    assert [place.name for place in found.places] == ["GPU 0", "GPU 1", "RAM"]
    for place in found.places:
        changes = [_number(line.change) for line in place.lines]
        assert round(sum(changes), 2) == _number(place.total.change)
        for line in (*place.lines, place.total):
            assert round(_number(line.b) - _number(line.a), 2) == _number(line.change)
    assert [line.label for line in found.places[1].lines] == ["Weights", "Context", "Drafter"]
    assert found.places[1].lines[2].a == "-"


def _number(text: str) -> float:
    return float(text.replace("−", "-").replace("+", "")) if text not in ("", "-") else 0.0


def test_a_device_that_only_one_side_uses_is_shown() -> None:
    one = (MemoryTerm("weights", "Weights", (GIB,), 0, ""),)
    found = compared(_plan(), _plan(terms=one))
    assert [place.name for place in found.places] == ["GPU 0", "GPU 1", "RAM"]
    assert found.places[1].total.b == "-"
    in_ram = compared(_plan(), _plan(terms=(MemoryTerm("weights", "Weights", (), GIB, ""),)))
    assert in_ram.places[0].total.b == "-"


def test_reasons_say_whose_they_are() -> None:
    shared, mine, theirs = Reason("x", "Shared."), Reason("y", "Only here."), Reason("z", "Only there.")
    found = compared(_plan(reasons=(shared, mine)), _plan(reasons=(shared, theirs)))
    assert [(line.side, line.text) for line in found.reasons] == [
        (BOTH, "Shared."),
        (ONLY_A, "Only here."),
        (ONLY_B, "Only there."),
    ]


def test_facts_name_the_placement() -> None:
    found = compared(_plan(), _plan(placement=_placement(slots=2, ctx_tokens=8192, type_v="q8_0")))
    different = {line.label: (line.a, line.b) for line in found.facts if line.differs}
    assert different == {
        "Context per conversation": ("65,536", "8,192"),
        "Cache type": ("f16", "f16 and q8_0"),
    }
    assert found.say.startswith("Different: context per conversation, cache type")


def test_the_stored_plan_against_a_what_if(scanned: Host, viewer: Client, row_named: Named) -> None:
    row = row_named("qwen3-8b")
    html = viewer.get(f"/models/{row.pk}/compare/?b-ctx=16k&b-kvK=q8_0").content.decode()
    text = _text(html)
    assert "the stored plan" in text
    assert "context 16k tokens, KV type, keys q8_0" in text
    assert re.search(r"Context per conversation\s+differs\s+40,960 16,384", text)
    assert "removed: -c 40960" in text
    assert "added: -c 16384" in text
    assert "Window of 16,384 tokens, pinned by you." in text
    assert re.search(r'href="\?a-ctx=16k&amp;a-kvK=q8_0"', html), "swapped"
    assert f'href="/models/{row.pk}/?ctx=16k&amp;kvK=q8_0"' in html
    assert "style=" not in html
    assert not Override.objects.exists()


def test_any_two_what_ifs_by_address(scanned: Host, viewer: Client, row_named: Named) -> None:
    row = row_named("mixtral")
    answer = viewer.get(f"/models/{row.pk}/compare/?a-nCpuMoe=8&b-nCpuMoe=32")
    text = _text(answer.content.decode())
    assert "removed: --n-cpu-moe 8" in text
    assert "added: --n-cpu-moe 32" in text
    same = viewer.get(f"/models/{row.pk}/compare/?a-ctx=8192&b-ctx=8k").content.decode()
    assert "The two plans are the same." in same
    nothing = viewer.get(f"/models/{row.pk}/compare/").content.decode()
    assert "The two plans are the same." in nothing


def test_empty_fields_leave_the_address(scanned: Host, viewer: Client, row_named: Named) -> None:
    path = f"/models/{row_named('qwen3-8b').pk}/compare/"
    answer = viewer.get(f"{path}?a-ctx=&a-kvK=&b-ctx=8k&b-ub=")
    assert answer.status_code == 302
    assert answer["Location"] == f"{path}?b-ctx=8k"


def test_a_bad_value_is_named_and_nothing_is_compared(scanned: Host, viewer: Client, row_named: Named) -> None:
    answer = viewer.get(f"/models/{row_named('qwen3-8b').pk}/compare/?a-ctx=1e&b-ctx=<script>")
    assert answer.status_code == 422
    html = answer.content.decode()
    assert 'id="f-a-ctx_error"' in html
    assert 'id="f-b-ctx_error"' in html
    assert "<script>" not in html
    assert "Outcome" not in html


def test_the_what_if_form_leads_to_the_comparison(scanned: Host, viewer: Client, row_named: Named) -> None:
    row = row_named("qwen3-8b")
    answer = viewer.post(f"/models/{row.pk}/preview/", {"ctx": "16k", "parallel": "", "intent": "compare"})
    assert answer.status_code == 302
    parts = urlsplit(answer["Location"])
    assert parts.path == f"/models/{row.pk}/compare/"
    assert parse_qsl(parts.query) == [("b-ctx", "16k")]
    assert viewer.post(f"/models/{row.pk}/preview/", {"ctx": "1e", "intent": "compare"}).status_code == 422


def test_a_model_without_a_plan_has_nothing_to_compare(scanned: Host, viewer: Client, row_named: Named) -> None:
    answer = viewer.get(f"/models/{row_named('nomic').pk}/compare/")
    assert answer.status_code == 200
    html = answer.content.decode()
    assert "Nothing to compare" in html
    assert "Settings of A and B" not in html
    assert f'href="/models/{row_named("nomic").pk}/"' in html
