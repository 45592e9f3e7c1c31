"""Planning of many hosts leaves a slot of the control worker for what they report."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from celery.exceptions import Retry
from django.db import OperationalError
from django.utils import timezone

from models_app import tasks
from quartermaster_site.jobs.models import Job, State


@pytest.fixture
def job(make_job, monkeypatch, sent):
    monkeypatch.setattr(tasks, "build_candidate", lambda job, report: {"models": 1})
    return make_job(kind="plan_host")


def test_while_one_host_is_planned_another_waits_its_turn(job, make_job, sent):
    """Its message comes to nothing; whoever ends sends for the one that has waited longest."""
    with ThreadPoolExecutor(1) as other:
        other.submit(tasks._PLANNING.acquire).result()
        tasks.plan_host.apply(kwargs={"job": job.pk}, throw=True)
        job.refresh_from_db()
        assert (job.state, sent) == (State.QUEUED, [])
        other.submit(tasks._PLANNING.release).result()
    make_job(kind="plan_host", host=None)
    first = make_job(kind="plan_host", host=None, queued_at=timezone.now() - timedelta(minutes=1))
    tasks.plan_host.apply(kwargs={"job": first.pk}, throw=True)
    assert Job.objects.get(pk=first.pk).state == State.SUCCEEDED
    assert sent == [("models_app.tasks.plan_host", "control", {"job": job.pk})]


def test_one_that_was_tried_before_comes_after_those_that_were_not(job, make_job, sent):
    now = timezone.now()
    make_job(kind="plan_host", host=None, queued_at=now - timedelta(minutes=5), heartbeat_at=now)
    fresh = make_job(kind="plan_host", host=None, queued_at=now - timedelta(minutes=1))
    tasks.plan_host.apply(kwargs={"job": job.pk}, throw=True)
    assert [arguments for *_, arguments in sent] == [{"job": fresh.pk}]


def test_the_next_turn_is_not_given_while_the_database_is_away(job, make_job, sent, monkeypatch):
    """Its task comes again by itself, at growing pauses: sending it at once would never end."""

    def away(job, report):
        raise OperationalError("locked")

    monkeypatch.setattr(tasks, "build_candidate", away)
    with pytest.raises((OperationalError, Retry)):
        tasks.plan_host.apply(kwargs={"job": job.pk}, throw=True, retries=0)
    assert (Job.objects.get().state, sent) == (State.QUEUED, [])


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
