"""A real host worker on the filesystem broker, in a process that has no database at all."""

from __future__ import annotations

import base64
import json
import threading
import uuid

import pytest

from models_app.models import Row
from models_app.services import register_root, start_scan
from quartermaster_site.access.audit import Actor
from quartermaster_site.celery import app
from quartermaster_site.jobs.models import Job, State
from quartermaster_site.jobs.services import cancel_job
from tests.tasks.inbox import drain
from tests.tasks.workers import worker
from tests.tiny_models import tiny_gguf

pytestmark = [pytest.mark.worker, pytest.mark.django_db(transaction=True)]


@pytest.fixture(autouse=True)
def _real_broker():
    app.conf.task_always_eager = False


@pytest.fixture
def data_dir():
    from quartermaster_site import env

    return env.prepared_data_dir()


@pytest.fixture
def host_worker(data_dir, tmp_path):
    with worker("host", "host.local", data_dir, tmp_path / "worker.log"):
        yield tmp_path / "worker.log"


def finished(job):
    return lambda: Job.objects.get(pk=job.pk).is_finished


def test_scans_a_folder_and_reports_rows(host, host_worker, tmp_path):
    models = tmp_path / "models"
    models.mkdir()
    for number in range(5):
        tiny_gguf(models / f"model-{number}-Q4_0.gguf", name=f"Model {number}")
    (models / "broken-Q4_0.gguf").write_bytes(b"GGUF\x03\x00\x00\x00")
    register_root(host=host, path=str(models), actor=Actor())
    job = start_scan(host=host, actor=Actor()).job
    seen = []
    drain(app, finished(job), 30, seen)
    job.refresh_from_db()
    assert job.state == State.WARNED, job.error
    assert job.result["models"] == 6
    assert Row.objects.filter(state=Row.State.PRESENT).count() == 5
    assert Row.objects.get(state=Row.State.UNREADABLE).file_name == "broken-Q4_0.gguf"
    assert host.findings.filter(kind="header-unreadable").count() == 1
    log = host_worker.read_text()
    assert "Traceback" not in log
    assert any(task == "gpus_app.tasks.host_heartbeat" for task, _ in seen)


def test_a_second_scan_sends_no_header_again(host, host_worker, tmp_path):
    models = tmp_path / "models"
    models.mkdir()
    tiny_gguf(models / "model-Q4_0.gguf", name="Model")
    register_root(host=host, path=str(models), actor=Actor())
    drain(app, finished(start_scan(host=host, actor=Actor()).job), 30)
    seen = []
    drain(app, finished(start_scan(host=host, actor=Actor()).job), 30, seen)
    events = [arguments["event"] for task, arguments in seen if task.endswith("job_event")]
    assert not [event for event in events if "headers" in event["data"]]
    assert Row.objects.get().state == Row.State.PRESENT


def test_a_cancel_half_way_keeps_what_was_found(host, host_worker, tmp_path, make_user):
    models = tmp_path / "models"
    models.mkdir()
    tiny_gguf(models / "a-first-Q4_0.gguf", name="First")
    for number in range(8000):
        (models / f"b-{number:04d}-Q4_0.gguf").hardlink_to(models / "a-first-Q4_0.gguf")
    register_root(host=host, path=str(models), actor=Actor())
    admin = make_user("admin")
    job = start_scan(host=host, actor=Actor()).job
    reading = threading.Event()

    def until():
        row = Job.objects.get(pk=job.pk)
        if row.phase == "Reading headers" and row.done > 50 and not reading.is_set():
            reading.set()
            cancel_job(job=row, actor=Actor(user=admin, name="admin"))
        return row.is_finished

    drain(app, until, 60)
    job.refresh_from_db()
    assert reading.is_set()
    assert job.state == State.CANCELLED
    assert 0 < job.done < 8001
    assert 0 < Row.objects.count() < 8001
    assert host.roots.get().state == "partial"


def _message(queue, headers, body):
    """A message file as kombu writes it, with whatever somebody put into it."""
    delivery = {"exchange": queue, "routing_key": queue}
    return json.dumps(
        {
            "body": base64.b64encode(body.encode()).decode(),
            "content-type": "application/json",
            "content-encoding": "utf-8",
            "headers": headers,
            "properties": {"delivery_tag": str(uuid.uuid4()), "delivery_info": delivery, "body_encoding": "base64"},
        }
    )


def test_messages_that_are_no_tasks_do_not_end_the_worker(host, host_worker, data_dir, tmp_path):
    """Celery ends at each of these, and again at its next start."""
    task = "models_app.host_tasks.scan_folders"
    poison = (
        ({"task": "no.such.task"}, "[[], {}, {}]"),
        ({"task": ["x"], "id": "1"}, "[[], {}, {}]"),
        ({"task": task, "id": "1"}, '"seven"'),
        ({"task": task, "id": "1", "eta": "soon"}, "[[], {}, {}]"),
        ({"task": task, "id": "1", "timelimit": "x"}, "[[], {}, {}]"),
        ({}, "{}"),
    )
    for number, (headers, body) in enumerate(poison):
        name = f"{number:013d}_{uuid.uuid4()}.host.local.msg"
        (data_dir / "broker" / "queue" / name).write_text(_message("host.local", headers, body))
    register_root(host=host, path=str(tmp_path), actor=Actor())
    job = start_scan(host=host, actor=Actor()).job
    drain(app, finished(job), 30)
    job.refresh_from_db()
    assert job.state == State.SUCCEEDED
    assert host_worker.read_text().count("dropped a message") >= 3
