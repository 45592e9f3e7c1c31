"""Folders are looked at between scans, and scanned only when something has changed."""

from __future__ import annotations

import os
import time
from datetime import timedelta

import pytest
from django.utils import timezone

from gpus_app import agents
from gpus_app.models import Agent
from gpus_app.services import note_heartbeat, save_watch_settings
from models_app import convert, folder_events, watching
from models_app.core.errors import SourceUnreadable
from models_app.models import FolderWatch, Row
from models_app.services import register_root, remove_root
from models_app.services.watching import SCAN_LABEL, take_look
from models_app.tasks import folders_looked_at, folders_stir
from quartermaster_site.access.audit import Actor
from quartermaster_site.access.models import AuditEntry
from quartermaster_site.errors import EditConflict, NotAllowed, Refused
from quartermaster_site.jobs.models import Job, State
from quartermaster_site.preparation import recover
from quartermaster_site.version import PROTOCOL
from tests.tiny_models import tiny_gguf

OLD = time.time() - 3600


def add_model(folder, name="gamma-3b-Q4_0.gguf", mtime=OLD):
    tiny_gguf(folder / name, name=name)
    os.utime(folder / name, (mtime, mtime))


def later(seconds: float) -> None:
    """Let time pass for the watch alone."""
    watch = FolderWatch.objects.get()
    FolderWatch.objects.update(
        looked_at=watch.looked_at and watch.looked_at - timedelta(seconds=seconds),
        asked_at=watch.asked_at and watch.asked_at - timedelta(seconds=seconds),
    )


@pytest.fixture
def scanned(host, folder, scan):
    """The folder, registered and scanned here: what a look compares with lies in the memory of the process."""
    register_root(host=host, path=str(folder), actor=Actor())
    job = scan()
    assert job.state == "succeeded", (job.error, job.log)
    return job


@pytest.fixture
def beat(host, django_capture_on_commit_callbacks):
    """A heartbeat, `after` so many seconds, with all that it sets off."""
    type(host).objects.update(probed_at=timezone.now())

    def run(after=0.0):
        if FolderWatch.objects.exists():
            later(after)
        with django_capture_on_commit_callbacks(execute=True):
            note_heartbeat(slug="local", worker="w", version="1", sent_at=time.time())
        return FolderWatch.objects.filter(host=host).first()

    return run


def questions(monkeypatch) -> list[dict]:
    """What hosts are asked from now on; orders to sample, which need no answer, are left out."""
    asked: list[dict] = []

    def send(*_, **more):
        if "token" in more:
            asked.append(more)

    monkeypatch.setattr("quartermaster_site.jobs.dispatch.send", send)
    return asked


def scans() -> int:
    return Job.objects.filter(kind="scan").count()


def test_a_folder_is_not_watched_before_its_first_scan(host, folder, beat):
    register_root(host=host, path=str(folder), actor=Actor())
    assert beat() is None
    assert not Job.objects.filter(kind="scan").exists()


def test_a_look_that_finds_nothing_leaves_no_job(scanned, beat):
    before = Job.objects.count()
    for _ in range(5):
        watch = beat(30)
    assert watch.looked_at is not None
    assert watch.asked_at is None
    assert Job.objects.count() == before


def test_heartbeats_cost_nearly_nothing(scanned, beat, django_assert_max_num_queries):
    beat()
    with django_assert_max_num_queries(11):  # four of them are the test's own
        beat(5)
    with django_assert_max_num_queries(18):
        beat(30)


def test_a_new_file_is_scanned(scanned, folder, beat):
    beat()
    add_model(folder)
    beat(30)
    assert scans() == 2
    assert Job.objects.filter(kind="scan").first().object_label == SCAN_LABEL
    assert Row.objects.filter(file_name="gamma-3b-Q4_0.gguf", state="present").exists()
    beat(30)
    assert scans() == 2


def test_looks_keep_their_distance(scanned, folder, beat):
    beat()
    add_model(folder)
    beat(20)
    assert scans() == 1
    beat(10)
    assert scans() == 2


def test_the_distance_can_be_set_and_watching_switched_off(scanned, host, actor, folder, beat):
    beat()
    save_watch_settings(host=host, seconds=120, version=0, actor=actor)
    add_model(folder)
    beat(60)
    assert scans() == 1
    beat(60)
    assert scans() == 2
    save_watch_settings(host=host, seconds=0, version=1, actor=actor)
    add_model(folder, "delta-4b-Q4_0.gguf")
    beat(100_000)
    folders_stir(slug="local")
    assert scans() == 2


def test_a_slow_disk_is_looked_at_less_often(scanned, folder, beat):
    beat()
    FolderWatch.objects.update(look_seconds=60.0)
    add_model(folder)
    beat(600)
    assert scans() == 1
    beat(600)
    assert scans() == 2


def test_a_file_that_grows_waits_until_it_is_quiet(scanned, folder, beat):
    add_model(folder, mtime=time.time())
    watch = beat(30)
    assert (scans(), watch.growing) == (1, 1)
    add_model(folder, "delta-4b-Q4_0.gguf")
    watch = beat(10)
    assert (scans(), watch.growing) == (2, 0), "another file need not wait for it"
    os.utime(folder / "gamma-3b-Q4_0.gguf", (OLD, OLD))
    beat(30)
    assert scans() == 3
    beat(30)
    assert scans() == 3


def test_what_a_scan_has_seen_growing_is_scanned_again_when_it_is_whole(scanned, folder, scan, beat):
    half = folder / "gamma-3b-Q4_0.gguf"
    add_model(folder, mtime=time.time())
    whole = half.read_bytes()
    half.write_bytes(whole[:200])
    scan()
    assert Row.objects.get(file_name=half.name).state == "unreadable"
    half.write_bytes(whole)
    assert beat(30).growing == 1
    os.utime(half, (OLD, OLD))
    beat(10)
    assert Row.objects.get(file_name=half.name).state == "present"


def test_after_a_restart_of_the_worker(scanned, folder, beat, monkeypatch):
    monkeypatch.setattr(watching, "_baselines", [])
    beat()
    beat(30)
    assert scans() == 1
    add_model(folder)
    beat(30)
    assert scans() == 2


def test_an_update_of_the_product_scans_once(scanned, beat, monkeypatch):
    monkeypatch.setattr(watching, "product_version", lambda: "next")
    beat()
    assert scans() == 2
    beat(30)
    assert scans() == 2


def test_a_root_that_goes_away_and_comes_back(scanned, folder, beat):
    away = folder.with_name("unplugged")
    folder.rename(away)
    beat(30)
    assert set(Row.objects.values_list("state", flat=True)) == {"offline"}
    assert Row.objects.count() == 3
    beat(30)
    assert scans() == 2
    away.rename(folder)
    beat(30)
    assert set(Row.objects.values_list("state", flat=True)) == {"present"}


def test_a_scan_that_failed_is_not_repeated_for_the_same_files(scanned, folder, beat, monkeypatch):
    def fail(*_arguments, **_more):
        raise RuntimeError("no")

    add_model(folder)
    with monkeypatch.context() as patch:
        patch.setattr("models_app.scanning.select", fail)
        for _ in range(3):
            beat(30)
    assert scans() == 2
    assert Job.objects.filter(kind="scan").first().state == State.FAILED
    add_model(folder, "delta-4b-Q4_0.gguf")
    beat(30)
    assert (scans(), Row.objects.count()) == (3, 5)


def test_no_look_while_a_scan_runs(scanned, host, folder, beat):
    Job.objects.create(kind="scan", host=host, state=State.RUNNING, token="t", heartbeat_at=timezone.now())
    add_model(folder)
    assert beat(30).asked_at is None
    assert scans() == 2


def test_one_look_at_a_time(scanned, folder, beat, monkeypatch):
    asked = questions(monkeypatch)
    for _ in range(3):
        beat(30)
    assert len(asked) == 1
    beat(3600)
    assert len(asked) == 2, "the host never answered"
    beat(30)
    assert len(asked) == 2
    recover()
    beat(30)
    assert len(asked) == 3, "the product was started again"


def test_an_agent_that_was_started_anew_is_asked_at_once(scanned, host, beat, monkeypatch):
    """The one that was asked is gone."""
    asked = questions(monkeypatch)
    beat(30)
    facts = {"worker": "w", "version": "1", "protocol": PROTOCOL, "address": ""}
    agent = Agent.objects.create(host=host, instance="old", instance_seen_at=timezone.now() - timedelta(seconds=21))
    for instance in ("old", "new", "new"):
        agents.check_in(agent, instance=instance, **facts)
        Agent.objects.update(instance_seen_at=timezone.now() - timedelta(seconds=21))
        beat(5)
    assert len(asked) == 2


def test_a_question_that_was_never_sent_is_asked_with_the_next_heartbeat(scanned, beat, monkeypatch):
    def full(*_, **__):
        raise OSError("no room")

    monkeypatch.setattr("quartermaster_site.jobs.dispatch.send", full)
    assert beat(30).asked_at is None


def test_an_answer_is_believed_once_and_only_when_asked_for(scanned, beat, monkeypatch):
    asked = questions(monkeypatch)
    beat(30)
    answer = {"fingerprint": "new", "changed": True, "growing": 0, "seconds": 0.1}
    folders_looked_at(slug="local", token="guessed", answer=answer)
    folders_looked_at(slug="other", token=asked[0]["token"], answer=answer)
    for broken in ({}, {**answer, "growing": -1}, {**answer, "seconds": "x"}, {**answer, "changed": 1}, []):
        folders_looked_at(slug="local", token=asked[0]["token"], answer=broken)
    assert scans() == 1
    assert FolderWatch.objects.get().asked_at is not None
    monkeypatch.undo()
    take_look("local", asked[0]["token"], answer)
    folders_looked_at(slug="local", token=asked[0]["token"], answer={**answer, "fingerprint": "newer"})
    assert scans() == 2


def test_word_from_the_system_makes_a_look_come_sooner(scanned, folder, beat, django_capture_on_commit_callbacks):
    beat()
    add_model(folder)
    with django_capture_on_commit_callbacks(execute=True):
        folders_stir(slug="local")
    assert scans() == 1
    later(10)
    with django_capture_on_commit_callbacks(execute=True):
        folders_stir(slug="local")
    assert scans() == 2
    folders_stir(slug="nobody")
    folders_stir(slug=7)


def test_a_scan_of_what_is_stored_reads_and_sends_nothing(scanned, scan, monkeypatch):
    def read(*_arguments, **_more):
        raise AssertionError("a header was read")

    monkeypatch.setattr("models_app.scanning.read_candidate", read)
    job = scan()
    assert job.state == State.SUCCEEDED
    assert job.result["unchanged"]
    assert (job.result["models"], job.result["new"], job.result["missing"]) == (3, 0, 0)
    assert job.reports.count() == 0
    assert set(Row.objects.values_list("last_scan", flat=True)) == {job.pk}
    assert Job.objects.filter(kind="plan_host").count() == 1


def test_another_model_of_the_same_size_and_time_in_its_place(scanned, host, folder, beat):
    path = folder / "beta-2b-Q4_0.gguf"
    os.utime(path, (OLD, OLD))
    beat(30)
    status = path.stat()
    lookup = convert.header_lookup(host)
    assert lookup(str(path)).architecture == "llama"
    tiny_gguf(folder / "other", name="Beta 2B", architecture="qwen2")
    os.utime(folder / "other", ns=(status.st_atime_ns, status.st_mtime_ns))
    (folder / "other").replace(path)
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (status.st_size, status.st_mtime_ns)
    beat(30)
    assert Row.objects.get(path=str(path)).architecture == "qwen2"
    assert convert.header_lookup(host)(str(path)).architecture == "qwen2"


def test_files_that_could_not_be_opened_are_tried_again(scanned, folder, scan, beat, monkeypatch):
    def refuse(candidate, cache):
        return SourceUnreadable("unreadable", "Input/output error", path=candidate.path)

    add_model(folder)
    with monkeypatch.context() as patch:
        patch.setattr("models_app.scanning.read_candidate", refuse)
        scan()
    assert set(Row.objects.values_list("state", flat=True)) == {"unreadable"}
    beat(30)
    assert scans() == 2, "by itself only when the files are different"
    assert not scan().result["unchanged"]
    assert set(Row.objects.values_list("state", flat=True)) == {"present"}
    assert scan().result["unchanged"]


def test_a_folder_that_was_removed_and_added_again_is_read(scanned, host, actor, folder, scan):
    remove_root(root=host.roots.get(), actor=actor)
    register_root(host=host, path=str(folder), actor=Actor())
    assert scan().result["new"] == 3


def test_only_what_is_different_is_counted(scanned, folder, scan):
    (folder / "beta-2b-Q4_0.gguf").unlink()
    assert scan().result["missing"] == 1
    add_model(folder)
    assert (scan().result["missing"], Row.objects.filter(state="missing").count()) == (0, 1)


def test_the_setting_is_stored_sparse_and_audited(host, actor, make_user):
    row = save_watch_settings(host=host, seconds=60, version=0, actor=actor)
    assert (row.values, row.version) == ({"pollSec": 60}, 1)
    assert AuditEntry.objects.get(action="settings.watching").changes == {"pollSec": [None, 60]}
    assert save_watch_settings(host=host, seconds=30, version=1, actor=actor).values == {}
    with pytest.raises(EditConflict):
        save_watch_settings(host=host, seconds=45, version=0, actor=actor)
    for bad in (-1, 1, 9, 86_401):
        with pytest.raises(Refused):
            save_watch_settings(host=host, seconds=bad, version=2, actor=actor)
    with pytest.raises(NotAllowed):
        save_watch_settings(host=host, seconds=60, version=2, actor=Actor(user=make_user("editor")))


def test_the_system_tells_of_changes(tmp_path):
    pytest.importorskip("watchfiles")
    told = []
    folder_events.follow([str(tmp_path)], lambda: told.append(1))
    try:
        time.sleep(1.0)
        (tmp_path / "new.gguf").write_bytes(b"x")
        deadline = time.monotonic() + 15
        while not told and time.monotonic() < deadline:
            time.sleep(0.1)
        assert told
    finally:
        folder_events.follow([], lambda: None)
