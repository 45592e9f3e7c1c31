"""The first-run wizard: guarded by a one-time token, each step kept, gone once finished."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from django.utils import timezone

from gpus_app.models import Host, HostSetting
from models_app.models import Root, Row
from quartermaster_site.access.services import issue_setup_token
from quartermaster_site.jobs.models import Job
from tests.views.conftest import run

PASSWORD = "correct horse battery"
PERSON = {"username": "ada", "email": "", "password": PASSWORD, "again": PASSWORD}


@pytest.fixture
def claimed(client: Client, gpu_host: Host) -> Client:
    """A visitor who came by the printed link."""
    answer = client.get(f"/setup/?token={issue_setup_token()}")
    assert answer["Location"] == "/setup/checks/"
    return client


def test_everything_leads_to_the_wizard_until_somebody_exists(client: Client, host: Host) -> None:
    assert client.get("/models/")["Location"] == "/setup/"
    assert "one-time link" in client.get("/setup/").content.decode()
    assert client.get("/setup/checks/")["Location"] == "/setup/"
    assert client.get("/setup/folders/")["Location"] == "/setup/"


def test_a_wrong_token_opens_nothing(client: Client, host: Host) -> None:
    issue_setup_token()
    answer = client.post("/setup/", {"token": "guess"})
    assert answer.status_code == 403
    assert client.get("/setup/administrator/")["Location"] == "/setup/"


def test_the_whole_way(claimed: Client, gpu_host: Host, shelf: Path, django_capture_on_commit_callbacks: Any) -> None:
    def post(step: str, **values: str) -> Any:
        return run(django_capture_on_commit_callbacks, lambda: claimed.post(f"/setup/{step}/", values))

    checks = claimed.get("/setup/checks/").content.decode()
    assert "Database" in checks
    assert f"{gpu_host.name} answers" in checks, "also before somebody is signed in"
    assert post("checks")["Location"] == "/setup/administrator/"
    assert post("administrator", **PERSON)["Location"] == "/setup/host/"
    assert post("host", host=gpu_host.slug)["Location"] == "/setup/folders/"
    assert post("folders", path=str(shelf), category="")["Location"] == "/setup/folders/"
    assert Root.objects.get().path == str(shelf)
    assert post("folders", next="1")["Location"] == "/setup/backends/"
    assert post("backends", next="1")["Location"] == "/setup/memory/"
    assert post("memory", version="1", targetVramGB="20", maxRamGB="32")["Location"] == "/setup/scan/"
    assert HostSetting.objects.get(section="memory").values["targetVramGB"] == 20
    assert post("scan", scan="1")["Location"] == "/setup/scan/"
    assert Row.objects.exclude(model_class="").count() == 4
    page = claimed.get("/setup/scan/").content.decode()
    assert "5 models in 5 quants, 1 finding" in page  # as the list counts them: the unreadable file too
    assert "what was found wrong" in page
    assert claimed.get("/setup/scan/", headers={"HX-Request": "true"}).status_code == 286
    assert post("scan", next="1")["Location"] == "/setup/router/"
    target = {"path": "/srv/router/config.yaml", "dialect": "quartermaster", "was-dialect": "llama-swap"}
    assert post("router", **target)["Location"] == "/setup/done/"
    gpu_host.refresh_from_db()
    assert (gpu_host.publish_path, gpu_host.publish_dialect) == ("/srv/router/config.yaml", "quartermaster")
    assert post("done", to="config")["Location"] == "/config/local/"
    assert claimed.get("/setup/").status_code == 404
    assert claimed.get("/setup/checks/").status_code == 404


def test_the_token_works_once(claimed: Client) -> None:
    claimed.post("/setup/administrator/", PERSON)
    assert get_user_model().objects.count() == 1
    other = Client()
    claimed.logout()
    for visitor in (other, claimed):
        for step in ("checks", "administrator", "folders", "memory", "scan", "done"):
            answer = visitor.get(f"/setup/{step}/")
            assert answer["Location"].startswith("/login/?next=")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"again": "another one entirely"}, "two passwords differ"),
        ({"password": "short", "again": "short"}, "too short"),
        ({"username": ""}, "required"),
        ({"username": "a b"}, "valid username"),
        ({"email": "nonsense"}, "valid email"),
    ],
)
def test_bad_accounts_are_refused_beside_their_field(claimed: Client, changes: dict[str, str], message: str) -> None:
    answer = claimed.post("/setup/administrator/", {**PERSON, **changes})
    assert answer.status_code == 422
    assert message in answer.content.decode()
    assert not get_user_model().objects.exists()


def test_a_bad_folder_keeps_what_was_typed(claimed: Client) -> None:
    claimed.post("/setup/administrator/", PERSON)
    answer = claimed.post("/setup/folders/", {"path": "models", "category": ""})
    assert answer.status_code == 422
    html = answer.content.decode()
    assert 'value="models"' in html
    assert "whole path" in html


def test_unknown_steps_are_not_found(claimed: Client) -> None:
    assert claimed.get("/setup/nonsense/").status_code == 404


def test_a_claimed_link_is_not_asked_for_again(claimed: Client) -> None:
    for address in ("/setup/", "/setup/memory/"):
        assert claimed.get(address, follow=True).redirect_chain[-1] == ("/setup/checks/", 302)
    issue_setup_token()  # the server was started again: the old proof is worth nothing
    assert claimed.get("/setup/checks/")["Location"] == "/setup/"
    assert "Set-up code" in claimed.get("/setup/").content.decode()


def test_a_used_link_leads_to_the_sign_in(client: Client, gpu_host: Host) -> None:
    token = issue_setup_token()
    client.get(f"/setup/?token={token}")
    client.post("/setup/administrator/", PERSON)
    chain = Client().get(f"/setup/?token={token}", follow=True).redirect_chain
    assert chain[-1] == ("/login/?next=%2Fsetup%2Ffolders%2F", 302)


def test_a_folder_typed_wrongly_can_be_taken_back(claimed: Client, gpu_host: Host) -> None:
    claimed.post("/setup/administrator/", PERSON)
    claimed.post("/setup/folders/", {"path": "/srv/modles", "category": ""})
    root = Root.objects.get()
    html = claimed.get("/setup/folders/").content.decode()
    assert 'href="/setup/host/">Back' in html
    address = f"/hosts/{gpu_host.slug}/folders/{root.pk}/remove/"
    assert f'href="{address}?next=/setup/folders/"' in html
    assert 'href="/setup/folders/">Keep it' in claimed.get(f"{address}?next=/setup/folders/").content.decode()
    assert claimed.post(address, {"next": "https://elsewhere.example/"})["Location"] == "/hosts/local/folders/"
    assert not Root.objects.exists()


def test_folders_that_nobody_has_scanned_are_named(claimed: Client, gpu_host: Host) -> None:
    claimed.post("/setup/administrator/", PERSON)
    claimed.post("/setup/folders/", {"path": "/srv/models", "category": ""})
    html = claimed.get("/setup/scan/").content.decode()
    assert "Not scanned yet:" in html
    assert "/srv/models" in html


def test_a_wizard_that_was_left_is_called_to_mind(claimed: Client, gpu_host: Host) -> None:
    claimed.post("/setup/administrator/", PERSON)
    assert 'href="/setup/">Continue' in claimed.get("/").content.decode()
    assert claimed.get("/setup/")["Location"] == "/setup/folders/"
    claimed.post("/setup/done/", {"to": "models"})
    assert "Set-up:" not in claimed.get("/").content.decode()


def test_the_backends_step_looks_by_itself_and_adds_what_is_picked(
    claimed: Client,
    gpu_host: Host,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    django_capture_on_commit_callbacks: Any,
) -> None:
    program = tmp_path / "llama-server"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("QM_BACKEND_ROOTS", str(tmp_path))
    claimed.post("/setup/administrator/", PERSON)
    Host.objects.update(last_seen_at=timezone.now())
    html = run(django_capture_on_commit_callbacks, lambda: claimed.get("/setup/backends/")).content.decode()
    assert "looks for them" in html
    html = claimed.get("/setup/backends/").content.decode()
    assert f'value="{program}">Add' in html
    added = run(
        django_capture_on_commit_callbacks,
        lambda: claimed.post("/setup/backends/", {"kind": "llama", "path": str(program)}),
    )
    assert added["Location"] == "/setup/backends/"
    html = claimed.get("/setup/backends/").content.decode()
    assert "No other program of a known name was found" in html
    assert "llama-server" in html
    run(django_capture_on_commit_callbacks, lambda: claimed.post("/setup/backends/", {"search": "1"}))
    assert Job.objects.filter(kind="find_programs").count() == 2


@pytest.mark.parametrize(
    ("path", "message"), [("config.yaml", "Write the whole path"), ("/srv/router/", "This names a folder")]
)
def test_a_bad_target_is_refused_beside_its_field(claimed: Client, gpu_host: Host, path: str, message: str) -> None:
    claimed.post("/setup/administrator/", PERSON)
    answer = claimed.post("/setup/router/", {"path": path, "dialect": "llama-swap"})
    assert answer.status_code == 422
    assert message in answer.content.decode()


class TestHost:
    """Which machine the rest of the set-up is about."""

    @pytest.fixture
    def wizard(self, claimed: Client) -> Client:
        claimed.post("/setup/administrator/", PERSON)
        return claimed

    def test_it_defaults_to_this_machine_and_says_why_there_is_no_other(self, wizard: Client, gpu_host: Host) -> None:
        html = wizard.get("/setup/host/").content.decode()
        assert f'btn-primary" id="use-{gpu_host.slug}"' in html
        assert "where no other machine can reach it" in html
        assert 'href="/setup/checks/">Back' in html

    def test_one_that_is_added_here_arrives_and_is_set_up(
        self, wizard: Client, gpu_host: Host, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("QM_REDIS_URL", "redis://:shared@broker.example:6379/0")
        assert wizard.post("/setup/host/", {"slug": "A B"}).status_code == 422
        html = wizard.post("/setup/host/", {"slug": "gpu-a", "name": "Big one"}).content.decode()
        assert "./quartermaster agent --server http://testserver --code qme-" in html
        assert "Continue with Big one" in html
        poll = {"HX-Request": "true", "HX-Target": "machines"}
        part = wizard.get("/setup/host/", headers=poll).content.decode()
        assert part.lstrip().startswith("<form")
        assert "for its agent" in part
        assert "qme-" not in part
        assert wizard.post("/setup/host/", {"host": "gpu-a"})["Location"] == "/setup/folders/"
        assert "Folders on Big one" in wizard.get("/setup/folders/").content.decode()
        assert wizard.post("/setup/host/", {"host": "nobody"}).status_code == 404
