"""What all tests share: tasks run at once, and people of every role are at hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest


@pytest.fixture(autouse=True)
def _tasks_run_at_once() -> Iterator[None]:
    """Celery without a worker. A test that starts a real one runs it in a process of its own."""
    from quartermaster_site.celery import app

    app.conf.task_always_eager = True
    yield
    app.conf.task_always_eager = False


@pytest.fixture
def make_user(db: None, django_user_model: Any) -> Callable[..., Any]:
    """`make_user("editor")` is a person with that role; the name is the role's."""
    from quartermaster_site.access.models import Account

    def make(role: str, name: str = "") -> Any:
        user = django_user_model.objects.create_user(username=name or role, password="correct horse battery")
        Account.objects.create(user=user, role=role)
        return user

    return make


@pytest.fixture
def actor(make_user: Callable[..., Any]) -> Any:
    """An administrator who acts."""
    from quartermaster_site.access.audit import Actor

    user = make_user("admin")
    return Actor(user=user, name=user.username, address="127.0.0.1", request_id="test")


@pytest.fixture
def host(db: None) -> Any:
    """A registered host whose worker was seen just now."""
    from django.utils import timezone

    from gpus_app.models import Host

    return Host.objects.create(slug="local", name="Local machine", last_seen_at=timezone.now())
