"""Batches of a host that cannot be trusted."""

from __future__ import annotations

import pytest

from gpus_app.models import Host
from models_app.models import HeaderFacts, Root, Row
from quartermaster_site.jobs.models import Job, State
from quartermaster_site.jobs.receiving import receive

ROW = {"id": "a", "full_path": "/m/a.gguf", "file_name": "a.gguf", "model_class": "llm"}
HEADER = {"path": "/m/a.gguf", "size_bytes": 1, "mtime_ns": 1, "facts": {"format": "gguf"}}


@pytest.fixture
def send(host):
    job = Job.objects.create(kind="scan", host=host, token="t")

    def run(**data):
        receive({"job": job.pk, "token": "t", "kind": "batch", "data": {"sequence": 1, **data}})
        job.refresh_from_db()
        return job

    return run


def test_what_is_as_agreed_is_stored(send):
    assert send(rows=[ROW], headers=[HEADER]).state == State.RUNNING
    assert Row.objects.get().header == HeaderFacts.objects.get()


@pytest.mark.parametrize(
    "data",
    [
        {"rows": [ROW] * 1001},
        {"rows": [{**ROW, "size_bytes": -1}]},
        {"rows": [{**ROW, "size_bytes": 1 << 70}]},
        {"rows": [{**ROW, "is_hf": "yes"}]},
        {"rows": [{**ROW, "full_path": "/" + "x" * 2000}]},
        {"rows": [{**ROW, "full_path": ""}]},
        {"rows": [{**ROW, "shards": [[1, 2, 3, 4]]}]},
        {"rows": [{**ROW, "shards": [["/a", 1, 1, "", "more"]]}]},
        {"rows": ["a"]},
        {"rows": {"a": 1}},
        {"headers": [HEADER] * 201},
        {"headers": [{**HEADER, "facts": {"format": "gguf", "block_count": "many"}}]},
        {"headers": [{**HEADER, "facts": {"format": "gguf", "extra": {"x": [[[[]]]]}}}]},
        {"headers": [{**HEADER, "facts": None}]},
        {"headers": [{**HEADER, "facts": [0] * 300_000}]},
        {"findings": [{"kind": "x", "path": "/a", "text": "t", "offset": -1}]},
        {"findings": [{"path": "/a"}]},
    ],
)
def test_anything_else_fails_the_job_and_stores_nothing(send, data):
    job = send(**data)
    assert job.state == State.FAILED
    assert "refused" in job.error
    assert not Row.objects.exists()
    assert not HeaderFacts.objects.exists()


def test_header_texts_too(send):
    assert send(headers=[{**HEADER, "facts": {"format": "gguf", "general_name": "a\x00\ud800"}}]).state == State.RUNNING
    assert HeaderFacts.objects.get().facts["general_name"] == "a�?"


def test_bytes_that_no_database_takes_are_replaced(send):
    send(rows=[{**ROW, "publisher": "a\x00b\ud800"}])
    assert Row.objects.get().publisher == "a�b?"


def test_a_host_speaks_for_itself_alone(send, host):
    """Naming a file or a folder of another host changes nothing there."""
    other = Host.objects.create(slug="other", name="Other")
    root = Root.objects.create(host=other, path="/m", state="ok")
    theirs = HeaderFacts.objects.create(
        host=other, path="/m/a.gguf", size_bytes=9, mtime_ns=9, facts={"format": "gguf"}
    )
    row = Row.objects.create(host=other, root=root, header=theirs, path="/m/a.gguf", served_id="theirs")
    job = send(rows=[{**ROW, "root": "/m"}], headers=[{**HEADER, "facts": None, "error": {"code": "x", "text": "x"}}])
    roots = [{"path": "/m", "state": "missing", "files": 0}]
    receive({"job": job.pk, "token": "t", "kind": "done", "data": {"batches": 1, "roots": roots, "unread": ["/m"]}})
    for item in (root, theirs, row):
        before = dict(vars(item))
        item.refresh_from_db()
        assert {name: value for name, value in vars(item).items() if name in before} == before
    assert Row.objects.get(host=host).root is None
