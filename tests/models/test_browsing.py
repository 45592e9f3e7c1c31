from __future__ import annotations

import pytest

from models_app import browsing
from models_app.browsing import NotListed, list_folder
from models_app.services import start_browse
from quartermaster_site.jobs.models import Job, State


def test_folders_first_then_names_without_case(tmp_path):
    for name in ("b", "A"):
        (tmp_path / name).mkdir()
    for name in ("z.gguf", "Y.gguf"):
        (tmp_path / name).write_bytes(b"12345")
    listing = list_folder(str(tmp_path), ["/"])
    assert [entry["name"] for entry in listing["entries"]] == ["A", "b", "Y.gguf", "z.gguf"]
    assert listing["entries"][2]["size_bytes"] == 5
    assert listing["parent"] == str(tmp_path.parent)


def test_a_link_out_of_the_permitted_folders_leads_nowhere(tmp_path):
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "link").symlink_to(tmp_path)
    with pytest.raises(NotListed, match="outside"):
        list_folder(str(inside / "link"), [str(inside)])
    assert list_folder(str(inside), [str(inside)])["parent"] == ""


@pytest.mark.parametrize("path", ["relative", "/nowhere/at/all", "/tmp/../etc/../nowhere"])
def test_what_cannot_be_listed(path):
    with pytest.raises(NotListed):
        list_folder(path, ["/"])


def test_a_neighbour_with_the_same_start_is_outside(tmp_path):
    (tmp_path / "models").mkdir()
    (tmp_path / "models-private").mkdir()
    with pytest.raises(NotListed, match="outside"):
        list_folder(str(tmp_path / "models-private"), [str(tmp_path / "models")])


def test_a_huge_folder_is_cut(tmp_path, monkeypatch):
    monkeypatch.setattr(browsing, "MAX_ENTRIES", 3)
    for number in range(5):
        (tmp_path / str(number)).mkdir()
    listing = list_folder(str(tmp_path), ["/"])
    assert listing["truncated"]
    assert len(listing["entries"]) == 3


def test_above_the_permitted_folders_only_the_way_to_them_is_shown(tmp_path):
    for name in ("models/a", "opt/llama", "private"):
        (tmp_path / name).mkdir(parents=True)
    permitted = [str(tmp_path / "models/a"), str(tmp_path / "opt")]
    listing = list_folder(str(tmp_path), permitted)
    assert [(entry["name"], entry["kind"]) for entry in listing["entries"]] == [("models", "folder"), ("opt", "folder")]
    assert [entry["name"] for entry in list_folder(str(tmp_path / "models"), permitted)["entries"]] == ["a"]
    assert [entry["name"] for entry in list_folder("/", permitted)["entries"]] == [tmp_path.parts[1]]


def test_of_a_file_its_folder_is_listed(tmp_path):
    (tmp_path / "llama-server").write_bytes(b"")
    listing = list_folder(str(tmp_path / "llama-server"), [str(tmp_path)])
    assert listing["path"] == str(tmp_path)


def test_executables_are_looked_for_where_backends_may_run(
    host, actor, tmp_path, monkeypatch, django_capture_on_commit_callbacks
):
    for name in ("models", "opt"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("QM_BROWSE_ROOTS", str(tmp_path / "models"))
    monkeypatch.setenv("QM_BACKEND_ROOTS", str(tmp_path / "opt"))
    ends = {}
    for name, purpose in (("models", "folder"), ("opt", "folder"), ("models", "executable"), ("opt", "executable")):
        with django_capture_on_commit_callbacks(execute=True):
            started = start_browse(host=host, path=str(tmp_path / name), actor=actor, purpose=purpose)
        ends[name, purpose] = Job.objects.get(pk=started.job.pk).state
    assert ends == {
        ("models", "folder"): "succeeded",
        ("opt", "folder"): "failed",
        ("models", "executable"): "failed",
        ("opt", "executable"): "succeeded",
    }


def test_the_job_holds_the_listing(host, actor, tmp_path, django_capture_on_commit_callbacks):
    (tmp_path / "models").mkdir()
    with django_capture_on_commit_callbacks(execute=True):
        started = start_browse(host=host, path=str(tmp_path), actor=actor)
    job = Job.objects.get(pk=started.job.pk)
    assert job.state == State.SUCCEEDED
    assert [entry["name"] for entry in job.result["entries"]] == ["models"]
