"""Checks against llama.cpp through a real host worker: cancelled half-way, and with a real llama.cpp."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from gpus_app.models import Backend, Device, HostSetting
from models_app.models import Override, Root, Row, Verification
from models_app.selectors import get_row
from models_app.selectors.checks import plan_checks
from models_app.services import preview_plan, start_scan
from models_app.services.checks import start_check
from quartermaster_site.access.audit import Actor
from quartermaster_site.celery import app
from quartermaster_site.jobs.models import Job, State
from quartermaster_site.jobs.services import cancel_job
from tests.fit_params import CASES, stand_ins
from tests.llama_stand_in import llama_folder
from tests.seer import seer
from tests.tasks.inbox import drain
from tests.tasks.workers import wait_for, worker
from tests.zoo import zoo

pytestmark = [pytest.mark.worker, pytest.mark.django_db(transaction=True)]
GIB = 1 << 30
CASE = CASES[0]


@pytest.fixture
def host_worker(tmp_path):
    from quartermaster_site import env

    with worker("host", "host.local", env.prepared_data_dir(), tmp_path / "worker.log"):
        app.conf.task_always_eager = False
        yield tmp_path / "worker.log"


@pytest.fixture
def ready(host, tmp_path, host_worker):
    """A host with one card and the model of the first recorded answer; `ready(server)` is its row."""

    def prepare(server):
        models = tmp_path / "models"
        zoo.write_model(CASE.model, str(models))
        Device.objects.create(host=host, index=0, name="A", total_bytes=80 * GIB, free_bytes=80 * GIB)
        HostSetting.objects.create(host=host, section="memory", values={"targetVramGB": 70.0, "maxRamGB": 64.0})
        Backend.objects.create(host=host, slug="llama", kind="llama", path=str(server))
        Root.objects.create(host=host, path=str(models))
        done(start_scan(host=host, actor=Actor()).job)
        row = Row.objects.get()
        Override.objects.create(host=host, match=row.path, fields={"customArgs": CASE.text}, version=1)
        return get_row(row.pk, seer())

    return prepare


def done(job, until=None, seconds=90):
    """Take the worker's messages until the job is over."""
    drain(app, until or (lambda: Job.objects.get(pk=job.pk).is_finished), seconds)
    return Job.objects.get(pk=job.pk)


def test_a_cancel_ends_the_program(ready, tmp_path, make_user, host_worker):
    server = llama_folder(tmp_path / "llama", CASE.recorded)
    (server.parent / "slow").touch()
    admin = Actor(user=make_user("admin"), name="admin")
    job = start_check(row=ready(server), actor=admin).job
    cancelled = threading.Event()

    def until():
        row = Job.objects.get(pk=job.pk)
        if (server.parent / "asked").exists() and row.state == State.RUNNING and not cancelled.is_set():
            cancelled.set()
            cancel_job(job=row, actor=admin)
        return row.is_finished

    assert done(job, until).state == State.CANCELLED
    assert not Verification.objects.exists()
    wait_for(lambda: str(server.parent) not in _commands(), 10)
    assert "Traceback" not in host_worker.read_text()


def _commands():
    """The command lines of all processes."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(entry.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace"))
        except OSError:
            continue
    return "\n".join(found)


@pytest.mark.llama
@pytest.mark.xdist_group("llama")
def test_the_real_program(ready, tmp_path, make_user):
    """The folder of a server whose llama-fit-params is the real one, with an RPC server for a GPU."""
    folder = Path(os.environ["QM_LLAMA_BIN"])
    server = tmp_path / "llama" / "llama-server"
    server.parent.mkdir()
    with stand_ins(folder, 1) as words:
        for name, line in (("llama-server", ""), ("llama-fit-params", f'exec "{folder}/llama-fit-params" "$@"')):
            more = f" {' '.join(words)}" if line else ""
            (server.parent / name).write_text(f'#!/bin/sh\n[ "$1" = --version ] && {line or ":"}\n{line}{more}\n')
            (server.parent / name).chmod(0o755)
        row = ready(server)
        job = done(start_check(row=row, actor=Actor(user=make_user("operator"), name="operator")).job)
    assert job.state == State.SUCCEEDED, job.error
    seen = Verification.objects.get()
    assert seen.build
    assert seen.agreement_percent <= 0.2
    assert [name.rstrip("0123456789") for name, _, _ in seen.figures] == ["RPC", "host"]
    assert all(measured[:2] == ours[:2] for _, measured, ours in seen.figures)
    assert plan_checks(get_row(row.pk, seer()), preview_plan(row=get_row(row.pk, seer())).base).current == seen
