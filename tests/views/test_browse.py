"""Picking a path on a host: asked of the host's worker, taken back to the form."""

from __future__ import annotations

from html import unescape
from urllib.parse import quote

import pytest

from quartermaster_site.jobs.models import Job, State

PATH = "/hosts/local/folders/browse/"
FOLDERS = "/hosts/local/folders/"


@pytest.fixture
def look(admin, host, django_capture_on_commit_callbacks):
    """Asks for a folder; the answer with the listing."""

    def call(path, purpose="folder", back=FOLDERS):
        with django_capture_on_commit_callbacks(execute=True):
            asked = admin.post(PATH, {"for": purpose, "back": back, "path": str(path)})
        assert asked.status_code == 302, asked.content
        return admin.get(asked["Location"])

    return call


@pytest.fixture
def shelf(tmp_path):
    (tmp_path / "chat & more").mkdir()
    (tmp_path / "llama-server").write_bytes(b"1234")
    return tmp_path


def test_a_folder_is_picked_for_the_form(look, admin, shelf):
    html = unescape(look(shelf).content.decode())
    assert f'value="{shelf}/chat & more">chat & more/' in html
    assert "Use this folder" in html
    assert f'href="{FOLDERS}?path={quote(str(shelf), safe="")}"' in html
    assert f'value="{shelf.parent}"' in html, "the way up"
    assert ">llama-server</a>" not in html, "files cannot be picked as folders"
    form = admin.get(FOLDERS, {"path": f"{shelf}/chat & more"}).content.decode()
    assert f'value="{shelf}/chat &amp; more"' in form


def test_a_file_is_picked_where_one_is_wanted(look, shelf):
    html = look(shelf, "executable", "/hosts/local/backends/").content.decode()
    assert f'href="/hosts/local/backends/?path={quote(str(shelf / "llama-server"), safe="")}">llama-server</a>' in html
    assert "Use this folder" not in html


def test_nothing_typed_begins_at_the_top(look):
    assert look("").context["listing"].path == "/"


def test_a_folder_that_is_not_there_is_said(look, shelf):
    page = look(shelf / "gone")
    assert "cannot be listed" in unescape(page.content.decode())
    assert f'value="{shelf}/gone"' in page.content.decode()


def test_a_relative_path_is_refused_beside_the_field(admin, host):
    answer = admin.post(PATH, {"for": "folder", "back": FOLDERS, "path": "models"})
    assert answer.status_code == 422
    assert "Write the whole path of a folder." in answer.content.decode()
    assert 'value="models"' in answer.content.decode()


def test_while_the_host_is_asked_the_page_waits(admin, host):
    job = Job.objects.create(kind="browse", host=host, token="t", state=State.RUNNING, inputs={"path": "/srv"})
    address = f"{PATH}?for=folder&back={FOLDERS}&job={job.pk}"
    html = admin.get(address).content.decode()
    assert "is asked" in html
    assert 'hx-trigger="every 1s"' in html
    assert '<meta http-equiv="refresh" content="2">' in html
    part = {"HX-Request": "true", "HX-Target": "listing"}
    assert admin.get(address, headers=part).status_code == 200
    Job.objects.update(state=State.SUCCEEDED, result={"path": "/srv", "parent": "/", "entries": [], "truncated": False})
    done = admin.get(address, headers=part)
    assert done.status_code == 286
    assert "This folder is empty." in done.content.decode()


@pytest.mark.parametrize(
    "query", ["", "?for=folder", "?for=disk&back=/hosts/", "?for=folder&back=https://evil.example/"]
)
def test_only_from_a_form_of_this_site(admin, host, query):
    assert admin.get(f"{PATH}{query}").status_code == 404


@pytest.mark.parametrize("number", ["0", "x", "9" * 40, "-1"])
def test_only_questions_to_this_host(admin, host, number):
    assert admin.get(f"{PATH}?for=folder&back={FOLDERS}&job={number}").status_code == 404


def test_administrators_only(viewer, host):
    assert viewer.get(f"{PATH}?for=folder&back={FOLDERS}").status_code == 403


@pytest.mark.parametrize(("form", "purpose"), [(FOLDERS, "folder"), ("/hosts/local/backends/", "executable")])
def test_forms_have_a_button_to_browse_and_take_what_was_picked(admin, host, form, purpose):
    html = admin.get(form, {"path": "/srv/picked"}).content.decode()
    assert f'formaction="{PATH}"' in html
    assert f'name="back" value="{form}"' in html
    assert f'name="for" value="{purpose}"' in html
    assert 'name="path" value="/srv/picked"' in html
