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


def test_the_job_holds_the_listing(host, actor, tmp_path, django_capture_on_commit_callbacks):
    (tmp_path / "models").mkdir()
    with django_capture_on_commit_callbacks(execute=True):
        started = start_browse(host=host, path=str(tmp_path), actor=actor)
    job = Job.objects.get(pk=started.job.pk)
    assert job.state == State.SUCCEEDED
    assert [entry["name"] for entry in job.result["entries"]] == ["models"]
