"""The Backends tab of a host: what is registered, what runs what, and how that is changed."""

from __future__ import annotations

import re
from html import unescape

import pytest
from django.utils.html import strip_tags

from gpus_app.models import Backend
from models_app.models import Override, Row, StoredPlan

PATH = "/hosts/local/backends/"


def text(response):
    return unescape(" ".join(strip_tags(re.sub("<", " <", response.content.decode())).split()))


@pytest.fixture
def quiet(monkeypatch):
    monkeypatch.setattr("quartermaster_site.jobs.dispatch.send", lambda *args, **kwargs: None)


def test_without_a_backend_the_page_says_what_is_used(viewer, host):
    page = text(viewer.get(PATH))
    assert "No backend registered" in page
    assert "llama-server is taken from the search path" in page
    assert "Changing backends needs the role admin" in page
    assert "Add backend" not in page


def test_adding_one_through_the_form(admin, host, quiet):
    answer = admin.post(PATH, {"kind": "llama", "path": "/opt/llama/llama-server", "variant": "vulkan"}, follow=True)
    page = text(answer)
    assert "is registered as llama." in page
    assert "/opt/llama/llama-server" in page
    assert "the only one of its class" in page


def test_errors_stand_beside_their_field_and_keep_what_was_typed(admin, host, quiet):
    answer = admin.post(PATH, {"kind": "llama", "path": "llama-server", "slug": "mine"})
    assert answer.status_code == 422
    assert list(answer.context["form"].errors) == ["path"]
    assert 'value="mine"' in answer.content.decode()
    assert not Backend.objects.exists()


def test_stars_decide_and_the_page_never_claims_that_there_is_no_default(admin, host, quiet):
    for folder in ("a", "b"):
        admin.post(PATH, {"kind": "llama", "path": f"/opt/{folder}/llama-server"})
    assert "used because first" in text(admin.get(PATH))
    second = Backend.objects.get(path__contains="/b/")
    page = text(admin.post(f"{PATH}{second.pk}/star/", follow=True))
    assert "used because first" not in page
    assert "starred" in page
    admin.post(f"{PATH}{second.pk}/star/", {"off": "1"})
    assert not Backend.objects.filter(starred=True).exists()


def test_of_two_who_edit_the_second_is_asked(admin, host, quiet):
    row = Backend.objects.create(host=host, slug="llama", kind="llama", path="/opt/a/llama-server")
    address = f"{PATH}{row.pk}/"
    form = {"kind": "llama", "path": "/opt/b/llama-server", "edition": "1"}
    assert admin.post(address, form).status_code == 302
    answer = admin.post(address, {**form, "path": "/opt/c/llama-server"})
    assert answer.status_code == 409
    assert "It is now: kind llama, path /opt/b/llama-server" in text(answer)
    again = re.search(r'name="edition" value="(\d+)"', answer.content.decode())
    assert again
    assert admin.post(address, {**form, "path": "/opt/c/llama-server", "edition": again[1]}).status_code == 302
    assert Backend.objects.get().path == "/opt/c/llama-server"


def test_removal_says_which_models_it_affects(scanned, admin, row_named, quiet):
    a = Backend.objects.create(host=scanned, slug="a", kind="llama", path="/opt/a/llama-server")
    Backend.objects.create(host=scanned, slug="b", kind="llama", path="/opt/b/llama-server", name="Second")
    pinned = row_named("qwen3-8b")
    Override.objects.create(host=scanned, match=pinned.path, fields={"backend": "b"}, version=1)
    page = text(admin.get(f"{PATH}{a.pk}/remove/"))
    assert "then run by Second" in page
    assert pinned.served_id not in page
    b = Backend.objects.get(slug="b")
    page = text(admin.get(f"{PATH}{b.pk}/remove/"))
    assert f"{pinned.served_id} : then run by /opt/a/llama-server (their pin stays, and names nothing)" in page
    assert admin.post(f"{PATH}{b.pk}/remove/").status_code == 302
    assert not Backend.objects.filter(slug="b").exists()


def test_plan_and_exported_file_name_the_registered_program(scanned, admin, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        admin.post(PATH, {"kind": "llama", "path": "/opt/my llama/llama-server"})
    assert '"/opt/my llama/llama-server"' in scanned.revisions.order_by("-number").first().text
    row = Row.objects.get(served_id__startswith="qwen3-8b")
    assert StoredPlan.objects.filter(row=row, verdict="fits").exists()
    assert "/opt/my llama/llama-server" in text(admin.get(f"/models/{row.pk}/"))


@pytest.mark.parametrize("address", [f"{PATH}999/", f"{PATH}999/remove/"])
def test_what_is_not_there(admin, host, address):
    assert admin.get(address).status_code == 404


def test_a_model_is_offered_only_backends_that_can_read_it(scanned, admin, row_named):
    for slug, kind in (("a", "llama"), ("b", "vllm"), ("c", "sd")):
        Backend.objects.create(host=scanned, slug=slug, kind=kind, path=f"/opt/{slug}/server")
    for name, offered in (("qwen3-8b", ["a", "b"]), ("nomic", ["a"])):
        html = admin.get(f"/models/{row_named(name).pk}/edit/").content.decode()
        select = re.search(r'<select[^>]*name="backend".*?</select>', html, re.DOTALL)
        assert select
        assert [value for value in re.findall(r'value="(\w*)"', select[0]) if value] == offered
