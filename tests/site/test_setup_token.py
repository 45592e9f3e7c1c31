"""The first administrator: one token, one use, then the wizard is over for good."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from quartermaster_site import preparation
from quartermaster_site.access import services
from quartermaster_site.access.audit import Actor
from quartermaster_site.access.models import AuditEntry, Installation, Role
from quartermaster_site.errors import NotAllowed, Refused

pytestmark = pytest.mark.django_db
GOOD = {"username": "ada", "email": "", "password": "correct horse battery", "actor": Actor()}


def test_a_token_makes_one_administrator():
    proof = services.claim_setup(token=services.issue_setup_token())
    user = services.create_administrator(proof=proof, **GOOD)
    assert user.account.role == Role.ADMIN
    assert AuditEntry.objects.get().action == "user.create"
    with pytest.raises(NotAllowed):
        services.create_administrator(proof=proof, **{**GOOD, "username": "eve"})
    assert User.objects.count() == 1


def test_only_its_hash_is_stored():
    token = services.issue_setup_token()
    assert token not in str(Installation.objects.values().get())


def test_a_new_token_ends_the_old_one():
    old = services.issue_setup_token()
    services.issue_setup_token()
    with pytest.raises(NotAllowed):
        services.claim_setup(token=old)


@pytest.mark.parametrize("token", ["", "guess", "é" * 100])
def test_a_guess_is_refused(token):
    services.issue_setup_token()
    with pytest.raises(NotAllowed, match="does not work"):
        services.claim_setup(token=token)


def test_no_token_was_ever_made():
    with pytest.raises(NotAllowed):
        services.claim_setup(token="")


@pytest.mark.parametrize(
    ("fields", "field"),
    [({"username": ""}, "username"), ({"email": "not one"}, "email"), ({"password": "short"}, "password")],
)
def test_every_bad_field_is_named(fields, field):
    proof = services.claim_setup(token=services.issue_setup_token())
    with pytest.raises(Refused) as refused:
        services.create_administrator(proof=proof, **{**GOOD, **fields})
    assert field in refused.value.fields
    assert not User.objects.exists()


def test_until_then_every_page_leads_to_the_wizard(client):
    for path in ("/", "/models/", "/login/"):
        assert client.get(path)["Location"] == "/setup/"
    assert client.get("/healthz").content == b"ok\n"


def test_the_wizard_is_gone_when_it_is_finished(client, actor):
    services.finish_setup(actor=actor)
    client.force_login(actor.user)
    assert client.get("/setup/").status_code == 404


def test_the_command_prints_a_link(capsys):
    call_command("setup_link", base="https://qm.example/")
    link = capsys.readouterr().out.strip()
    services.claim_setup(token=link.removeprefix("https://qm.example/setup/?token="))


def test_the_link_leads_to_where_the_pages_were_last_served(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("QM_DATA_DIR", str(tmp_path))
    call_command("setup_link")
    assert capsys.readouterr().out.startswith("http://127.0.0.1:8420/setup/?token=")
    preparation.note_address("http://atlas:9000")
    call_command("setup_link")
    assert capsys.readouterr().out.startswith("http://atlas:9000/setup/?token=")


def test_the_command_refuses_when_there_is_an_administrator(actor):
    with pytest.raises(CommandError, match="set_password"):
        call_command("setup_link")


def test_a_password_can_be_set_on_the_command_line(client, make_user, capsys):
    user = make_user("viewer")
    client.force_login(user)
    call_command("set_password", "viewer", generate=True)
    password = capsys.readouterr().out.strip().splitlines()[-1]
    user.refresh_from_db()
    assert user.check_password(password)
    make_user("admin")
    assert client.get("/").status_code == 302
