"""Scans in this process: the host task runs at once, its reports are stored at once."""

from __future__ import annotations

import pytest

from models_app.services import register_root, start_scan
from quartermaster_site.access.audit import Actor
from quartermaster_site.jobs.models import Job
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
