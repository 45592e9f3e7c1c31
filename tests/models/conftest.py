"""Scans in this process: the host task runs at once, its reports are stored at once."""

from __future__ import annotations

from collections import defaultdict

import pytest
import yaml

from models_app.models import ImportBatch
from models_app.services import register_root, start_scan
from models_app.services.import_applying import Choice, items_of_batch, start_apply
from models_app.services.importing import start_import
from quartermaster_site.access.audit import Actor
from quartermaster_site.jobs.models import Job
from tests.kept_rows import KeptRows
from tests.models.import_cases import models
from tests.tiny_models import tiny_gguf


class Folders:
    """A test gets the folder of the test before it where that left it as it was, so that `KeptRows` knows it."""

    def __init__(self, factory):
        self.factory = factory
        self.last, self.state = None, None

    def give(self):
        if self.last is None or _state(self.last) != self.state:
            self.last = self.factory.mktemp("shelf") / "models"
            self.last.mkdir()
            tiny_gguf(self.last / "alpha-1b-Q4_0.gguf", name="Alpha 1B")
            tiny_gguf(self.last / "alpha-1b-Q8_0.gguf", name="Alpha 1B")
            tiny_gguf(self.last / "beta-2b-Q4_0.gguf", name="Beta 2B")
            self.state = _state(self.last)
        return self.last


def _state(folder):
    paths = [folder, *sorted(folder.rglob("*"))] if folder.exists() else []
    return [(path, *path.lstat()[:7], path.lstat().st_mtime_ns, path.lstat().st_ctime_ns) for path in paths]


@pytest.fixture(scope="session")
def folders(tmp_path_factory):
    return Folders(tmp_path_factory)


@pytest.fixture
def folder(folders):
    """A folder with three models, two of them quants of one."""
    return folders.give()


@pytest.fixture
def scan(host, django_capture_on_commit_callbacks):
    """Scan all roots of the host, with everything that follows; returns the scan's job."""

    def run(**arguments):
        with django_capture_on_commit_callbacks(execute=True):
            started = start_scan(host=host, actor=Actor(), **arguments)
        return Job.objects.get(pk=started.job.pk)

    return run


@pytest.fixture(scope="session")
def found_in_folders():
    return defaultdict(KeptRows)


@pytest.fixture
def scanned(host, folder, found_in_folders, scan):
    """The folder, registered and scanned; the job of the scan."""

    def look():
        register_root(host=host, path=str(folder), actor=Actor())
        job = scan()
        assert job.state == "succeeded", (job.error, job.log)

    found_in_folders[folder].store(look)
    return Job.objects.filter(kind="scan").latest("pk")


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
