from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from quartermaster_site.jobs import receiving
from quartermaster_site.jobs.models import Job, State
from quartermaster_site.jobs.sweeping import lose_all, note_round, sweep


def ago(**span):
    return timezone.now() - timedelta(**span)


def test_a_silent_job_is_lost_and_starts_again(make_job, sent, django_capture_on_commit_callbacks):
    job = make_job(state=State.RUNNING, heartbeat_at=ago(seconds=100))
    with django_capture_on_commit_callbacks(execute=True):
        sweep()
    job.refresh_from_db()
    assert job.state == State.LOST
    again = job.retries.get()
    assert again.automatic
    assert again.state == State.QUEUED
    assert sent[-1][2]["job"] == again.pk


def test_a_job_that_reports_stays(make_job, sent):
    job = make_job(state=State.RUNNING, heartbeat_at=ago(seconds=60))
    sweep()
    job.refresh_from_db()
    assert job.state == State.RUNNING


def test_it_starts_again_only_once(make_job, sent):
    make_job(state=State.RUNNING, heartbeat_at=ago(seconds=100), automatic=True)
    sweep()
    assert Job.objects.get().state == State.LOST


@pytest.mark.parametrize("fields", [{"kind": "publish"}, {"state": State.CANCELLING}])
def test_not_everything_starts_again(make_job, sent, fields):
    make_job(**{"state": State.RUNNING, "heartbeat_at": ago(seconds=100), **fields})
    sweep()
    assert Job.objects.get().state == State.LOST


def test_queued_work_waits_while_its_host_is_away(make_job, host, sent):
    job = make_job()
    host.last_seen_at = ago(minutes=10)
    host.save()
    sweep()
    job.refresh_from_db()
    assert job.state == State.WAITING
    host.last_seen_at = timezone.now()
    host.save()
    sweep()
    job.refresh_from_db()
    assert job.state == State.QUEUED


@pytest.mark.parametrize(("kind", "times"), [("scan", 0), ("publish", 1)])
def test_what_was_not_sent_to_a_host_that_was_away_is_sent_when_it_is_back(make_job, sent, kind, times):
    job = make_job(kind=kind, state=State.WAITING, state_reason="local is offline", inputs={"text": ""})
    sweep()
    job.refresh_from_db()
    assert (job.state, job.state_reason, len(sent)) == (State.QUEUED, "", times)


def test_work_that_nobody_takes_is_lost(make_job, sent):
    job = make_job(queued_at=ago(minutes=11))
    sweep()
    job.refresh_from_db()
    assert job.state == State.LOST
    assert job.retries.count() == 1


def test_a_busy_host_lets_work_queue(make_job, sent):
    make_job(state=State.RUNNING, kind="browse", heartbeat_at=timezone.now())
    job = make_job(queued_at=ago(minutes=11))
    sweep()
    job.refresh_from_db()
    assert job.state == State.QUEUED


def test_a_message_that_the_queue_did_not_take_is_sent_again_whatever_else_lies_there(make_job, sent, monkeypatch):
    monkeypatch.setattr("quartermaster_site.jobs.connection.is_empty", lambda queue: False)
    job = make_job(kind="browse", queued_at=ago(seconds=40), state_reason="The queue did not take it (disk full).")
    make_job(queued_at=ago(seconds=40))
    sweep()
    assert [arguments["job"] for *_, arguments in sent] == [job.pk]


def test_old_jobs_are_forgotten_failed_ones_later(make_job, sent):
    make_job(state=State.SUCCEEDED, finished_at=ago(days=31))
    kept = make_job(state=State.FAILED, finished_at=ago(days=31))
    make_job(state=State.LOST, finished_at=ago(days=91))
    sweep()
    assert list(Job.objects.all()) == [kept]


def test_after_a_stop_running_jobs_are_lost_at_once(make_job, host, sent):
    make_job(state=State.RUNNING, heartbeat_at=timezone.now())
    lose_all(host)
    assert Job.objects.filter(state=State.LOST).count() == 1
    assert Job.objects.filter(state=State.QUEUED, automatic=True).count() == 1


def test_a_lost_job_is_asked_to_stop(make_job, sent, django_capture_on_commit_callbacks):
    """Its worker may only have been slow: two runs of one scan must not go on side by side."""
    job = make_job(state=State.RUNNING, heartbeat_at=ago(seconds=100))
    with django_capture_on_commit_callbacks(execute=True):
        sweep()
    assert [(task.rpartition(".")[2], arguments["job"]) for task, _, arguments in sent] == [
        ("leave_cancel_mark", job.pk),
        ("scan_folders", job.retries.get().pk),
    ]


def test_a_sweep_without_anything_to_do_writes_nothing(make_job):
    """It must not wait for the database's write lock."""
    make_job(state=State.RUNNING, heartbeat_at=ago(seconds=10))
    make_job(state=State.SUCCEEDED, kind="browse", finished_at=ago(days=2))
    with CaptureQueriesContext(connection) as captured:
        sweep()
    assert {query["sql"].split()[0] for query in captured} == {"SELECT"}


class TestABrokerThatHasLostItsMessages:
    @pytest.fixture(autouse=True)
    def _empty(self, monkeypatch):
        monkeypatch.setattr("quartermaster_site.jobs.connection.is_empty", lambda queue: True)

    def test_what_just_began_to_wait_is_left_alone(self, make_job, sent):
        make_job(queued_at=ago(seconds=20))
        sweep()
        assert sent == []

    def test_it_is_sent_again(self, make_job, sent):
        job = make_job(kind="publish", queued_at=ago(seconds=40), inputs={"text": ""})
        sweep()
        job.refresh_from_db()
        assert job.state == State.QUEUED
        assert [(task, arguments["job"], arguments["token"]) for task, _, arguments in sent] == [
            ("models_app.host_tasks.write_config", job.pk, "secret-token")
        ]

    def test_it_is_lost_when_that_does_not_help(self, make_job, sent):
        job = make_job(queued_at=ago(seconds=130))
        sweep()
        job.refresh_from_db()
        assert (job.state, job.retries.get().state) == (State.LOST, State.QUEUED)

    def test_a_busy_host_is_sent_it_and_may_take_its_time(self, make_job, sent):
        make_job(state=State.RUNNING, kind="browse", heartbeat_at=timezone.now())
        job = make_job(queued_at=ago(seconds=130))
        sweep()
        assert [arguments["job"] for _, _, arguments in sent] == [job.pk]
        assert Job.objects.get(pk=job.pk).state == State.QUEUED

    def test_nor_does_what_has_just_ended(self, make_job, sent):
        make_job(state=State.SUCCEEDED, kind="browse", heartbeat_at=timezone.now(), finished_at=timezone.now())
        job = make_job(queued_at=ago(seconds=130))
        sweep()
        assert Job.objects.get(pk=job.pk).state == State.LOST

    def test_planning_does_not_keep_its_host_busy(self, make_job, sent):
        make_job(state=State.RUNNING, kind="plan_host", heartbeat_at=timezone.now())
        job = make_job(queued_at=ago(seconds=130))
        sweep()
        assert Job.objects.get(pk=job.pk).state == State.LOST

    def test_time_in_which_nobody_looked_does_not_count(self, make_job, sent):
        """The broker was away for minutes: work is sent again before it may be lost, be it repeatable or not."""
        note_round(ago(minutes=5))
        job = make_job(kind="publish", queued_at=ago(minutes=6), inputs={"text": ""})
        sweep()
        job.refresh_from_db()
        assert (job.state, len(sent)) == (State.QUEUED, 1)
        note_round(timezone.now())
        Job.objects.update(queued_at=ago(seconds=130))
        sweep()
        job.refresh_from_db()
        assert job.state == State.LOST

    def test_nor_one_that_is_away(self, make_job, host, sent):
        make_job(state=State.WAITING, state_reason="host local is offline", queued_at=ago(minutes=5))
        type(host).objects.update(last_seen_at=ago(minutes=5))
        sweep()
        assert sent == []


class TestWorkOfTheServer:
    """Its queue is never empty, with all reports in it."""

    @pytest.mark.parametrize(("seconds", "times"), [(20, 0), (40, 1), (500, 1)])
    def test_it_is_sent_again_whatever_its_queue_holds(self, make_job, sent, seconds, times):
        job = make_job(kind="plan_host", queued_at=ago(seconds=seconds))
        sweep()
        assert sent == [("models_app.tasks.plan_host", "control", {"job": job.pk})] * times
        assert Job.objects.get().state == State.QUEUED

    def test_it_is_lost_when_that_does_not_help(self, make_job, sent):
        job = make_job(kind="plan_host", queued_at=ago(minutes=11))
        sweep()
        job.refresh_from_db()
        assert (job.state, job.retries.get().state) == (State.LOST, State.QUEUED)

    @pytest.mark.parametrize("state", [State.RUNNING, State.SUCCEEDED])
    def test_a_long_row_of_plans_is_not_lost(self, make_job, sent, state):
        """Nor in the moment between two of them."""
        make_job(kind="plan_host", host=None, state=state, heartbeat_at=timezone.now())
        job = make_job(kind="plan_host", queued_at=ago(minutes=11))
        sweep()
        job.refresh_from_db()
        assert job.state == State.QUEUED

    def test_what_waited_while_the_server_was_off_is_not_lost_unsent(self, make_job, sent):
        note_round(ago(hours=1))
        job = make_job(kind="import_parse", queued_at=ago(minutes=59))
        note_round(timezone.now())  # as `up` does at its start
        sweep()
        job.refresh_from_db()
        assert (job.state, len(sent)) == (State.QUEUED, 1)

    def test_what_waited_for_the_broker_is_not_lost_unsent(self, make_job, sent):
        note_round(ago(minutes=20))
        job = make_job(kind="import_parse", queued_at=ago(minutes=19), state_reason="Redis does not answer.")
        sweep()
        job.refresh_from_db()
        assert (job.state, job.state_reason, len(sent)) == (State.QUEUED, "", 1)


def test_a_job_that_cannot_be_looked_at_holds_no_other_up(make_job, sent, monkeypatch, caplog):
    def broken(self, job):
        raise ValueError("nonsense in its row")

    silent = make_job(kind="browse", state=State.RUNNING, heartbeat_at=ago(seconds=100))
    monkeypatch.setattr(type(receiving.receiver_of(silent)), "failed", broken)
    plan = make_job(kind="plan_host", queued_at=ago(seconds=40))
    sweep()
    assert [arguments["job"] for *_, arguments in sent] == [plan.pk]
    assert Job.objects.get(pk=silent.pk).state == State.RUNNING, "whole or not at all"
    assert "nonsense in its row" in caplog.text
