"""Forms sent without a token, by a planted session, or full of junk: refused with a page, and nothing is changed."""

from __future__ import annotations

import re

import pytest
from django.core.cache import cache
from django.db import connection
from django.test import Client

from quartermaster_site.access import services
from tests.access.url_table import ADMIN, CHANGE

PASSWORD = "correct horse battery"
WIZARD = ("/setup/", *(f"/setup/{step}/" for step in ("checks", "administrator", "folders", "memory", "scan", "done")))
JUNK = (
    "\x00",
    "NaN",
    "inf",
    "-1e308",
    "1e308",
    "9" * 400,
    "١٢",
    "[1, 2]",
    '{"a": 1}',
    "\U0001f600" * 9,
    " ",
    "-1",
    "'\"><b>${x}",
)


@pytest.fixture
def admin(make_user, installation):
    client = Client(raise_request_exception=False)
    client.force_login(make_user(ADMIN))
    return client


def stored():
    """Everything in the database but sessions, what counts attempts, and what the audit log says of refused ones."""
    skipped = ("django_session", "usersessions_usersession", "site_cache", "sqlite_sequence")
    with connection.cursor() as cursor:
        names = [name for name in connection.introspection.table_names(cursor) if name not in skipped]
        found = {}
        for name in names:
            done = " WHERE result = 'ok'" if name == "access_auditentry" else ""
            cursor.execute(f'SELECT * FROM "{name}"{done}')
            found[name] = sorted(map(repr, cursor.fetchall()))
    return found


@pytest.mark.parametrize("path", [*CHANGE, "/login/", "/logout/", *WIZARD])
def test_no_form_works_without_its_token(installation, make_user, path):
    client = Client(enforce_csrf_checks=True)
    user = make_user(ADMIN)
    if path not in (*WIZARD, "/login/"):
        client.force_login(user)
    before = stored()
    data = (
        CHANGE[path][1] if path in CHANGE else {"login": ADMIN, "password": PASSWORD, "token": "x", "username": "eve"}
    )
    answer = client.post(path.format(**installation), data)
    assert answer.status_code == 403
    assert b"This form has expired" in answer.content
    assert stored() == before


def test_a_session_planted_before_sign_in_is_worth_nothing(client, make_user):
    make_user(ADMIN)
    cache.clear()
    session = client.session
    session["planted"] = "x"
    session.save()
    before = session.session_key
    client.cookies["sessionid"] = before
    assert client.post("/login/", {"login": ADMIN, "password": PASSWORD}).status_code == 302
    assert client.session.session_key != before
    thief = Client()
    thief.cookies["sessionid"] = before
    assert thief.get("/")["Location"] == "/login/?next=%2F"


def test_nor_one_planted_before_the_set_up(client, db):
    token = services.issue_setup_token()
    client.get(f"/setup/?token={token}")
    before = client.session.session_key
    data = {"username": "ada", "email": "", "password": PASSWORD, "again": PASSWORD}
    assert client.post("/setup/administrator/", data).status_code == 302
    assert client.session.session_key != before
    thief = Client()
    thief.cookies["sessionid"] = before
    assert thief.get("/setup/folders/")["Location"].startswith("/login/")


FORMS = {
    "/hosts/local/settings/memory/": "/hosts/local/settings/memory/",
    "/hosts/local/settings/gpu/": "/hosts/local/settings/gpu/",
    "/hosts/local/folders/": "/hosts/local/folders/add/",
    "/hosts/local/backends/": "/hosts/local/backends/",
    "/hosts/local/by-hand/": "/hosts/local/by-hand/",
    "/hosts/local/by-hand/enhancer/": "/hosts/local/by-hand/enhancer/",
    "/hosts/local/by-hand/image/": "/hosts/local/by-hand/image/",
    "/hosts/local/by-hand/entry/": "/hosts/local/by-hand/entry/",
    "/account/": "/account/",
    "/config/local/": "/config/local/target/",
    "/models/{model}/variants/": "/models/{model}/variants/",
}
"""Page -> where its form goes."""


@pytest.mark.parametrize("shown", FORMS)
def test_junk_in_every_field(admin, installation, shown):
    html = admin.get(shown.format(**installation)).content.decode()
    names = {*re.findall(r'name="([^"]+)"', html), "version"} - {"csrfmiddlewaretoken", "viewport", "htmx-config"}
    for junk in (*JUNK, "x" * 1_000_000):
        for data in (dict.fromkeys(names, junk), dict.fromkeys(names, [junk, "2"])):
            answer = admin.post(FORMS[shown].format(**installation), {**data, "version": "1"})
            assert answer.status_code < 500, (junk[:20], answer.content)
    assert admin.get(shown.format(**installation)).status_code == 200


@pytest.mark.parametrize("shown", ["/models/", "/issues/", "/components/", "/jobs/", "/hosts/local/fits/"])
def test_junk_in_every_query(admin, shown):
    names = ("q", "page", "sort", "state", "cat", "host", "pick", "ctx", "group", "kind", "level", "role")
    for junk in (*JUNK, "x" * 5000, b"\xff\xc0"):
        answer = admin.get(shown, dict.fromkeys(names, junk))
        assert answer.status_code < 500, (junk[:20], answer.content)
