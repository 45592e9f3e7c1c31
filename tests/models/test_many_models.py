"""A host with many models: what its planning holds in memory at once, and how often it asks the database."""

from __future__ import annotations

import gc

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from models_app import convert
from models_app.core.catalog import Projection, WeightTable
from models_app.core.discovery.names import sort_key
from models_app.models import HeaderFacts, Row
from models_app.services import headers_ahead
from models_app.services.building import planned_file
from models_app.services.headers_ahead import HeadersAhead
from models_app.services.plan_notes import PlanNotes
from models_app.services.planning import HostPlanner, host_facts

MODELS, AT_ONCE = 24, 4


@pytest.fixture
def found(scanned, host, monkeypatch):
    """The rows of a host with copies of one model beside its own."""
    monkeypatch.setattr(headers_ahead, "AT_ONCE", AT_ONCE)
    row = Row.objects.select_related("header").first()
    for number in range(MODELS - Row.objects.count()):
        path = f"{row.path}.{number}"
        header = HeaderFacts.objects.create(host=host, path=path, size_bytes=1, mtime_ns=1, facts=row.header.facts)
        found = {**row.found, "full_path": path}
        Row.objects.create(host=host, path=path, header=header, file_name=path, model_class="llm", found=found)
    return sorted(map(convert.core_row, Row.objects.all()), key=sort_key)


def _alive(kind):
    return sum(type(item) is kind for item in gc.get_objects())


def test_headers_and_plans_go_while_others_are_planned(host, found):
    alive = {}

    def on_row(done, total, name):
        if done in (1, total):
            alive[done] = _alive(WeightTable), _alive(Projection)

    facts, notes = host_facts(host), PlanNotes()
    made = planned_file(host, found, facts, HostPlanner(facts, HeadersAhead(host, found), notes.take), on_row)
    assert len(made.document.entries) == len(notes.served) == MODELS
    tables, projections = (last - first for first, last in zip(alive[1], alive[MODELS], strict=True))
    assert tables <= 2 * AT_ONCE
    assert projections <= 1


def test_headers_are_read_in_batches_and_any_other_when_it_is_asked_for(host, found):
    lookup = HeadersAhead(host, found)
    with CaptureQueriesContext(connection) as captured:
        headers = [lookup(row.full_path) for row in found]
    assert all(header.architecture == "llama" for header in headers)
    assert len(captured) == MODELS / AT_ONCE
    pinned = HeaderFacts.objects.create(
        host=host, path="/elsewhere/mmproj.gguf", size_bytes=1, mtime_ns=1, facts=HeaderFacts.objects.first().facts
    )
    lookup = HeadersAhead(host, found)
    assert lookup(pinned.path).architecture == "llama"
    assert lookup("/nowhere.gguf") is None


def test_a_header_that_cannot_be_read_has_no_facts(host, found):
    HeaderFacts.objects.filter(path=found[1].full_path).update(facts=None)
    HeaderFacts.objects.filter(path=found[2].full_path).update(facts={"format": "nonsense"})
    lookup = HeadersAhead(host, found)
    assert [lookup(row.full_path) is None for row in found[:4]] == [False, True, True, False]
