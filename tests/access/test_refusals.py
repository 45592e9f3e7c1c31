"""What people were refused is in the audit log, and a flood of it does not fill the log."""

from __future__ import annotations

import pytest
from django.test import Client

from quartermaster_site.access import refusals
from quartermaster_site.access.audit import Actor
from quartermaster_site.access.models import AuditEntry, Policy
from quartermaster_site.access.tokens import create_token
from quartermaster_site.rate import RateLimit


@pytest.fixture(autouse=True)
def _fresh(monkeypatch):
    refusals.MANY.clear()
    monkeypatch.setattr(refusals, "CHANGES", RateLimit(per_second=0.001, burst=3))


@pytest.fixture
def mallory(installation, host, make_user):
    person = make_user("editor", "mallory")
    Policy.objects.create(user=person, host=host, model="*model-1*", level=0)
    return person


def _entries(action):
    return list(AuditEntry.objects.filter(action=action).order_by("pk"))


def test_policy_refusals_are_in_the_audit_log(mallory, installation):
    client, model = Client(), installation["model"]
    client.force_login(mallory)
    client.post(f"/models/{model}/edit/", {"version": "1", "threads": "3"})
    client.post("/hosts/local/folders/add/", {"path": "/etc"})
    _, secret = create_token(name="script", days=30, actor=Actor(user=mallory))
    script = Client(headers={"authorization": f"Bearer {secret}"})
    script.post(f"/api/v1/models/{model}/preview/", {"values": {}}, content_type="application/json")
    hidden, folder, api = _entries(refusals.CHANGE)
    assert (hidden.actor, hidden.object_label, hidden.result) == ("mallory", f"POST /models/{model}/edit/", "refused")
    assert hidden.reason.startswith("404: ")
    assert folder.host_slug == "local"
    assert folder.reason.startswith("403: This needs the role admin")
    assert api.actor == "mallory"
    assert api.request_id


def test_a_hidden_model_and_one_that_is_not_there_are_recorded_alike(mallory, installation):
    client = Client()
    client.force_login(mallory)
    for number in (installation["model"], 987654):
        client.post(f"/models/{number}/edit/", {"version": "1"})
    first, second = ({**vars(entry)} for entry in _entries(refusals.CHANGE))
    assert first["reason"] == second["reason"]
    assert first["changes"] == second["changes"]


def test_floods_and_pages_that_were_asked_for_are_counted(mallory):
    client = Client()
    client.force_login(mallory)
    for number in range(900, 910):
        client.get(f"/models/{number}/")
        client.post(f"/models/{number}/edit/")
    assert len(_entries(refusals.READ)) == 1
    assert len(_entries(refusals.CHANGE)) == 4  # three of their own, and the first that is counted
    assert sum(refusals.MANY.pending().values()) == 9 + 6


def test_nobody_is_recorded_for_what_they_may(client, make_user, installation):
    client.force_login(make_user("viewer"))
    client.get("/models/")
    client.get("/healthz")
    assert not AuditEntry.objects.filter(result="refused").exists()
    Client().post("/models/1/edit/")
    assert not AuditEntry.objects.filter(result="refused").exists()
