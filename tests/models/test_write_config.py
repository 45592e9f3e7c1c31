"""From a candidate to the file on the host, through the job."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from gpus_app.selectors import ram_limit_gib
from models_app import convert, host_tasks
from models_app.core.export.host_rules import adapters_among, adapters_of
from models_app.core.export.revisions.outline import ModelOutline, Outline
from models_app.models import Revision, RevisionDetails, Root, Row
from models_app.selectors.host_findings import host_findings
from models_app.services import start_write, writing
from models_app.target_file import TargetRefused
from quartermaster_site.access.audit import Actor
from quartermaster_site.access.models import AuditEntry
from quartermaster_site.errors import EditConflict, NotAllowed, Refused
from quartermaster_site.jobs.models import Job, State


@pytest.fixture
def target(scanned, host, tmp_path):
    host.publish_path = str(tmp_path / "router.yaml")
    host.save()
    return tmp_path / "router.yaml"


@pytest.fixture
def write(actor, django_capture_on_commit_callbacks):
    def run(**options):
        with django_capture_on_commit_callbacks(execute=True):
            started = start_write(revision=Revision.objects.select_related("host").first(), actor=actor, **options)
        return Job.objects.get(pk=started.job.pk)

    return run


def test_the_file_is_written_and_noted(target, write, host):
    job = write()
    assert job.state == State.SUCCEEDED, job.error
    revision = Revision.objects.get()
    assert target.read_text() == revision.text
    assert (revision.state, revision.written_path) == ("written", str(target))
    host.refresh_from_db()
    assert host.written_sha256 == revision.sha256
    actions = list(AuditEntry.objects.filter(action__startswith="config").values_list("actor", "action"))
    assert actions == [("worker of local", "config.written"), ("admin", "config.write")]


def test_a_hand_edit_stops_it(target, write):
    write()
    target.write_text(target.read_text() + "# mine\n")
    job = write()
    assert (job.state, job.error_kind) == (State.FAILED, "Drift")
    revision = Revision.objects.get()
    assert (revision.state, "was changed since" in revision.state_reason) == ("written", True)
    assert "may be replaced" in job.advice
    assert AuditEntry.objects.filter(result="failed").count() == 1


def test_a_strangers_file_stops_it(target, write, host):
    target.write_text("models: {}\n")
    job = write()
    assert (job.state, job.error_kind) == (State.FAILED, "ForeignFile")
    assert write(replace=True).state == State.SUCCEEDED
    [entry] = AuditEntry.objects.filter(action="config.write", changes__has_key="replace")
    assert entry.changes == {"replace": [False, True]}


def test_adapters_lie_where_the_host_lets_people_see(target, write, folder, monkeypatch):
    """Every one that a command names is sent along, and the host looks where it leads."""
    monkeypatch.setenv("QM_BROWSE_ROOTS", str(folder))
    (folder / "link").symlink_to("/etc")
    for path, end in (("/etc", "failed"), (f"{folder}/link/x", "failed"), (f"{folder}/x", "succeeded")):
        flags = {"lora-scaled": f"{path} 0.5", "--lora-model-dir": path, "threads": "/etc/4"}
        outline = Outline({"a": ModelOutline("/opt/llama-server", flags), "b": ModelOutline("", {"lora": "x.gguf"})})
        assert adapters_of(outline) == [path]
        words = ["/opt/llama-server", "--lora-scaled", f"{path} 0.5", "--lora", f"{path},x.gguf", "-t", "/etc/4"]
        assert adapters_among(words) == [path]
        with nullcontext() if end == "succeeded" else pytest.raises(TargetRefused):
            host_tasks._require_adapters_seen(words)
        monkeypatch.setattr(writing, "adapters_to_check", lambda host, revision, outline=outline: adapters_of(outline))
        job = write()
        assert (job.state, "QM_BROWSE_ROOTS" in job.error) == (end, end == "failed"), job.error


def test_there_must_be_a_target(scanned, write):
    with pytest.raises(Refused, match="no target yet"):
        write()


def test_a_blocked_text_is_not_written(target, write):
    Revision.objects.update(state=Revision.State.BLOCKED)
    with pytest.raises(Refused, match="block"):
        write()


@pytest.mark.parametrize(("role", "allowed"), [("viewer", False), ("operator", True), ("editor", True)])
def test_who_may_write(target, make_user, role, allowed, django_capture_on_commit_callbacks):
    actor = Actor(user=make_user(role, "somebody"), name="somebody")
    revision = Revision.objects.select_related("host").get()
    if allowed:
        with django_capture_on_commit_callbacks(execute=True):
            start_write(revision=revision, actor=actor)
        assert target.exists()
    else:
        with pytest.raises(NotAllowed):
            start_write(revision=revision, actor=actor)


def test_a_leave_to_replace_is_for_one_write(target, write, host):
    Revision.objects.update(state=Revision.State.BLOCKED)
    with pytest.raises(Refused, match="block"):
        write(replace=True)
    Revision.objects.update(state=Revision.State.VALIDATED)
    target.write_text("models: {}  # by hand\n")
    assert write().error_kind == "ForeignFile"
    assert target.read_text() == "models: {}  # by hand\n"


def test_a_target_that_moved_since_the_question_is_not_written(target, write):
    with pytest.raises(EditConflict, match="router.yaml now"):
        write(seen_path="/elsewhere/router.yaml")
    assert not target.exists()
    assert write(seen_path=str(target)).state == State.SUCCEEDED


def test_the_text_names_the_memory_that_planning_uses(host):
    host.ram_total_bytes, host.ram_available_bytes = 24 << 30, 23 << 30
    host.save()
    assert convert.core_settings(host).max_ram_gb == ram_limit_gib(host)


def test_a_file_that_is_known_to_be_gone_stops_it(target, write):
    row = Row.objects.get(file_name="beta-2b-Q4_0.gguf")
    Row.objects.filter(pk=row.pk).update(state=Row.State.MISSING)
    with pytest.raises(Refused, match=r"V-07: .*beta-2b-Q4_0.gguf is not there"):
        write()


def test_the_host_looks_for_the_files_at_the_last_moment(target, write, folder):
    (folder / "beta-2b-Q4_0.gguf").unlink()
    job = write()
    assert (job.state, job.error_kind) == (State.FAILED, "FilesGone")
    assert "beta-2b-Q4_0.gguf" in job.error
    assert not target.exists()


def test_files_of_a_folder_that_is_away_are_confirmed_with_the_slug(target, write, folder):
    folder.rename(folder.with_name("unplugged"))
    Root.objects.update(state=Root.State.MISSING)
    assert write(typed_slug="local").state == State.SUCCEEDED


def test_a_target_that_cannot_be_one(target, write, host, folder):
    host.publish_path = str(folder)
    host.save()
    with pytest.raises(Refused, match="V-12"):
        write()


def test_a_program_that_the_host_has_no_more_stops_it(target, write, host):
    revision = Revision.objects.get()
    RevisionDetails.objects.all().delete()
    revision.text = revision.text.replace("llama-server", "/old/llama-server")
    revision.save()
    with pytest.raises(Refused, match=r"V-04: /old/llama-server is no program"):
        write()
    host.backends.create(slug="old", kind="llama", path="/old/llama-server")
    assert "V-04" not in [item.rule for item in host_findings(host, revision)]


def test_a_text_just_planned_starts_with_programs_of_the_host(scanned, host):
    found = host_findings(host, Revision.objects.select_related("host").get())
    assert "V-04" not in [item.rule for item in found]
