"""Scans in this process: the host task runs at once, its reports are stored at once."""

from __future__ import annotations

import pytest
import yaml

from models_app.models import ImportBatch
from models_app.services import register_root, start_scan
from models_app.services.import_applying import Choice, items_of_batch, start_apply
from models_app.services.importing import start_import
from quartermaster_site.access.audit import Actor
from quartermaster_site.jobs.models import Job
from tests.models.import_cases import models
from tests.tiny_models import tiny_gguf


@pytest.fixture
def folder(tmp_path):
    """A folder with three models, two of them quants of one."""
    models = tmp_path / "models"
    models.mkdir()
    tiny_gguf(models / "alpha-1b-Q4_0.gguf", name="Alpha 1B")
    tiny_gguf(models / "alpha-1b-Q8_0.gguf", name="Alpha 1B")
    tiny_gguf(models / "beta-2b-Q4_0.gguf", name="Beta 2B")
    return models


@pytest.fixture
def scan(host, django_capture_on_commit_callbacks):
    """Scan all roots of the host, with everything that follows; returns the scan's job."""

    def run(**arguments):
        with django_capture_on_commit_callbacks(execute=True):
            started = start_scan(host=host, actor=Actor(), **arguments)
        return Job.objects.get(pk=started.job.pk)

    return run


@pytest.fixture
def scanned(host, folder, scan):
    """The folder, registered and scanned."""
    register_root(host=host, path=str(folder), actor=Actor())
    job = scan()
    assert job.state == "succeeded", (job.error, job.log)
    return job


SECTIONS = frozenset({"models", "top", "backends"})


@pytest.fixture
def bring_in(host, actor, django_capture_on_commit_callbacks):
    """Bring in a text or a config; the batch as it was read."""

    def run(config, dialect="llama-swap", name="config.yaml", by=actor):
        text = config if isinstance(config, str) else yaml.safe_dump(config, sort_keys=False)
        with django_capture_on_commit_callbacks(execute=True):
            batch = start_import(host=host, name=name, data=text.encode(), dialect=dialect, actor=by)
        return ImportBatch.objects.select_related("host").get(pk=batch.pk)

    return run


@pytest.fixture
def take_over(actor, django_capture_on_commit_callbacks):
    """Take over everything that is new, exactly as written; `items` are boxes ticked beside."""

    def run(batch, way="exact", items=(), by=actor, sections=SECTIONS, ways=None):
        ways = ways or {name: way if found["way"] == "exact" else found["way"] for name, found in models(batch).items()}
        numbers = {number for number, item in enumerate(items_of_batch(batch)) if item.section in ("top", "backends")}
        choice = Choice(frozenset(sections), ways, frozenset(numbers | set(items)))
        with django_capture_on_commit_callbacks(execute=True):
            start_apply(batch=batch, choice=choice, actor=by)
        batch.refresh_from_db()
        return batch

    return run


@pytest.fixture
def do(django_capture_on_commit_callbacks):
    """Call something with everything that it queues, and what that queues."""

    def run(call, *args, **arguments):
        with django_capture_on_commit_callbacks(execute=True):
            return call(*args, **arguments)

    return run
