"""What a scan stores, and what it must never take away."""

from __future__ import annotations

import os

from models_app import convert
from models_app.models import Finding, HeaderFacts, Root, Row
from models_app.services import register_root, remove_root
from models_app.services.results import finish_scan
from models_app.services.row_results import store_rows
from quartermaster_site.access.audit import Actor
from quartermaster_site.jobs.models import Job, State
from quartermaster_site.jobs.services import retry_job
from tests.tiny_models import tiny_gguf


def states():
    return dict(Row.objects.values_list("file_name", "state"))


def test_rows_with_their_header_facts(scanned, folder):
    assert set(states().values()) == {"present"}
    row = Row.objects.get(file_name="alpha-1b-Q4_0.gguf")
    assert (row.quant, row.model_class, row.architecture) == ("Q4_0", "llm", "llama")
    assert row.header.facts["block_count"] == 2
    assert row.root.path == str(folder)
    assert Root.objects.get().state == "ok"
    assert scanned.result["new"] == 3


def test_quants_of_one_model_share_a_key(scanned):
    keys = dict(Row.objects.values_list("file_name", "model_key"))
    assert keys["alpha-1b-Q4_0.gguf"] == keys["alpha-1b-Q8_0.gguf"] != keys["beta-2b-Q4_0.gguf"]


def test_scanning_again_changes_nothing(scanned, scan):
    before = list(Row.objects.order_by("pk").values("pk", "path", "state", "state_since", "first_seen_at"))
    job = scan()
    assert job.result["new"] == 0
    assert list(Row.objects.order_by("pk").values("pk", "path", "state", "state_since", "first_seen_at")) == before


def test_a_file_that_is_gone_stays_as_missing(scanned, scan, folder):
    (folder / "beta-2b-Q4_0.gguf").unlink()
    job = scan()
    assert states()["beta-2b-Q4_0.gguf"] == "missing"
    assert job.result["missing"] == 1


def test_a_root_that_disappears_takes_nothing_with_it(scanned, scan, folder):
    away = folder.with_name("unplugged")
    folder.rename(away)
    scan()
    assert set(states().values()) == {"offline"}
    assert Root.objects.get().state == "missing"
    assert Finding.objects.get().kind == "root-missing"
    away.rename(folder)
    scan()
    assert set(states().values()) == {"present"}
    assert Root.objects.get().state == "ok"
    assert not Finding.objects.exists()


def test_an_empty_mount_point_takes_nothing_with_it(scanned, scan, folder):
    away = folder.with_name("unmounted")
    folder.rename(away)
    folder.mkdir()
    scan()
    assert set(states().values()) == {"offline"}
    root = Root.objects.get()
    assert root.state == "missing"
    assert "is a drive not mounted?" in root.state_reason
    folder.rmdir()
    away.rename(folder)
    scan()
    assert set(states().values()) == {"present"}


def test_an_unreadable_folder_takes_nothing_with_it(scanned, scan, folder, monkeypatch):
    inner = folder / "inner"
    inner.mkdir()
    tiny_gguf(inner / "gamma-3b-Q4_0.gguf", name="Gamma")
    scan()
    real = os.scandir

    def refuse(path):
        if str(path) == str(inner):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path)

    monkeypatch.setattr("models_app.core.discovery.walk.os.scandir", refuse)
    scan()
    assert states()["gamma-3b-Q4_0.gguf"] == "offline"
    assert states()["alpha-1b-Q4_0.gguf"] == "present"
    assert Root.objects.get().state == "partial"


def test_one_broken_file_does_not_stop_the_rest(host, folder, scan):
    (folder / "broken-Q4_0.gguf").write_bytes(b"GGUF\x03\0\0\0")
    (folder / "empty-Q4_0.gguf").write_bytes(b"")
    register_root(host=host, path=str(folder), actor=Actor())
    job = scan()
    assert job.state == State.WARNED
    assert job.warnings == 2
    assert Row.objects.filter(state="present").count() == 3
    kinds = set(Finding.objects.values_list("kind", flat=True))
    assert kinds == {"header-unreadable"}
    broken = Row.objects.get(file_name="broken-Q4_0.gguf")
    assert (broken.state, broken.header.error_code) == ("unreadable", "truncated")


def test_a_repaired_file_settles_its_finding(host, folder, scan):
    path = folder / "broken-Q4_0.gguf"
    path.write_bytes(b"GGUF\x03\0\0\0")
    register_root(host=host, path=str(folder), actor=Actor())
    scan()
    tiny_gguf(path, name="Repaired")
    scan()
    assert states()["broken-Q4_0.gguf"] == "present"
    assert not Finding.objects.exists()


def test_a_finding_keeps_the_time_it_was_first_seen(host, folder, scan):
    (folder / "broken-Q4_0.gguf").write_bytes(b"GGUF\x03\0\0\0")
    register_root(host=host, path=str(folder), actor=Actor())
    first = scan()
    second = scan()
    finding = Finding.objects.get()
    assert (finding.first_scan, finding.last_scan) == (first, second)


def test_a_changed_file_is_read_again(scanned, scan, folder):
    tiny_gguf(folder / "beta-2b-Q4_0.gguf", name="Beta", architecture="qwen2")
    scan()
    assert Row.objects.get(file_name="beta-2b-Q4_0.gguf").architecture == "qwen2"
    assert HeaderFacts.objects.count() == 3


def test_a_scan_is_followed_by_a_plan(scanned):
    job = Job.objects.get(kind="plan_host")
    assert job.parent == scanned
    assert job.state == State.SUCCEEDED


def test_hostile_names_are_reported_and_left_out(host, tmp_path, scan):
    models = tmp_path / "models"
    models.mkdir()
    for name in ("${PORT}-Q4_0.gguf", "new\nline-Q4_0.gguf", 'quo"te-Q4_0.gguf'):
        tiny_gguf(models / name, name="X")
    register_root(host=host, path=str(models), actor=Actor())
    scan()
    assert set(states()) == {'quo"te-Q4_0.gguf'}
    assert set(Finding.objects.values_list("kind", flat=True)) == {"unsafe-name"}


def test_many_folders_that_cannot_be_read(scanned, host):
    """A thousand conditions in one statement are more than SQLite takes."""
    folder = Root.objects.get().path
    unread = [f"{folder}/closed-{number:03}" for number in range(900)]
    kept = Row.objects.get(file_name="beta-2b-Q4_0.gguf")
    Row.objects.filter(pk=kept.pk).update(path=f"{unread[-1]}/beta.gguf")
    note = Finding.objects.create(host=host, kind="header", path=f"{unread[0]}/sub/x.gguf", text="truncated")
    Finding.objects.create(host=host, kind="header", path=f"{folder}/closed-0/x.gguf", text="settled")
    job = Job.objects.create(kind="scan", host=host, state=State.RUNNING, token="t")
    finish_scan(
        job=job, data={"roots": [{"path": folder, "state": "partial", "files": 3}], "unread": unread}, partial=False
    )
    assert set(Row.objects.values_list("file_name", "state")) == {
        ("alpha-1b-Q4_0.gguf", "missing"),
        ("alpha-1b-Q8_0.gguf", "missing"),
        ("beta-2b-Q4_0.gguf", "offline"),
    }
    assert list(Finding.objects.all()) == [note]


def test_a_folder_removed_while_it_is_scanned_stays_removed(scanned, host, actor):
    found = [convert.core_row(row) for row in Row.objects.all()]
    root = host.roots.get()
    job = Job.objects.create(
        kind="scan", host=host, state=State.RUNNING, token="t", inputs={"roots": [[root.path, ""]]}
    )
    remove_root(root=root, actor=actor)
    store_rows(job, found)
    assert not Row.objects.exists()


def test_a_scan_that_runs_again_looks_at_the_folders_of_now(
    scanned, host, scan, actor, folder, tmp_path, django_capture_on_commit_callbacks
):
    """And sends headers that were forgotten meanwhile, although the first scan did not need to."""
    second = scan()
    assert second.inputs["known"]
    (tmp_path / "more").mkdir()
    tiny_gguf(tmp_path / "more" / "gamma-3b-Q4_0.gguf", name="Gamma 3B")
    remove_root(root=host.roots.get(), actor=actor)
    HeaderFacts.objects.all().delete()
    register_root(host=host, path=str(tmp_path / "more"), actor=Actor())
    with django_capture_on_commit_callbacks(execute=True):
        third = retry_job(job=second, actor=actor).job
    assert third.inputs["roots"] == [[str(tmp_path / "more"), ""]]
    assert third.inputs["known"] == {}
    assert list(states()) == ["gamma-3b-Q4_0.gguf"]
