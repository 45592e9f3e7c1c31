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
    assert "the only one that reads them" in page


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


def test_a_path_that_was_picked_stands_in_the_form_of_a_backend_that_is_there(admin, host, quiet):
    row = Backend.objects.create(host=host, slug="a", kind="sd", path="/opt/old/sd-server")
    html = admin.get(f"{PATH}{row.pk}/?path=/opt/new/sd-server").content.decode()
    assert 'value="/opt/new/sd-server"' in html
    assert "Browse…" in html
    assert Backend.objects.get().path == "/opt/old/sd-server"


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


def test_the_page_shows_what_a_program_said_and_which_device_is_ours(gpu_host, admin):
    listed = [
        {"id": "CUDA0", "name": "NVIDIA GeForce RTX 3090", "total_bytes": 24 << 30, "tag": ""},
        {"id": "CUDA1", "name": "Quadro P400", "total_bytes": 2 << 30, "tag": ""},
    ]
    facts = {"problem": "", "kind": "llama", "flags": ["--port"], "devices": listed, "notes": []}
    row = Backend.objects.create(host=gpu_host, slug="a", kind="llama", path="/opt/a", version="6524", probe=facts)
    page = text(admin.get(PATH))
    assert "version 6524 , 1 flag" in page
    assert "CUDA0 NVIDIA GeForce RTX 3090 = GPU 0" in page
    assert "CUDA1 Quadro P400 not asked yet" in page
    row.probe = {**facts, "devices": listed[1:]}
    row.save()
    page = text(admin.get(PATH))
    assert "not all of this host's devices are found in its list, so launches name none" in page
    assert "= GPU" not in page


def test_a_program_of_another_kind_is_refused_in_words(host, admin):
    facts = {"problem": "", "kind": "tts", "flags": ["--codec"], "devices": None, "notes": []}
    Backend.objects.create(host=host, slug="a", kind="ttscpp", path="/opt/tts-server", probe=facts)
    page = text(admin.get(PATH))
    assert "not used: another kind" in page
    assert "Its own help says that it is tts-server (qwentts.cpp). Plans leave it out: change its kind." in page


def test_testing_one_and_all(admin, host, quiet):
    assert admin.post(f"{PATH}probe/").status_code == 422
    rows = [Backend.objects.create(host=host, slug=name, kind="llama", path=f"/opt/{name}") for name in "ab"]
    assert admin.post(f"{PATH}probe/", {"backend": rows[1].pk}).status_code == 302
    job = host.jobs.get(kind="probe_backend")
    assert job.inputs == {"programs": [[rows[1].pk, "/opt/b"]], "fresh": True}
    assert admin.post(f"{PATH}probe/").status_code == 302
    assert len(host.jobs.filter(kind="probe_backend").first().inputs["programs"]) == 2
