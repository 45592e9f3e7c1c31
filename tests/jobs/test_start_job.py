"""Starting work: what is sent, what is refused, what is the same work."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from quartermaster_site.errors import Unavailable
from quartermaster_site.jobs.models import Job, State
from quartermaster_site.jobs.services import send_again, start_job


@pytest.fixture
def start(host, actor, django_capture_on_commit_callbacks, sent):
    def run(**arguments):
        with django_capture_on_commit_callbacks(execute=True):
            return start_job(**{"kind": "scan", "host": host, "actor": actor, **arguments})

    return run


def test_sends_the_task_to_the_hosts_queue(start, sent, actor):
    started = start(inputs={"roots": []})
    assert started.created
    ((task, queue, arguments),) = sent
    assert (task, queue) == ("models_app.host_tasks.scan_folders", "host.local")
    assert arguments == {"job": started.job.pk, "token": started.job.token, "inputs": {"roots": []}}
    assert started.job.started_by == actor.user
    assert started.job.state == State.QUEUED


def test_the_same_work_is_returned_not_repeated(start, sent):
    first = start()
    second = start()
    assert (second.created, second.job) == (False, first.job)
    assert len(sent) == 1


def test_one_unfinished_scan_a_host_even_for_another_object(start, sent):
    first = start()
    second = start(subject=("root", "7", "/srv"))
    assert second.job == first.job
    assert Job.objects.count() == 1


def test_hosts_scan_side_by_side(start, host):
    from gpus_app.models import Host

    other = Host.objects.create(slug="other", name="Other")
    assert start().created
    assert start(host=other).created


def test_work_for_an_offline_host_waits(start, host):
    host.last_seen_at = timezone.now() - timedelta(minutes=5)
    host.save()
    job = start().job
    assert job.state == State.WAITING
    assert "offline" in job.state_reason


@pytest.mark.parametrize(("kind", "times"), [("scan", 1), ("publish", 0), ("unload_model", 0)])
def test_what_may_not_be_done_twice_is_not_sent_to_a_host_that_is_away(start, host, sent, kind, times):
    """It can be cancelled for certain meanwhile: in the queue it would be taken up before the word that it is not
    wanted any more."""
    host.last_seen_at = timezone.now() - timedelta(minutes=5)
    host.save()
    start(kind=kind, inputs={"text": ""})
    assert len(sent) == times


def test_a_broken_broker_is_said_before_anything_is_stored(start, monkeypatch):
    monkeypatch.setattr("quartermaster_site.jobs.connection.broker_problem", lambda: "The queue folder is gone.")
    with pytest.raises(Unavailable, match="previewing still work"):
        start()
    assert not Job.objects.exists()


def test_work_of_the_server_waits_for_the_broker(start, sent, monkeypatch):
    """Nobody would ask for a plan again once the broker is back."""
    with monkeypatch.context() as away:
        away.setattr("quartermaster_site.jobs.connection.broker_problem", lambda: "The queue folder is gone.")
        job = Job.objects.get(pk=start(kind="plan_host").job.pk)
    assert (job.state, sent) == (State.QUEUED, [])
    assert job.state_reason == "The queue folder is gone. It is sent as soon as there is a queue."
    send_again(job)
    job.refresh_from_db()
    assert ([task for task, *_ in sent], job.state_reason) == (["models_app.tasks.plan_host"], "")


def test_a_message_that_cannot_be_sent_is_sent_later(start, monkeypatch):
    def refuse(*args, **kwargs):
        raise OSError("disk full")

    monkeypatch.setattr("quartermaster_site.jobs.dispatch.send", refuse)
    job = Job.objects.get(pk=start().job.pk)
    assert job.state == State.QUEUED
    assert job.state_reason == "The queue did not take it (disk full). It is sent again by itself."
