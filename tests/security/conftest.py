"""One small installation for all tests of a module, in a transaction around theirs that is rolled back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.core.cache import cache
from django.db import transaction
from django.test import Client
from django.utils import timezone

from gpus_app.models import Host
from models_app.models import Root
from quartermaster_site.access.models import Account, Installation
from tests.access.conftest import furnish

PASSWORD = "correct horse battery"
ROLES = ("viewer", "operator", "editor", "admin")
Visit = Callable[..., Client]


@pytest.fixture(autouse=True)
def _nothing_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quartermaster_site.jobs.dispatch.send", lambda *args, **kwargs: None)


@pytest.fixture(scope="module")
def shared_rows(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """Rows that module fixtures make are there for every test of the module and gone behind the last one."""
    with django_db_blocker.unblock():
        block = transaction.atomic()
        block._from_testcase = True  # type: ignore[attr-defined] # as Django's own: durable blocks may stand inside
        with block:
            cache.clear()
            yield
            transaction.set_rollback(True)


@pytest.fixture(scope="module")
def tree(shared_rows: None) -> dict[str, int]:
    """What the addresses of tests/access name, on the host `local`; a person of every role, the set-up finished."""
    Installation.objects.create(pk=1, setup_finished_at=timezone.now())
    for role in ROLES:
        person = get_user_model().objects.create_user(username=role, password=PASSWORD)
        Account.objects.create(user=person, role=role)
    host = Host.objects.create(slug="local", name="Local machine", last_seen_at=timezone.now())
    return furnish(host, Root.objects.create(host=host, path="/models", state="ok"))


@pytest.fixture
def visit(db: None, tree: dict[str, int]) -> Visit:
    """`visit("editor")` is a signed-in browser of that role; further words are the client's own."""

    def visitor(role: str, **options: Any) -> Client:
        client = Client(**options)
        client.force_login(get_user_model().objects.get(username=role))
        return client

    return visitor
