"""Reports of a host: believed only with the token, each counted once, in any order."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from quartermaster_site.jobs.models import State
from quartermaster_site.jobs.receiving import Receiver, fail_unfinished, receive


class Recorder(Receiver):
    batches: list
    finished: list

    def batch(self, job, data):
        type(self).batches.append(data["rows"])

    def finish(self, job, data, *, partial):
        type(self).finished.append(partial)
        return {"models": 3}


@pytest.fixture(autouse=True)
def recorder(monkeypatch):
    Recorder.batches, Recorder.finished = [], []
    monkeypatch.setattr("quartermaster_site.jobs.receiving.receiver_of", lambda job: Recorder())
    return Recorder


def report(job, kind, token="secret-token", **data):
    receive({"job": job.pk, "token": token, "kind": kind, "data": data})
    job.refresh_from_db()


def test_the_whole_way(make_job, recorder):
    job = make_job()
    report(job, "started")
    assert job.state == State.RUNNING
    assert job.started_at
    report(job, "progress", tick=1, phase="Reading headers", done=3, total=9, unit="files", current="/m/a.gguf")
    assert (job.phase, job.done, job.total, job.current) == ("Reading headers", 3, 9, "/m/a.gguf")
    report(job, "batch", sequence=1, rows=[1, 2])
    report(job, "done", batches=1, warnings=0)
    assert job.state == State.SUCCEEDED
    assert job.result == {"models": 3}
    assert recorder.batches == [[1, 2]]


def test_a_closing_report_waits_for_late_batches(make_job, recorder):
    job = make_job()
    report(job, "batch", sequence=2, rows=[2])
    report(job, "done", batches=2, warnings=1)
    assert job.state == State.RUNNING
    report(job, "batch", sequence=1, rows=[1])
    assert job.state == State.WARNED
    assert recorder.finished == [False]


def test_a_batch_that_comes_twice_counts_once(make_job, recorder):
    job = make_job()
    report(job, "batch", sequence=1, rows=[1])
    report(job, "batch", sequence=1, rows=[1])
    assert recorder.batches == [[1]]


def test_an_older_progress_report_is_ignored(make_job):
    job = make_job()
    report(job, "progress", tick=5, phase="Listing", done=50)
    report(job, "progress", tick=4, phase="Listing", done=40)
    assert job.done == 50


@pytest.mark.parametrize(
    "event",
    [
        None,
        [],
        {"job": "1"},
        {"job": 10**30, "token": "x", "kind": "done", "data": {}},
        {"job": 999_999, "token": "x", "kind": "done", "data": {}},
        {"job": True, "token": "x", "kind": "done", "data": {}},
    ],
)
def test_nonsense_changes_nothing(db, event):
    receive(event)


def test_a_wrong_token_changes_nothing(make_job):
    job = make_job()
    report(job, "done", token="guess", batches=0)
    assert job.state == State.QUEUED


def test_a_finished_job_takes_no_more_reports(make_job, recorder):
    job = make_job(state=State.CANCELLED)
    report(job, "batch", sequence=1, rows=[1])
    assert not recorder.batches


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("progress", {"tick": -1}),
        ("progress", {"tick": 1, "done": "many"}),
        ("batch", {"sequence": 0, "rows": []}),
        ("batch", {"sequence": 10**9, "rows": []}),
        ("done", {"batches": "two"}),
        ("nonsense", {}),
        ("progress", {"tick": 1, "log": ["x"] * 1000}),
    ],
)
def test_a_wrong_report_of_a_right_job_fails_it(make_job, kind, data):
    job = make_job()
    report(job, kind, **data)
    assert job.state == State.FAILED
    assert "refused" in job.error


def test_a_failure_carries_its_class_and_advice(make_job):
    job = make_job()
    report(job, "failed", batches=0, error_kind="ForeignFile", error="not ours", advice="adopt it")
    assert (job.state, job.error_kind, job.error, job.advice) == (State.FAILED, "ForeignFile", "not ours", "adopt it")


def test_cancelled_results_are_partial(make_job, recorder):
    job = make_job(state=State.CANCELLING)
    report(job, "cancelled", batches=0)
    assert job.state == State.CANCELLED
    assert recorder.finished == [True]


def test_the_log_is_bounded_and_masked(make_job):
    job = make_job()
    for tick in range(1, 8):
        report(job, "progress", tick=tick, phase="x", log=[f"line {tick} --api-key sk-123456789" for _ in range(100)])
    lines = job.log.splitlines()
    assert len(lines) == 500
    assert len(job.log.encode()) <= 64 * 1024
    assert "123456789" not in job.log


def test_remaining_time_needs_three_samples(make_job, monkeypatch):
    from datetime import timedelta

    from django.utils import timezone

    job = make_job()
    start = timezone.now()
    for second in range(5):
        monkeypatch.setattr("django.utils.timezone.now", lambda second=second: start + timedelta(seconds=second))
        report(job, "progress", tick=second + 1, phase="x", done=10 * second, total=100)
        assert (job.seconds_left is None) == (second < 3)
    assert job.rate == pytest.approx(10)
    assert job.seconds_left == 6
    monkeypatch.setattr("django.utils.timezone.now", lambda: start + timedelta(seconds=25))
    assert job.seconds_left is None, "of a job that says nothing any more nobody knows"


def test_a_receiver_that_breaks_fails_the_job(make_job, monkeypatch):
    def breaks(self, job, data):
        raise KeyError("surprise")

    monkeypatch.setattr(Recorder, "batch", breaks)
    job = make_job()
    report(job, "batch", sequence=1, rows=[])
    assert job.state == State.FAILED
    assert "surprise" not in job.error


def test_a_token_in_any_script_is_only_wrong(make_job):
    job = make_job()
    report(job, "started", token="schlüssel")
    assert job.state == State.QUEUED


def test_a_report_does_not_write_the_inputs_again(make_job):
    """They name every known file: a megabyte for ten thousand models, with every report."""
    job = make_job()
    with CaptureQueriesContext(connection) as queries:
        report(job, "beat")
    updates = [query["sql"] for query in queries if query["sql"].startswith("UPDATE")]
    assert updates
    assert not any('"inputs"' in sql for sql in updates)


def test_a_job_may_go_with_its_host_between_two_looks_at_it(db, monkeypatch):
    monkeypatch.setattr("quartermaster_site.jobs.receiving._belongs", lambda report: True)
    receive({"job": 77, "token": "t", "kind": "beat", "data": {}})
    fail_unfinished(77, "Gone", "gone")
