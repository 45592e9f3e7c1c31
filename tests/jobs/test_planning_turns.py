"""Planning of many hosts leaves a slot of the control worker for what they report."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from models_app import tasks
from quartermaster_site.jobs.models import Job, State


@pytest.fixture
def job(make_job, monkeypatch):
    monkeypatch.setattr(tasks, "build_candidate", lambda job, report: {"models": 1})
    return make_job(kind="plan_host")


def test_while_one_host_is_planned_another_waits_its_turn(job, monkeypatch):
    sent = []
    monkeypatch.setattr(tasks.plan_host, "apply_async", lambda **message: sent.append(message))
    with ThreadPoolExecutor(1) as other:
        other.submit(tasks._PLANNING.acquire).result()
        tasks.plan_host.apply(kwargs={"job": job.pk}, throw=True)
        assert sent == [{"kwargs": {"job": job.pk}, "queue": "control", "countdown": 2}]
        job.refresh_from_db()
        assert job.state == State.QUEUED
        other.submit(tasks._PLANNING.release).result()
    tasks.plan_host.apply(kwargs={"job": job.pk}, throw=True)
    job.refresh_from_db()
    assert job.state == State.SUCCEEDED


def test_a_turn_ends_with_a_plan_that_fails(job, monkeypatch):
    def broken(job, report):
        raise KeyError("x")

    monkeypatch.setattr(tasks, "build_candidate", broken)
    tasks.plan_host.apply(kwargs={"job": job.pk}, throw=True)
    assert Job.objects.get().state == State.FAILED
    taken = threading.Thread(target=lambda: tasks._PLANNING.acquire() and tasks._PLANNING.release())
    taken.start()
    taken.join(2)
    assert not taken.is_alive()
