"""Headers of pages, for everybody: a strict CSP, no framing, nothing kept by caches."""

from __future__ import annotations

import pytest


@pytest.fixture
def admin_client(client, make_user):
    client.force_login(make_user("admin"))
    return client


POLICY = {
    "default-src": "'self'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self' data:",
    "object-src": "'none'",
    "frame-ancestors": "'none'",
    "form-action": "'self'",
    "base-uri": "'none'",
}


@pytest.mark.parametrize("path", ["/login/", "/", "/models/", "/jobs/", "/nowhere/"])
def test_every_page_has_the_strict_policy(admin_client, path):
    response = admin_client.get(path)
    policy = dict(part.strip().split(" ", 1) for part in response["Content-Security-Policy"].split(";") if part.strip())
    assert policy == POLICY
    assert response["X-Frame-Options"] == "DENY"
    assert response["X-Content-Type-Options"] == "nosniff"
    assert response["Referrer-Policy"] == "same-origin"
    assert response["Cross-Origin-Opener-Policy"] == "same-origin"


@pytest.mark.parametrize("path", ["/", "/models/", "/jobs/", "/hosts/"])
def test_pages_of_a_signed_in_person_are_not_stored(admin_client, path):
    assert "no-store" in admin_client.get(path)["Cache-Control"]


@pytest.mark.parametrize("path", ["/", "/models/", "/hosts/"])
def test_no_page_has_anything_inline(admin_client, path):
    import re

    body = admin_client.get(path).content.decode()
    assert not re.search(r"<[^>]+\sstyle=", body)
    assert not re.search(r"<[^>]+\son[a-z]+=", body)
    assert not re.search(r"<script(?![^>]*\bsrc=)(?![^>]*type=.application/json)[^>]*>\s*\S", body)
    assert "hx-on" not in body


def test_pages_differ_for_htmx(admin_client):
    assert "HX-Request" in admin_client.get("/models/")["Vary"]


def test_the_session_cookie_is_kept_from_scripts(client, make_user):
    make_user("admin")
    client.post("/login/", {"login": "admin", "password": "correct horse battery"})
    cookie = client.cookies["sessionid"]
    assert cookie["httponly"]
    assert cookie["samesite"] == "Lax"
