"""What a host task says: numbered batches, progress at most twice a second, one closing report whatever happens."""

from __future__ import annotations

import errno

import pytest

from gpus_app.core.errors import QuartermasterError
from quartermaster_site.jobs import host_tasks, marks, reporting
from quartermaster_site.jobs.host_tasks import Cancelled, run
from quartermaster_site.jobs.reporting import Reporter


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def sent():
    return []


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def report(sent, clock):
    return Reporter(7, "token", sender=sent.append, clock=clock)


def kinds(sent):
    return [event["kind"] for event in sent]


def test_progress_goes_out_twice_a_second(report, sent, clock):
    for step in range(100):
        clock.now = step / 10
        report.progress("Reading", step, 100)
    assert len(sent) == 20
    ticks = [event["data"]["tick"] for event in sent]
    assert ticks == sorted(set(ticks))


def test_a_new_phase_is_said_at_once(report, sent):
    report.progress("Listing", 1)
    report.progress("Reading", 0, 9)
    assert [event["data"]["phase"] for event in sent] == ["Listing", "Reading"]


def test_log_lines_travel_with_progress(report, sent):
    report.log("one")
    report.progress("Reading", 1)
    report.log("two")
    report.done({})
    assert sent[0]["data"]["log"] == ["one"]
    assert sent[-1]["data"]["log"] == ["two"]


def test_every_report_carries_job_and_token(report, sent):
    run(lambda report, inputs: report.batch({"rows": []}) or {"models": 1}, report, {})
    assert kinds(sent) == ["started", "batch", "done"]
    assert all((event["job"], event["token"]) == (7, "token") for event in sent)
    assert sent[1]["data"]["sequence"] == 1
    assert sent[2]["data"] == {"models": 1, "batches": 1, "warnings": 0, "log": []}


def fails(error):
    def work(report, inputs):
        raise error

    return work


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (QuartermasterError("The folder is gone."), "QuartermasterError", "The folder is gone."),
        (ZeroDivisionError("division by zero"), "ZeroDivisionError", "Unexpected: division by zero"),
    ],
)
def test_every_failure_is_reported(report, sent, error, kind, text):
    run(fails(error), report, {})
    assert kinds(sent) == ["started", "failed"]
    assert (sent[1]["data"]["error_kind"], sent[1]["data"]["error"]) == (kind, text)


def test_a_mark_stops_the_work_and_is_taken_away(report, sent):
    def work(report, inputs):
        marks.leave(7)
        assert report.is_cancelled()
        raise Cancelled({"models": 3})

    run(work, report, {})
    assert kinds(sent) == ["started", "cancelled"]
    assert sent[1]["data"]["models"] == 3
    assert not marks.is_left(7)


def test_a_mark_left_before_stops_it_before_it_begins(report, sent):
    marks.leave(7)
    run(fails(AssertionError("must not run")), report, {})
    assert kinds(sent) == ["cancelled"]
    assert not marks.is_left(7)


def test_old_marks_are_swept():
    import os

    marks.leave(1)
    path = marks._folder() / "1"
    os.utime(path, (0, 0))
    marks.leave(2)
    assert not path.exists()
    marks.clear(2)


def test_a_beat_goes_out_while_one_read_takes_long(sent, monkeypatch):
    import time

    monkeypatch.setattr("quartermaster_site.jobs.reporting.BEAT_SECONDS", 0.02)
    run(lambda report, inputs: time.sleep(0.1) or {}, Reporter(7, "t", sender=sent.append), {})
    assert kinds(sent).count("beat") >= 2
    count = len(sent)
    time.sleep(0.06)
    assert len(sent) == count


def test_a_broker_that_is_away_for_a_moment_costs_nothing(monkeypatch):
    """Progress is dropped and its lines travel later; a part of the result waits."""
    monkeypatch.setattr(reporting, "_PAUSE_SECONDS", 0.0)
    answers = iter([OSError("away"), OSError("away"), OSError("away"), None, None])
    got = []

    def sender(event):
        problem = next(answers)
        if problem:
            raise problem
        got.append(event)

    report = Reporter(7, "token", sender)
    report.log("a line")
    report.progress("Reading", 1)
    report.batch({"rows": []})
    report.done({})
    assert [event["kind"] for event in got] == ["batch", "done"]
    assert got[0]["data"]["sequence"] == 1
    assert got[1]["data"]["log"] == ["a line"]


def test_and_one_that_stays_away_ends_the_work(monkeypatch):
    monkeypatch.setattr(reporting, "_PAUSE_SECONDS", 0.0)
    clock = iter(range(0, 10_000, 100))

    def sender(event):
        raise OSError("away")

    with pytest.raises(OSError, match="away"):
        Reporter(7, "token", sender, clock=lambda: float(next(clock))).done({})


def test_a_full_disk_of_the_worker_fails_the_job_at_once(monkeypatch):
    """Its message is gone: the server would wait for it, and send it in vain again and again."""

    def full(job, token):
        raise OSError(errno.ENOSPC, "No space left on device")

    said = []
    monkeypatch.setattr(reporting, "send", lambda task, queue, event: said.append(event))
    monkeypatch.setattr(marks, "claim", full)
    host_tasks.host_task("tests.full")(lambda report, inputs: pytest.fail("it ran"))(7, "one", {})
    (event,) = said
    assert event["kind"] == "failed"
    assert event["data"]["error"] == "The worker cannot write to its data folder: No space left on device."
    assert event["data"]["advice"] == "Make room on that machine, then run it again."


def test_a_message_that_comes_twice_does_its_work_once(monkeypatch, caplog):
    runs = []
    monkeypatch.setattr(reporting, "send", lambda *args, **more: None)
    task = host_tasks.host_task("tests.twice")(lambda report, inputs: runs.append(inputs) or {})
    for token in ("one", "one", "two"):
        task(7, token, {})
    assert len(runs) == 2
    assert "came a second time" in caplog.text
