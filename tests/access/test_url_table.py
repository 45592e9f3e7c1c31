"""Every address × role × whole or fragment × object visible, hidden, granted, limited, against its table."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.core.cache import cache
from django.db import transaction
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver
from django.utils import timezone

from gpus_app.models import Host
from models_app.models import Publishing, Revision, RevisionDetails, Root, Router, Row, TargetWatch
from quartermaster_site.access.audit import Actor
from quartermaster_site.access.models import Account, AuditEntry, Installation, Policy
from quartermaster_site.access.refusals import CHANGE, READ
from quartermaster_site.access.tokens import create_token
from quartermaster_site.jobs.models import Job
from tests.access.conftest import furnish
from tests.access.url_table import (
    ADMIN,
    BY_CODE,
    EDITOR,
    HINDERED,
    HOST,
    HTMX,
    MODEL,
    NOTHING,
    OWN,
    PREVIEWS,
    ROLES,
    TABLE,
    VIEWER,
    Line,
)

DONE = (200, 202, 204, 286, 302)
WHOLE, FRAGMENT = {}, HTMX
HOST_TOO = {"POST /models/{model}/check/look/"}
"""Of a model's page, but about its host."""


@pytest.fixture(scope="module")
def tree(django_db_setup: None, django_db_blocker: Any) -> Iterator[dict[str, int]]:
    """One of everything, for all tests of this module."""
    with django_db_blocker.unblock():
        block = transaction.atomic()
        block._from_testcase = True  # type: ignore[attr-defined] # as Django's own: durable blocks may stand inside
        with block:
            cache.clear()
            Installation.objects.create(pk=1, setup_finished_at=timezone.now())
            host = Host.objects.create(slug="local", name="Local machine", last_seen_at=timezone.now())
            yield furnish(host, Root.objects.create(host=host, path="/models", state="ok"))
            transaction.set_rollback(True)


class People:
    """A signed-in browser and a script for every role."""

    def __init__(self) -> None:
        self.browsers, self.scripts = {"": Client()}, {"": Client()}
        for role in ROLES:
            person = get_user_model().objects.create_user(username=f"a-{role}")
            Account.objects.create(user=person, role=role)
            _, secret = create_token(name="script", days=30, actor=Actor(user=person))
            self.scripts[role] = Client(headers={"authorization": f"Bearer {secret}"})
            self.browsers[role] = Client()
            self.browsers[role].force_login(person)

    def ask(self, line: Line, role: str, tree: dict[str, int], headers: dict[str, str]) -> Any:
        """The answer; what it changed is undone."""
        path = line.path.format(**tree)
        data = {key: value.format(**tree) if isinstance(value, str) else value for key, value in line.data.items()}
        with transaction.atomic():
            if line.is_api:
                client, kind = self.scripts[role], {"content_type": "application/json"}
                answer = client.get(path) if line.method == "GET" else client.post(path, data, **kind)
            elif line.method == "GET":
                answer = self.browsers[role].get(path, headers=headers, follow=headers is WHOLE)
            else:
                answer = self.browsers[role].post(path, data, headers=headers)
            answer.entries = AuditEntry.objects.exclude(action__in=(CHANGE, READ)).count()
            answer.jobs = Job.objects.count()
            transaction.set_rollback(True)
        return answer


@pytest.fixture(scope="module")
def people(tree: dict[str, int], django_db_blocker: Any) -> People:
    with django_db_blocker.unblock():
        return People()


@pytest.fixture(autouse=True)
def _ready(db: None, request: pytest.FixtureRequest, tree: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """The state in which a change makes sense; nothing is sent to a worker, nobody is slowed down."""
    monkeypatch.setattr("quartermaster_site.jobs.dispatch.send", lambda *args, **kwargs: None)
    monkeypatch.setattr("quartermaster_site.rate.RateLimit.wait_seconds", lambda *args: 0)
    line = request.node.callspec.params.get("line") if hasattr(request.node, "callspec") else None
    if isinstance(line, Line) and line.method == "POST":
        prepare(line.path)


def prepare(path: str) -> None:
    host = Host.objects.get(slug="local")
    if path.endswith("/forget/"):
        Row.objects.update(state=Row.State.MISSING)
    if path.endswith(("/submit/", "/refuse/")):
        Publishing.objects.create(host=host, policy="approval")
    if path.endswith("/refuse/"):
        Revision.objects.update(state="awaiting")
    if path.startswith("/router/local/action"):
        Router.objects.create(host=host, url="http://127.0.0.1:8080")
    if path.startswith("/config/") and path.endswith("/settings/"):
        RevisionDetails.objects.create(revision=Revision.objects.get(), inputs={"version": "1", "last_change": 99999})
    if path.endswith("/adopt/") and path.startswith("/config/"):
        TargetWatch.objects.create(host=host, path=host.publish_path, sha256="0" * 64)
    if path.endswith("/rollback/"):
        Revision.objects.update(written_at=timezone.now())


def limit(tree: dict[str, int], role: str, about: str, level: int) -> None:
    """One policy for a person, about the host as a whole or about the model."""
    person = get_user_model().objects.get(username=f"a-{role}")
    model = "*" if about == HOST else Row.objects.get(pk=tree["model"]).served_id
    Policy.objects.create(user=person, host=Host.objects.get(slug="local"), model=model, level=level)


def enough(line: Line, role: str) -> bool:
    return ROLES.index(role) >= ROLES.index(line.role)


def _body(answer: Any) -> bytes:
    return b"".join(answer.streaming_content) if answer.streaming else answer.content


def check(line: Line, answer: Any, allowed: bool, before: tuple[int, int], who: str) -> None:
    told = f"{line} as {who}: {answer.status_code} {_body(answer)[:600]!r}"
    if allowed:
        assert answer.status_code in (*DONE, *([422] if str(line) in HINDERED else [])), told
        assert b'name="password"' not in _body(answer), told
    else:
        assert answer.status_code == 403, told
        assert b"dministrator can " in _body(answer), told
        assert (answer.entries, answer.jobs) == before, told


each = pytest.mark.parametrize("line", TABLE, ids=str)
objects = pytest.mark.parametrize("line", [line for line in TABLE if line.about != NOTHING], ids=str)


def started_by(role: str) -> None:
    """Only one's own jobs can be cancelled."""
    Job.objects.update(started_by=get_user_model().objects.get(username=f"a-{role}"))


def counts() -> tuple[int, int]:
    return AuditEntry.objects.exclude(action__in=(CHANGE, READ)).count(), Job.objects.count()


@each
def test_url_table_every_role_may_what_it_says(line, people, tree):
    for role in ROLES:
        if line.path.endswith("/cancel/"):
            started_by(role)
        for headers in (WHOLE, FRAGMENT):
            previews = headers is FRAGMENT and str(line) in PREVIEWS
            check(line, people.ask(line, role, tree, headers), previews or enough(line, role), counts(), role)


@each
def test_url_table_nobody_gets_in(line, people, tree):
    whole, part = (people.ask(line, "", tree, headers) for headers in (WHOLE, FRAGMENT))
    before = counts()
    for answer in (whole, part):
        assert (answer.entries, answer.jobs) == before
    if line.is_api:
        assert whole.status_code == 401
    else:
        signing_in = whole.redirect_chain[0] if line.method == "GET" else (whole["Location"], whole.status_code)
        assert signing_in[1] == 302
        assert signing_in[0].startswith("/login/?next=")
        assert (part.status_code, part.content) == (200, b"")
        assert part["HX-Redirect"].startswith("/login/")


@objects
def test_url_table_policy_hides_the_object(line, people, tree):
    for role in ROLES[:-1]:
        limit(tree, role, line.about, 0)
    for role in ROLES[:-1]:
        for headers in (WHOLE, FRAGMENT):
            answer = people.ask(line, role, tree, headers)
            told = f"{line} as {role}: {answer.status_code} {_body(answer)[:600]!r}"
            assert answer.status_code == 404 or (line.role == ADMIN and answer.status_code == 403), told
            assert (answer.entries, answer.jobs) == counts(), told


@objects
def test_url_table_policy_grants_the_object(line, people, tree):
    """A viewer with edit on the object may what an editor may, but for what only administrators may."""
    limit(tree, VIEWER, line.about, 3)
    if str(line) in HOST_TOO:
        limit(tree, VIEWER, HOST, 3)
    if line.path.endswith("/cancel/"):
        started_by(VIEWER)
    check(line, people.ask(line, VIEWER, tree, WHOLE), line.role != ADMIN, counts(), "granted viewer")


@objects
def test_url_table_policy_limits_the_object(line, people, tree):
    """An editor with view on the object may what a viewer may."""
    limit(tree, EDITOR, line.about, 1)
    check(line, people.ask(line, EDITOR, tree, WHOLE), line.role == VIEWER, counts(), "limited editor")


@objects
def test_url_table_policy_binds_no_administrator(line, people, tree):
    limit(tree, ADMIN, line.about, 0)
    check(line, people.ask(line, ADMIN, tree, WHOLE), True, counts(), "admin")


@pytest.mark.parametrize("line", [line for line in TABLE if line.method == "POST" and not line.is_api], ids=str)
def test_url_table_a_change_needs_its_token(line, people, tree):
    guarded = Client(enforce_csrf_checks=True)
    guarded.cookies = people.browsers[ADMIN].cookies
    assert guarded.post(line.path.format(**tree), line.data).status_code == 403


ONLY_POST = sorted(
    {line.path for line in TABLE if line.method == "POST"} - {x.path for x in TABLE if x.method == "GET"}
)


@pytest.mark.parametrize("path", ONLY_POST)
def test_url_table_a_get_changes_nothing(path, people, tree):
    clients = people.scripts if path.startswith("/api/") else people.browsers
    assert clients[ADMIN].get(path.format(**tree)).status_code == 405


GONE = ["/models/999/", "/jobs/999/", "/hosts/nowhere/", "/config/nowhere/", "/config/local/999/download/", "/x/"]


@pytest.mark.parametrize("path", GONE)
def test_url_table_what_is_not_there_is_a_page(path, people, tree):
    answer = people.browsers[VIEWER].get(path)
    assert answer.status_code == 404
    assert b"<h1" in answer.content
    assert people.browsers[ADMIN].get(path, headers=HTMX).status_code == 404


@pytest.mark.parametrize(
    ("hidden", "gone"), [("/models/{model}/", "/models/999/"), ("/hosts/local/", "/hosts/nowhere/")]
)
def test_url_table_policy_hidden_looks_like_gone(hidden, gone, people, tree):
    for about in (HOST, MODEL):
        limit(tree, EDITOR, about, 0)
    first, second = (people.browsers[EDITOR].get(path.format(**tree)) for path in (hidden, gone))

    def plain(answer):
        text = re.sub(r'value="[^"]+"|nonce-\w+|<code>\w{12}</code>', "", answer.content.decode())
        return text.replace("nowhere", "local").replace(gone, hidden.format(**tree))

    assert first.status_code == second.status_code == 404
    assert plain(first) == plain(second)


def test_url_table_leaves_no_address_out():
    """Every address of the product is in the table, but the wizard's, allauth's own, and those of machines."""

    def addresses(patterns: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
        for pattern in patterns:
            here = prefix + str(pattern.pattern)
            if isinstance(pattern, URLResolver):
                yield from addresses(pattern.url_patterns, here)
            elif isinstance(pattern, URLPattern):
                yield "/" + here, pattern.callback

    paths = [line.path for line in TABLE] + OWN + BY_CODE
    known = {re.sub(r"\{\w+\}", "", path).partition("?")[0] for path in paths}
    elsewhere = ("models_app.views.setup", "allauth", "django", "quartermaster_site.health", "ninja.openapi")
    for address, callback in addresses(get_resolver().url_patterns):
        module = getattr(callback, "func", callback).__module__
        if module.startswith(elsewhere) or address == "/api/v1/":
            continue
        address = re.sub(r"<int:\w+>|<number>|<int:number>", "", address.replace("<slug:slug>", "local"))
        address = address.replace("<slug>", "local").replace("<str:name>", "all").replace("<str:kind>", "enhancer")
        address = address.replace("/about/docs/all/", "/about/docs/users/")
        address = address.replace("/export/local/all", "/export/local/overrides.csv")
        assert address in known, f"{address} ({module}) has no line in tests/access/url_table.py"
