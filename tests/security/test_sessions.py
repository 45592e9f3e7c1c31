"""Sessions: another key behind the door, gone when they should be, kept from scripts, and nobody else's."""

from __future__ import annotations

import importlib.util

import pytest
from allauth.usersessions.models import UserSession
from django.contrib.auth import get_user_model
from django.contrib.auth.hashers import MD5PasswordHasher
from django.contrib.sessions.models import Session
from django.core.cache import cache
from django.test import Client

from quartermaster_site import settings as site
from quartermaster_site.access.models import Account
from tests.security.conftest import PASSWORD

NEW = "another horse battery"


def sign_in(client, name="viewer", password=PASSWORD, **headers):
    return client.post("/login/", {"login": name, "password": password}, **headers)


def is_in(client):
    return client.get("/account/").status_code == 200


def with_cookie(key):
    client = Client()
    client.cookies["sessionid"] = key
    return client


def test_the_key_is_another_one_behind_the_door(client, tree):
    """Also where the browser brings the key of somebody who is signed in."""
    client.get("/login/")
    sign_in(client)
    first = client.cookies["sessionid"].value
    client.post("/logout/")
    client.cookies["sessionid"] = first
    sign_in(client, "editor")
    assert client.cookies["sessionid"].value != first
    assert not is_in(with_cookie(first))


def test_signing_out_ends_the_session_where_it_is_kept(visit):
    client = visit("viewer")
    client.get("/")
    key = client.cookies["sessionid"].value
    client.post("/logout/")
    assert not is_in(with_cookie(key))
    assert not Session.objects.filter(session_key=key).exists()


def test_a_changed_password_ends_the_other_sessions(visit):
    here, there = visit("viewer"), visit("viewer")
    before = here.cookies["sessionid"].value
    assert is_in(there)
    data = {"oldpassword": PASSWORD, "password1": NEW, "password2": NEW}
    assert here.post("/account/password/change/", data).status_code == 302
    assert is_in(here)
    assert here.cookies["sessionid"].value != before
    assert not is_in(there)
    assert not is_in(with_cookie(before))


@pytest.mark.parametrize("end", ["reset", "switched off", "ended by an administrator", "ended by the person"])
def test_a_session_that_is_ended_is_over_at_once(visit, end):
    person, admin = get_user_model().objects.get(username="viewer"), visit("admin")
    there, other = visit("viewer"), visit("viewer")
    assert is_in(there)
    number = UserSession.objects.get(session_key=there.session.session_key).pk
    page = f"/access/users/{person.pk}/"
    if end == "reset":
        admin.post(f"{page}password/")
    elif end == "switched off":
        admin.post(page, {"role": "viewer"})
    elif end == "ended by an administrator":
        admin.post(f"{page}sessions/{number}/end/")
    else:
        other.post("/account/sessions/end/", {"session": str(number)})
    assert not is_in(there)


@pytest.mark.parametrize("key", ["", "x", "a" * 32, "../../etc/passwd", "\x00", "a" * 5000, "' OR 1=1 --", "é" * 16])
def test_a_made_up_key_is_worth_nothing(tree, db, key):
    client = with_cookie(key)
    assert not is_in(client)
    assert client.get("/login/").status_code == 200


def test_a_key_in_the_address_is_worth_nothing(visit):
    key = visit("admin").cookies["sessionid"].value
    for address in (f"/account/?sessionid={key}", f"/account/;sessionid={key}"):
        assert Client().get(address).status_code in (302, 404)


@pytest.fixture
def behind_tls(settings, monkeypatch):
    """The site with the settings that QM_HTTPS makes, read by the same file."""
    monkeypatch.setenv("QM_HTTPS", "1")
    spec = importlib.util.spec_from_file_location("settings_behind_tls", site.__file__)
    read = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(read)
    for name in (
        "SESSION_COOKIE_SECURE",
        "CSRF_COOKIE_SECURE",
        "SECURE_HSTS_SECONDS",
        "SECURE_PROXY_SSL_HEADER",
        "SESSION_COOKIE_HTTPONLY",
        "SESSION_COOKIE_SAMESITE",
    ):
        setattr(settings, name, getattr(read, name))


@pytest.mark.parametrize("way", ["tls", "proxy"])
def test_behind_tls_cookies_are_for_tls_alone(behind_tls, tree, db, way):
    over = {"secure": True} if way == "tls" else {"headers": {"X-Forwarded-Proto": "https"}}
    client = Client()
    answer = client.get("/login/", **over)
    assert answer["Strict-Transport-Security"].startswith("max-age=2592000")
    sign_in(client, **over)
    for name in ("sessionid", "csrftoken"):
        assert client.cookies[name]["secure"], name
        assert client.cookies[name]["samesite"] == "Lax", name
        assert not client.cookies[name]["domain"], name
    assert client.cookies["sessionid"]["httponly"]


def test_no_other_cookie_carries_rights(visit):
    client = visit("admin")
    client.get("/hosts/local/")
    assert set(client.cookies) <= {"sessionid", "csrftoken", "messages", "qm-host"}


@pytest.mark.parametrize("name", ["viewer", "VIEWER", "nobody", "switched-off", "no-password", "a\nb"])
def test_sign_in_takes_as_long_for_every_name(tree, db, monkeypatch, name):
    """Counted in passwords that are hashed, since clocks of a busy machine tell nothing."""
    off = get_user_model().objects.create_user(username="switched-off", password=PASSWORD, is_active=False)
    Account.objects.create(user=off)
    Account.objects.create(user=get_user_model().objects.create_user(username="no-password"))
    hashed, encode = [], MD5PasswordHasher.encode
    monkeypatch.setattr(MD5PasswordHasher, "encode", lambda *given, **more: hashed.append(1) or encode(*given, **more))

    def work(who):
        cache.clear()
        hashed.clear()
        assert sign_in(Client(), who, "wrong").status_code == 200
        return len(hashed)

    assert 0 < work("viewer") == work(name)
