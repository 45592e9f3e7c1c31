from __future__ import annotations

import pytest

from quartermaster_site.access.audit import Actor
from quartermaster_site.access.models import AuditEntry
from quartermaster_site.errors import NotAllowed, Refused, Unavailable
from quartermaster_site.jobs.models import State
from quartermaster_site.jobs.services import cancel_job, retry_job


@pytest.fixture
def commit(django_capture_on_commit_callbacks):
    return lambda: django_capture_on_commit_callbacks(execute=True)


def test_a_running_job_is_asked_to_stop(make_job, actor, sent, commit):
    job = make_job(state=State.RUNNING)
    with commit():
        job = cancel_job(job=job, actor=actor)
    assert job.state == State.CANCELLING
    assert sent == [("quartermaster_site.jobs.host_tasks.leave_cancel_mark", "host.local", {"job": job.pk})]
    assert AuditEntry.objects.get().action == "job.cancel"


def test_a_queued_job_ends_at_once(make_job, actor, sent, commit):
    with commit():
        job = cancel_job(job=make_job(), actor=actor)
    assert job.state == State.CANCELLED
    assert job.finished_at


def test_a_finished_job_stays_as_it_is(make_job, actor, sent, commit):
    with commit():
        job = cancel_job(job=make_job(state=State.SUCCEEDED), actor=actor)
    assert job.state == State.SUCCEEDED
    assert not sent


@pytest.mark.parametrize(
    ("role", "own", "allowed"),
    [
        ("viewer", True, False),
        ("operator", True, True),
        ("operator", False, False),
        ("editor", True, True),
        ("editor", False, False),
        ("admin", False, True),
    ],
)
def test_who_may_cancel(make_job, make_user, sent, role, own, allowed):
    user = make_user(role, "somebody")
    job = make_job(state=State.RUNNING, started_by=user if own else None)
    if allowed:
        cancel_job(job=job, actor=Actor(user=user, name="somebody"))
    else:
        with pytest.raises(NotAllowed):
            cancel_job(job=job, actor=Actor(user=user, name="somebody"))


def test_a_retry_is_a_new_job_with_the_same_inputs(make_job, actor, sent, commit):
    job = make_job(kind="browse", state=State.FAILED, inputs={"path": "/m"})
    with commit():
        again = retry_job(job=job, actor=actor)
    assert again.created
    assert again.job.retry_of == job
    assert again.job.inputs == job.inputs
    assert again.job.token != job.token
    assert sent[0][2]["job"] == again.job.pk


def test_an_unfinished_job_is_not_repeated(make_job, actor):
    with pytest.raises(Refused, match="not over yet"):
        retry_job(job=make_job(), actor=actor)


def test_a_publish_is_never_repeated_blindly(make_job, actor):
    with pytest.raises(Refused, match="not repeated"):
        retry_job(job=make_job(kind="publish", state=State.LOST), actor=actor)


def broken(*args, **kwargs):
    raise OSError("no space left on device")


def test_cancelling_a_running_job_needs_the_queue(make_job, actor, monkeypatch):
    """Its host could not be told: the job goes on, and the page says why."""
    job = make_job(state=State.RUNNING)
    monkeypatch.setattr("quartermaster_site.jobs.connection.broker_problem", lambda: "The queue is gone.")
    with pytest.raises(Unavailable, match="The queue is gone"):
        cancel_job(job=job, actor=actor)
    job.refresh_from_db()
    assert job.state == State.RUNNING


def test_cancelling_queued_work_does_not_need_the_queue(make_job, actor, monkeypatch, commit):
    monkeypatch.setattr("quartermaster_site.jobs.connection.broker_problem", lambda: "The queue is gone.")
    monkeypatch.setattr("quartermaster_site.jobs.dispatch.send", broken)
    with commit():
        assert cancel_job(job=make_job(), actor=actor).state == State.CANCELLED
