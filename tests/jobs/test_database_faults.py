"""A database that is away for a moment, or whose disk is full: what was reported and what was planned comes anyway."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import OperationalError, connection
from django.utils import timezone

from gpus_app.services import request_plan
from models_app.models import HeaderFacts, Revision, Root
from models_app.services import start_scan
from models_app.tasks import plan_host
from quartermaster_site.jobs import control, receiving
from quartermaster_site.jobs import services as job_services
from quartermaster_site.jobs.models import Job, State
from quartermaster_site.jobs.sweeping import note_round, sweep
from quartermaster_site.jobs.tasks import job_event
from tests.tiny_models import tiny_gguf

AWAY = OperationalError("server closed the connection unexpectedly")


def failing_once(monkeypatch, module, name, then=lambda: None, error=AWAY):
    """The first call of a function of ours raises; `then` is what an operator does about it. Returns what was seen."""
    real, calls = getattr(module, name), []

    def called(*args, **kwargs):
        calls.append(args)
        if len(calls) == 1:
            try:
                raise error
            finally:
                then()
        return real(*args, **kwargs)

    monkeypatch.setattr(module, name, called)
    return calls


def test_a_report_waits_for_the_database(make_job, monkeypatch):
    job = make_job(kind="probe_devices")
    calls = failing_once(monkeypatch, receiving, "_apply")
    failed = {"error_kind": "X", "error": "no driver"}
    job_event.apply(kwargs={"event": {"job": job.pk, "token": job.token, "kind": "failed", "data": failed}})
    job.refresh_from_db()
    assert len(calls) == 2
    assert (job.state, job.error) == (State.FAILED, "no driver")


@pytest.mark.parametrize(
    ("module", "name"),
    [(job_services, "begin"), (control, "_finish")],
    ids=["before it is taken up", "after the work"],
)
def test_planning_waits_for_the_database(
    host, actor, tmp_path, monkeypatch, django_capture_on_commit_callbacks, module, name
):
    tiny_gguf(tmp_path / "alpha-1b-Q4_0.gguf", name="Alpha")
    Root.objects.create(host=host, path=str(tmp_path))
    with django_capture_on_commit_callbacks(execute=True):
        start_scan(host=host, actor=actor)
    Revision.objects.all().delete()
    calls = failing_once(monkeypatch, module, name)
    job = request_plan(host=host, actor=actor).job
    plan_host.apply(kwargs={"job": job.pk})
    job.refresh_from_db()
    assert len(calls) == 2
    assert job.state == State.SUCCEEDED, job.error
    assert Revision.objects.filter(host=host).exists()


def test_a_plan_that_the_database_never_takes_is_given_up(make_job, monkeypatch):
    """An error that stays would have it planned again and again for ever, with nobody told."""
    monkeypatch.setattr("quartermaster_site.jobs.dispatch.send", lambda *args, **kwargs: None)
    job = make_job(kind="plan_host")

    def work(row, report):
        raise OperationalError("too many SQL variables")

    with pytest.raises(OperationalError):
        control.run(job.pk, work)
    job.refresh_from_db()
    reason = "The database did not take it (too many SQL variables). It is tried again by itself."
    assert (job.state, job.state_reason) == (State.QUEUED, reason)

    def look(minutes):
        Job.objects.filter(pk=job.pk).update(started_at=timezone.now() - timedelta(minutes=minutes))
        sweep()
        job.refresh_from_db()
        return job.state, job.error

    note_round(timezone.now() - timedelta(minutes=11))
    assert look(11) == (State.QUEUED, ""), "the database itself was away"
    note_round(timezone.now())
    assert look(9) == (State.QUEUED, "")
    assert look(11) == (State.LOST, f"{reason} That went on for too long.")


def test_work_that_may_not_come_twice_fails(make_job):
    job = make_job(kind="import_apply")

    def work(row, report):
        raise AWAY

    control.run(job.pk, work)
    job.refresh_from_db()
    assert job.state == State.FAILED


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(connection.vendor != "sqlite", reason="its own limit of pages is what makes the disk full")
def test_a_full_disk_keeps_results_waiting_and_nothing_half_stored(make_job, monkeypatch):
    """The limit is SQLite's own: the error is the one that a full disk gives."""
    job = make_job()
    tries = []
    real = receiving.receive

    def limit(pages):
        with connection.cursor() as cursor:
            cursor.execute(f"PRAGMA max_page_count = {pages}")

    def receive(event):
        tries.append(HeaderFacts.objects.count())
        try:
            real(event)
        finally:
            limit(1 << 30)

    monkeypatch.setattr(receiving, "receive", receive)
    headers = [
        {
            "path": f"/m/{number}.gguf",
            "size_bytes": 1,
            "mtime_ns": 1,
            "error": {"code": "truncated", "text": "x" * 500},
        }
        for number in range(150)
    ]
    batch = {"sequence": 1, "headers": headers}
    with connection.cursor() as cursor:
        cursor.execute("VACUUM")  # earlier tests leave pages that would be used again
    limit(1)  # as many as there are
    job_event.apply(kwargs={"event": {"job": job.pk, "token": job.token, "kind": "batch", "data": batch}})
    assert tries == [0, 0]
    assert HeaderFacts.objects.count() == 150
    assert Job.objects.get().reports.count() == 1
