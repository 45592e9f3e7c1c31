"""The check against llama.cpp on the Plan tab, and its settings, with and without JavaScript."""

from __future__ import annotations

import re

import pytest

from gpus_app.models import Backend
from models_app.models import CheckProgram, Override, Row, Verification
from quartermaster_site.jobs.models import Job, State
from tests.fit_params import CASES
from tests.llama_stand_in import BUILD, llama_folder
from tests.views.conftest import ROLES, run

CASE = CASES[0]
HTMX = {"HX-Request": "true", "HX-Target": "check"}


@pytest.fixture
def server(tmp_path):
    return llama_folder(tmp_path / "llama", CASE.recorded)


@pytest.fixture
def model(scanned, server):
    """The model of the recorded answer, everything pinned as it was recorded."""
    Backend.objects.create(host=scanned, slug="llama", kind="llama", path=str(server), starred=True)
    found = Row.objects.get(file_name__startswith=CASE.model)
    Override.objects.create(host=scanned, match=found.path, fields={"customArgs": CASE.text}, version=1)
    return found


@pytest.fixture
def found(model, server):
    """The host has found the program."""
    path = str(server.parent / "llama-fit-params")
    return CheckProgram.objects.create(
        host=model.host, server=str(server), path=path, build=BUILD, looked_at=model.first_seen_at
    )


def _text(answer):
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", answer.content.decode()))


def _section(client, model, query=""):
    page = client.get(f"/models/{model.pk}/{query}").content.decode()
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page[page.index('id="check"') : page.index("Context against")]))


def test_before_anybody_looked(as_role, model):
    said = _section(as_role("operator"), model)
    assert "Nobody has looked yet whether llama-fit-params lies beside" in said
    assert "cmake --build build --target llama-fit-params" in said
    assert "Look for it" in said
    assert "Check against llama.cpp" not in said


def test_looking_finds_it(as_role, model, server, django_capture_on_commit_callbacks):
    client = as_role("operator")
    answer = run(django_capture_on_commit_callbacks, lambda: client.post(f"/models/{model.pk}/check/look/"))
    assert answer["Location"] == f"/models/{model.pk}/#check"
    assert "Check against llama.cpp" in _section(client, model)
    assert Job.objects.filter(kind="find_checker", state=State.SUCCEEDED).exists()
    assert "llama-fit-params" not in _text(client.get("/jobs/"))


def test_a_missing_one_says_how_to_get_it(as_role, model, server, django_capture_on_commit_callbacks):
    (server.parent / "llama-fit-params").unlink()
    client = as_role("operator")
    run(django_capture_on_commit_callbacks, lambda: client.post(f"/models/{model.pk}/check/look/"))
    said = _section(client, model)
    assert f"llama.cpp cannot be asked: there is no llama-fit-params beside {server}" in said
    assert "another place can be named" in said


def test_the_whole_way_without_javascript(as_role, model, found, django_capture_on_commit_callbacks):
    client = as_role("operator")
    address = f"/models/{model.pk}/check/"
    answer = run(django_capture_on_commit_callbacks, lambda: client.post(address))
    assert answer["Location"] == f"/models/{model.pk}/#check"
    said = _section(client, model)
    assert "llama.cpp agrees to the MiB" in said
    assert f"build {BUILD}" in said
    assert "by operator" in said
    assert re.search(r"Weights 0 of 4,455 0 of 333 Context 0 of 4,608 0 of 0 Compute buffers", said)
    assert "Check again" in said
    assert "Made for another" not in said
    job = Job.objects.get(kind="verify_memory")
    page = client.get(f"/jobs/{job.pk}/").content.decode()
    assert f'href="/models/{model.pk}/#check"' in page
    assert "Agrees to" in page


def test_a_what_if_is_checked_and_shown_as_its_own(as_role, model, found, server, django_capture_on_commit_callbacks):
    client = as_role("operator")
    run(django_capture_on_commit_callbacks, lambda: client.post(f"/models/{model.pk}/check/"))
    said = _section(client, model, "?ngl=20")
    assert "Made for another launch than the one planned here." in said
    answer = run(django_capture_on_commit_callbacks, lambda: client.post(f"/models/{model.pk}/check/?ngl=20"))
    assert answer["Location"] == f"/models/{model.pk}/?ngl=20#check"
    asked = (server.parent / "asked").read_text().split("\n")
    assert "20" in asked
    assert "Made for another" not in _section(client, model, "?ngl=20")
    assert Verification.objects.count() == 2


def test_another_build_is_said(as_role, model, found, django_capture_on_commit_callbacks):
    client = as_role("operator")
    run(django_capture_on_commit_callbacks, lambda: client.post(f"/models/{model.pk}/check/"))
    CheckProgram.objects.update(build="9999")
    assert "Made with another build; the server is 9999 now." in _section(client, model)


def test_what_it_holds_beyond_is_a_term_and_said(as_role, model, found, server, django_capture_on_commit_callbacks):
    (server.parent / "answer").write_text(CASE.recorded.replace(" 360", " 574"))
    client = as_role("editor")
    run(django_capture_on_commit_callbacks, lambda: client.post(f"/models/{model.pk}/check/"))
    page = _text(client.get(f"/models/{model.pk}/"))
    assert re.search(
        r"llama\.cpp holds up to 21\d MiB on a device more than projected\. Plans of this model keep", page
    )
    assert re.search(
        rf"Kept free: llama\.cpp measured 21\d MiB \(on a device\) more than projected on build {BUILD[:5]}", page
    )
    assert "Measured extra , how?" in page
    Row.objects.filter(pk=model.pk).update(size_bytes=1)
    assert "The plan was made anew with what this check has shown" in _text(client.get(f"/models/{model.pk}/"))
    answer = client.post("/hosts/local/settings/checks/", {"version": 0})
    assert answer.status_code == 302
    page = _text(client.get(f"/models/{model.pk}/"))
    assert "Plans do not keep that free: it is switched off for this host." in page
    assert "Measured extra" not in page


def test_htmx_gets_the_section_and_polls_while_it_runs(as_role, model, found):
    client = as_role("operator")
    running = client.post(f"/models/{model.pk}/check/", headers=HTMX)
    body = running.content.decode()
    assert running.status_code == 200
    assert body.lstrip().startswith('<section id="check" data-poll')
    assert f'hx-get="/models/{model.pk}/check/"' in body
    assert "queued" in body
    assert "Check against llama.cpp</button>" not in body
    assert client.get(f"/models/{model.pk}/check/", headers=HTMX).status_code == 200
    Job.objects.update(state=State.FAILED, error="llama-fit-params refused the command: no", error_kind="VerifyError")
    over = client.get(f"/models/{model.pk}/check/", headers=HTMX)
    assert over.status_code == 286
    assert "llama-fit-params refused the command: no." in _text(over)
    assert "data-poll" not in over.content.decode()
    plain = client.get(f"/models/{model.pk}/check/")
    assert plain["Location"] == f"/models/{model.pk}/#check"


def test_the_preview_brings_the_section_of_its_values(as_role, model, found):
    client = as_role("operator")
    answer = client.post(f"/models/{model.pk}/preview/", {"ngl": "20"}, headers={"HX-Request": "true"})
    assert f'action="/models/{model.pk}/check/?ngl=20"' in answer.content.decode()


@pytest.mark.parametrize("role", ROLES)
def test_roles(as_role, model, found, role):
    client = as_role(role)
    allowed = role != "viewer"
    assert ("Check against llama.cpp" in _section(client, model)) is allowed
    assert (client.post(f"/models/{model.pk}/check/").status_code != 403) is allowed
    assert (client.post(f"/models/{model.pk}/check/look/").status_code != 403) is allowed
    saved = client.post("/hosts/local/settings/checks/", {"version": 0, "measuredExtra": "on"}).status_code
    assert (saved != 403) is (role in ("editor", "admin"))
    assert client.get("/hosts/local/settings/checks/").status_code == 200


def test_models_of_other_engines_have_no_check(as_role, scanned):
    other = Row.objects.get(file_name__startswith="nomic")
    assert 'id="check"' not in as_role("operator").get(f"/models/{other.pk}/").content.decode()


class TestSettings:
    def test_a_path_is_named_and_refused(self, as_role, scanned, found):
        client = as_role("admin")
        page = _text(client.get("/hosts/local/settings/checks/"))
        assert BUILD in page
        bad = client.post(
            "/hosts/local/settings/checks/", {"version": 0, "fitParams": "/bin/sh", "measuredExtra": "on"}
        )
        assert bad.status_code == 422
        assert "must begin with llama-fit-params" in _text(bad)
        good = {"version": 0, "fitParams": "/opt/llama-fit-params", "measuredExtra": "on"}
        assert client.post("/hosts/local/settings/checks/", good).status_code == 302
        late = client.post("/hosts/local/settings/checks/", {"version": 0, "fitParams": "", "measuredExtra": "on"})
        assert late.status_code == 409
        assert "They are now: /opt/llama-fit-params, on." in _text(late)

    def test_an_editor_switches_but_does_not_name(self, as_role, scanned):
        client = as_role("editor")
        sent = {"version": 0, "fitParams": "/opt/llama-fit-params"}
        assert client.post("/hosts/local/settings/checks/", sent).status_code == 302
        values = scanned.settings.get(section="checks").values
        assert values == {"measuredExtra": False}
