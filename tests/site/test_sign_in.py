"""Signing in, sign-up closed, sessions that end."""

from __future__ import annotations

import time

import pytest
from django.core.cache import cache

from quartermaster_site.access.models import AuditEntry
from quartermaster_site.access.services import set_password

PASSWORD = "correct horse battery"


@pytest.fixture(autouse=True)
def _fresh_limits(db):
    cache.clear()


@pytest.fixture
def admin(make_user):
    return make_user("admin")


def sign_in(client, name="admin", password=PASSWORD, host="localhost", **extra):
    return client.post("/login/", {"login": name, "password": password, **extra}, headers={"Host": host})


def test_signs_in_and_goes_on(client, admin):
    response = sign_in(client, next="/models/")
    assert response.status_code == 302
    assert response["Location"] == "/models/"
    assert AuditEntry.objects.get(action="sign-in").actor == "admin"


@pytest.mark.parametrize("target", ["https://evil.example/", "//evil.example/", "javascript:alert(1)"])
def test_goes_nowhere_else(client, admin, target):
    assert sign_in(client, next=target)["Location"] == "/"


def test_wrong_name_and_wrong_password_read_the_same(client, admin):
    wrong_password = sign_in(client, password="nope").content
    wrong_name = sign_in(client, name="nobody", password="nope").content
    message = b"The username and/or password you specified are not correct"
    assert message in wrong_password
    assert message in wrong_name
    assert AuditEntry.objects.filter(action="sign-in", result="refused").count() == 2


def test_too_many_failures_are_stopped(client, admin):
    for _ in range(5):
        sign_in(client, password="nope")
    assert b"Too many" in sign_in(client).content


def test_failures_count_under_every_name_of_the_site(client, admin, settings):
    """A client chooses the host name and port that it sends."""
    settings.ACCOUNT_RATE_LIMITS = {"login_failed": "5/5m/key"}
    for port in range(5):
        sign_in(client, password="nope", host=f"localhost:{port + 1}")
    assert b"Too many" in sign_in(client).content


def test_a_password_that_is_set_anew_opens_the_door_again(client, admin):
    for _ in range(11):
        sign_in(client, name="Admin", password="nope")
    word = set_password(user=admin, password=None)
    assert sign_in(client, password=word).status_code == 302


def test_nobody_can_sign_up(client, admin):
    response = client.get("/account/signup/")
    assert b"password1" not in response.content
    client.post("/account/signup/", {"username": "eve", "password1": PASSWORD, "password2": PASSWORD})
    from django.contrib.auth.models import User

    assert not User.objects.filter(username="eve").exists()


def test_a_page_leads_to_sign_in_and_back(client, admin):
    response = client.get("/models/?q=qwen")
    assert response["Location"] == "/login/?next=%2Fmodels%2F%3Fq%3Dqwen"


def test_an_expired_session_redirects_htmx_without_a_nested_page(client, admin):
    headers = {"HX-Request": "true", "HX-Current-URL": "http://testserver/models/5/?ctx=8192"}
    response = client.get("/models/5/preview/", headers=headers)
    assert response.status_code == 200
    assert response.content == b""
    assert response["HX-Redirect"] == "/login/?next=%2Fmodels%2F5%2F%3Fctx%3D8192"


def test_a_session_ends_after_seven_days(client, admin):
    client.force_login(admin)
    session = client.session
    session["started"] = int(time.time()) - 8 * 24 * 3600
    session.save()
    assert client.get("/").status_code == 302
    assert "_auth_user_id" not in client.session


def test_a_session_in_use_is_renewed_now_and_then(client, admin):
    client.force_login(admin)
    client.get("/")
    first = client.session["renewed"]
    client.get("/")
    assert client.session["renewed"] == first


def test_a_form_without_its_token_is_refused(admin, host):
    from django.test import Client

    client = Client(enforce_csrf_checks=True)
    client.force_login(admin)
    response = client.post("/hosts/local/scan/")
    assert response.status_code == 403
    assert b"expired" in response.content
