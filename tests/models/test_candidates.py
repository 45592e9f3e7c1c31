"""Candidates: numbered without gaps, made only when something changed, the same bytes for the same inputs."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from gpus_app.selectors import get_host
from gpus_app.services import request_plan, save_memory_settings
from models_app.core.export.stamp import read_stamp
from models_app.models import Override, Revision, Row, StoredPlan
from models_app.services import preview_plan
from quartermaster_site.access.audit import Actor
from quartermaster_site.jobs.models import Job, State
from quartermaster_site.jobs.services import start_job


@pytest.fixture
def plan(host, django_capture_on_commit_callbacks):
    def run():
        with django_capture_on_commit_callbacks(execute=True):
            started = request_plan(host=host, actor=Actor())
        job = Job.objects.get(pk=started.job.pk)
        assert job.state == State.SUCCEEDED, job.error
        return job

    return run


def test_the_text_of_a_scanned_folder(scanned):
    revision = Revision.objects.get()
    assert (revision.number, revision.state) == (1, "validated")
    stamp = read_stamp(revision.text)
    assert (stamp.host, stamp.revision, stamp.intact) == ("local", 1, True)
    assert [entry["id"] for entry in revision.summary["entries"]] == ["alpha-1b-q4_0", "alpha-1b-q8_0", "beta-2b-q4_0"]
    assert '"alpha-1b-q4_0":' in revision.text


def test_nothing_changed_nothing_made(scanned, plan):
    job = plan()
    assert job.result["created"] is False
    assert Revision.objects.count() == 1


def test_a_setting_that_matters_makes_the_next_number(scanned, plan, host, actor, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        save_memory_settings(host=host, values={"ttlSec": 5}, version=0, actor=actor)
    first, second = Revision.objects.order_by("number")
    assert (first.number, second.number) == (1, 2)
    assert first.inputs["settings"] != second.inputs["settings"]
    assert first.inputs["files"] == second.inputs["files"]
    assert "ttl: 5" in second.text


def test_the_database_is_not_held_while_headers_are_read(scanned, plan):
    """Nobody else can write to SQLite during the transaction that stores plans."""
    with CaptureQueriesContext(connection) as captured:
        plan()
    statements = [query["sql"] for query in captured]
    stored = next(n for n, sql in enumerate(statements) if sql.startswith('DELETE FROM "models_app_storedplan"'))
    read = [n for n, sql in enumerate(statements) if "headerfacts" in sql]
    assert read
    assert max(read) < stored


def test_lists_get_their_figures(scanned):
    plans = StoredPlan.objects.filter(profile="base")
    assert plans.count() == 3
    assert all(plan.ctx_tokens == 4096 and plan.est_ram_bytes > 0 for plan in plans)
    assert set(plans.values_list("placement_text", flat=True)) == {"CPU"}


def test_a_preview_is_the_published_entry(scanned):
    revision = Revision.objects.get()
    for row in Row.objects.all():
        base = preview_plan(row=row).base
        assert base.profile_id == row.served_id
        for line in base.lines:
            assert line.strip() in revision.text


def test_a_preview_follows_an_override_that_nobody_stored(scanned):
    from models_app.core.settings import Override as CoreOverride

    row = Row.objects.first()
    changed = preview_plan(row=row, override=CoreOverride(kv_k="q8_0", kv_v="q8_0")).base
    assert changed.placement.type_k == "q8_0"
    assert not Override.objects.exists()
    assert preview_plan(row=row).base.placement.type_k == "f16"


def test_a_stored_override_counts_for_both(scanned, plan, host):
    row = Row.objects.first()
    Override.objects.create(host=host, match=row.path, fields={"kvK": "q8_0", "kvV": "q8_0"})
    plan()
    assert preview_plan(row=row).base.placement.type_k == "q8_0"
    assert "-ctk q8_0" in Revision.objects.order_by("-number").first().text


def test_a_missing_file_is_not_served_an_offline_one_is(scanned, scan, folder):
    (folder / "beta-2b-Q4_0.gguf").unlink()
    scan()
    newest = Revision.objects.order_by("-number").first()
    assert "beta-2b" not in newest.text
    folder.rename(folder.with_name("away"))
    scan()
    assert Revision.objects.order_by("-number").first() == newest


def test_a_broken_header_is_a_comment(scanned, scan, folder):
    (folder / "zeta-Q4_0.gguf").write_bytes(b"GGUF\x03\0\0\0")
    scan()
    newest = Revision.objects.order_by("-number").first()
    assert "# SKIPPED" in newest.text
    assert StoredPlan.objects.get(row__file_name="zeta-Q4_0.gguf").skip_reason


def test_requests_before_planning_begins_are_one(host, monkeypatch):
    monkeypatch.setattr("quartermaster_site.jobs.dispatch.send", lambda *args, **kwargs: None)
    first = request_plan(host=host, actor=Actor())
    assert request_plan(host=host, actor=Actor()).job == first.job
    Job.objects.filter(pk=first.job.pk).update(state=State.RUNNING)
    assert request_plan(host=host, actor=Actor()).job != first.job


def test_a_plan_that_was_overtaken_stores_nothing(scanned, host, monkeypatch):
    from models_app.services.building import build_candidate
    from quartermaster_site.jobs.control import ControlReporter

    monkeypatch.setattr("quartermaster_site.jobs.dispatch.send", lambda *args, **kwargs: None)
    older = start_job(kind="plan_host", host=host, actor=Actor()).job
    start_job(kind="plan_host", host=host, actor=Actor(), joins=())
    Row.objects.first().delete()
    assert build_candidate(job=older, report=ControlReporter(older)) == {"overtaken": True}
    assert Revision.objects.count() == 1


def test_a_host_without_models_has_no_text(host, plan):
    assert plan().result == {"models": 0}
    assert not Revision.objects.exists()


def test_cancelling_a_plan_keeps_what_is(scanned, host, monkeypatch):
    from models_app import tasks

    monkeypatch.setattr("quartermaster_site.jobs.dispatch.send", lambda *args, **kwargs: None)
    job = start_job(kind="plan_host", host=host, actor=Actor()).job
    real = tasks.build_candidate

    def cancelled_meanwhile(*, job, report):
        Job.objects.filter(pk=job.pk).update(state=State.CANCELLING)
        return real(job=job, report=report)

    monkeypatch.setattr(tasks, "build_candidate", cancelled_meanwhile)
    tasks.plan_host(job.pk)
    job.refresh_from_db()
    assert job.state == State.CANCELLED
    assert get_host("local").revisions.count() == 1
