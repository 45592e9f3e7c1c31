"""Requests that another site makes a signed-in browser send: nothing is changed without the token of the form.

The tables of tests/access walk our own forms. Here every address of the URL table is asked, those of allauth and of the
API too, so that one that comes along tomorrow is asked as well.
"""

from __future__ import annotations

import re

import pytest
from django.db import connection
from django.test import Client

from tests.access.test_junk import stored
from tests.access.url_table import ASK, CHANGE, READ
from tests.security.addresses import ALL, API

CHANGING = ("POST", "PUT", "PATCH", "DELETE")
ASKED_BY_PROGRAMS = [path for path in ALL if path.startswith(API) and path not in (API, f"{API}openapi.json")]
"""By token alone. The description of the API is for everybody and takes nothing."""
MACHINES, PROOF_INSIDE = f"{API}agents/", (400, 401, 403, 404, 405, 422)
"""Machines carry what proves them in what they send; no browser holds it."""
RECORDED = {"/audit/export/", "/config/local/{revision}/download/"}
"""Reading this is noted in the audit log, and nothing else."""
PASSING = ("django_session", "usersessions_usersession", "site_cache")
TOKEN = re.compile(r'name="csrfmiddlewaretoken" value="(\w+)"')


@pytest.fixture
def careful(visit):
    """A signed-in administrator whose browser is checked as a real one is."""
    return visit("admin", enforce_csrf_checks=True)


def token_of(client, path="/account/"):
    return TOKEN.search(client.get(path).content.decode())[1]


@pytest.mark.parametrize("method", CHANGING)
def test_no_address_takes_a_change_without_the_token(careful, method):
    before = stored()
    for path in ALL:
        answer = careful.generic(method, path, b"a=1", content_type="application/x-www-form-urlencoded")
        expected = PROOF_INSIDE if path.startswith(MACHINES) else (401, 405) if path in ASKED_BY_PROGRAMS else (403,)
        assert answer.status_code in expected, path
    assert stored() == before


def test_the_api_takes_no_cookie(careful):
    """Nor does it with a form token beside the cookie: only `Authorization` counts, which no other site can add."""
    token = token_of(careful)
    for path in ASKED_BY_PROGRAMS:
        sent = careful.post(path, "{}", "application/json", headers={"X-CSRFToken": token})
        for answer in (careful.get(path), sent):
            assert answer.status_code in (PROOF_INSIDE if path.startswith(MACHINES) else (401, 405)), path
            assert answer["Content-Type"].startswith("application/json"), path


@pytest.mark.parametrize("way", ["none", "wrong", "of another session", "in the address", "as JSON", "too long"])
def test_only_the_token_of_this_session_counts(careful, visit, way):
    token, other = token_of(careful), token_of(visit("admin", enforce_csrf_checks=True))
    path, data, kind = "/account/", {"theme": "dark", "density": "compact"}, {}
    if way == "as JSON":
        data, kind = (
            {"theme": "dark", "density": "compact", "csrfmiddlewaretoken": token},
            {"content_type": "application/json"},
        )
    elif way == "in the address":
        path = f"/account/?csrfmiddlewaretoken={token}"
    elif way != "none":
        data["csrfmiddlewaretoken"] = {"wrong": "x" * 64, "of another session": other, "too long": "a" * 99_999}[way]
    assert careful.post(path, data, **kind).status_code == 403
    assert (
        careful.post("/account/", {"theme": "dark", "density": "compact", "csrfmiddlewaretoken": token}).status_code
        == 302
    )


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://testserver.evil.example"},
        {"Origin": "http://testserver:81"},
    ],
    ids=lambda headers: headers["Origin"],
)
def test_a_form_of_another_origin_is_refused_with_a_good_token(careful, headers):
    data = {"theme": "dark", "density": "compact", "csrfmiddlewaretoken": token_of(careful)}
    assert careful.post("/account/", data, headers=headers).status_code == 403


@pytest.mark.parametrize(
    "referer", ["https://evil.example/", "http://testserver/", "", "https://testserver.evil.example/"]
)
def test_over_https_the_referer_counts_too(careful, referer):
    data = {"theme": "dark", "density": "compact", "csrfmiddlewaretoken": token_of(careful)}
    assert careful.post("/account/", data, secure=True, headers={"Referer": referer}).status_code == 403
    assert careful.post("/account/", data, secure=True, headers={"Referer": "https://testserver/"}).status_code == 302


def test_looking_changes_nothing(visit, tree):
    client, written, where = visit("admin"), [], ""
    client.get("/")

    def note(execute, sql, *more):
        if sql.startswith(("INSERT", "UPDATE", "DELETE")) and not any(table in sql for table in PASSING):
            written.append(f"{where}: {sql[:80]}")
        return execute(sql, *more)

    with connection.execute_wrapper(note):
        for path in (*READ, *ASK):
            if path not in RECORDED:
                where = path
                client.get(path.format(**tree))
    assert not written


def test_a_look_is_no_change_in_disguise(visit, tree):
    client, disguise = visit("admin"), {"X-HTTP-Method-Override": "POST", "X-Method-Override": "POST"}
    client.get("/")
    before = stored()
    for path, (_, data) in CHANGE.items():
        words = {name: value for name, value in data.items() if isinstance(value, str)}
        client.get(path.format(**tree).partition("?")[0], {**words, "_method": "POST"}, headers=disguise)
    assert stored() == before


def test_signing_out_needs_a_form(visit):
    client = visit("viewer")
    client.get("/logout/")
    assert client.get("/").status_code == 200


def test_the_token_of_a_form_is_another_after_signing_in(tree):
    """A token that somebody planted before is worth nothing behind the door."""
    client = Client(enforce_csrf_checks=True)
    planted = token_of(client, "/login/")
    data = {"login": "viewer", "password": "correct horse battery", "csrfmiddlewaretoken": planted}
    cookie = client.cookies["csrftoken"].value
    assert client.post("/login/", data).status_code == 302
    assert client.cookies["csrftoken"].value != cookie
    assert (
        client.post("/account/", {"theme": "dark", "density": "compact", "csrfmiddlewaretoken": planted}).status_code
        == 403
    )
