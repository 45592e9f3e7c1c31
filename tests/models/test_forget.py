"""Forgetting is explicit; a scan says what is new, changed, back, missing and offline."""

from __future__ import annotations

import os

import pytest
from django.urls import reverse

from models_app.models import Row
from models_app.services import forget_row
from quartermaster_site.access.audit import Actor
from quartermaster_site.errors import NotAllowed, Refused


@pytest.fixture
def missing(scanned, scan, folder):
    (folder / "beta-2b-Q4_0.gguf").unlink()
    scan()
    return Row.objects.get(file_name="beta-2b-Q4_0.gguf")


def test_a_scan_counts_what_changed_and_what_is_back(scanned, scan, folder):
    os.utime(folder / "beta-2b-Q4_0.gguf", (1, 1))
    assert scan().result["changed"] == 1
    assert scan().result["changed"] == 0
    away = folder.with_name("unplugged")
    folder.rename(away)
    assert scan().result["offline"] == 3
    away.rename(folder)
    assert scan().result["back"] == 3


def test_an_editor_forgets_a_missing_model(missing, make_user, client):
    client.force_login(make_user("editor"))
    address = reverse("models:model-forget", args=[missing.pk])
    assert b"Forget model" in client.get(address).content
    assert client.post(address).status_code == 302
    assert not Row.objects.filter(pk=missing.pk).exists()


def test_a_model_on_disk_is_not_forgotten(scanned, make_user):
    with pytest.raises(Refused):
        forget_row(row=Row.objects.first(), actor=Actor(user=make_user("editor")))


def test_an_operator_may_not_forget(missing, make_user):
    with pytest.raises(NotAllowed):
        forget_row(row=missing, actor=Actor(user=make_user("operator")))
