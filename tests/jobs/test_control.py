"""Work on the control queue: its row says what became of it."""

from __future__ import annotations

import pytest

from gpus_app.core.errors import QuartermasterError
from quartermaster_site.jobs import control
from quartermaster_site.jobs.models import Job, State


@pytest.fixture
def job(make_job):
    return make_job(kind="plan_host")


def after(job, work):
    control.run(job.pk, work)
    return Job.objects.get(pk=job.pk)


def test_the_result_is_kept(job):
    done = after(job, lambda row, report: {"models": 3})
    assert (done.state, done.result) == (State.SUCCEEDED, {"models": 3})
    assert done.started_at
    assert done.finished_at


def test_warnings_are_counted(job):
    assert after(job, lambda row, report: {"warnings": 2}).state == State.WARNED


def test_progress_is_seen_meanwhile(job):
    def work(row, report):
        report.progress("Planning", 3, 9, unit="models", current="alpha")
        shown = Job.objects.get(pk=job.pk)
        assert (shown.state, shown.phase, shown.done, shown.total) == (State.RUNNING, "Planning", 3, 9)
        return {}

    assert after(job, work).state == State.SUCCEEDED


def test_a_cancel_is_noticed_at_the_next_step(job):
    def work(row, report):
        Job.objects.filter(pk=job.pk).update(state=State.CANCELLING)
        report.progress("Planning", 1)
        raise AssertionError("went on")

    assert after(job, work).state == State.CANCELLED


def test_a_job_that_was_given_up_goes_on_no_longer(job):
    def work(row, report):
        Job.objects.filter(pk=job.pk).update(state=State.LOST)
        report.progress("Planning", 1)
        raise AssertionError("went on")

    assert after(job, work).state == State.LOST


@pytest.mark.parametrize(
    ("error", "text"),
    [(QuartermasterError("No budget."), "No budget."), (KeyError("x"), "Unexpected: 'x'")],
)
def test_failures_are_on_the_row(job, error, text):
    def work(row, report):
        raise error

    failed = after(job, work)
    assert (failed.state, failed.error) == (State.FAILED, text)


@pytest.mark.parametrize("state", [State.RUNNING, State.CANCELLED, State.SUCCEEDED])
def test_a_task_that_comes_twice_works_once(job, state):
    Job.objects.filter(pk=job.pk).update(state=state)
    control.run(job.pk, lambda row, report: pytest.fail("worked"))


def test_a_job_that_is_gone_is_no_error(db):
    control.run(999, lambda row, report: pytest.fail("worked"))


@pytest.mark.parametrize("reports", [False, True])
def test_a_job_that_goes_with_its_host_meanwhile_is_no_error(job, caplog, reports):
    """Whoever comes next in the row of plans is sent for all the same."""

    def work(row, report):
        Job.objects.all().delete()
        if reports:
            report.progress("Planning", 1)
        return {}

    control.run(job.pk, work)
    assert not caplog.records
