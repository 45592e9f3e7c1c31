"""The Router page: what is loaded for everybody, orders for operators, commands and address for administrators."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from gpus_app.models import Host
from models_app.models import Router, StoredPlan
from quartermaster_site.jobs.models import Job

PAGE = "/router/local/"


def entry(name: str, state: str = "unloaded", **more: Any) -> dict[str, Any]:
    facts = {"id": name, "state": state, "since": timezone.now().isoformat(), "aliases": [], "command": []}
    return facts | {"exit_code": None, "window_tokens": None, "from_file": True} | more


@pytest.fixture(autouse=True)
def _nothing_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quartermaster_site.jobs.dispatch.send", lambda *args, **kwargs: None)


@pytest.fixture
def operator(as_role: Callable[[str], Client]) -> Client:
    return as_role("operator")


@pytest.fixture
def router(host: Host) -> Router:
    Host.objects.update(publish_dialect="llama-server")
    command = ["/opt/llama-server", "--model", "/srv/a.gguf", "--api-key", "s3cretvalue"]
    return Router.objects.create(
        host=host,
        url="http://127.0.0.1:8080",
        key="hidden-key",
        version=1,
        seen_at=timezone.now(),
        answered_at=timezone.now(),
        kind="llama-server",
        program_version="b11434",
        slots=2,
        held=1,
        listed=[
            entry("qwen3-8b", "loaded", aliases=["qwen"], command=command, window_tokens=32768),
            entry("broken", "failed", exit_code=1),
            entry("gemma-4b"),
            entry("from-cache", from_file=False),
        ],
    )


def test_what_is_loaded(router: Router, viewer: Client) -> None:
    html = viewer.get(PAGE).content.decode()
    for text in (
        "qwen3-8b",
        "32,768",
        "1 of 2 slots taken",
        "1 model loaded",
        "ended with code 1",
        "gemma-4b",
        "b11434",
    ):
        assert text in html
    assert "not from the config file" in html
    assert "All slots are busy" not in html
    assert "/srv/a.gguf" not in html, "commands are for staff"
    assert 'name="action"' not in html, "orders take the role operator"


def test_orders_for_operators(router: Router, operator: Client) -> None:
    html = operator.get(PAGE).content.decode()
    assert 'value="unload">Unload<' in html
    assert 'value="load">Load<' in html
    assert "/srv/a.gguf" not in html


def test_commands_for_staff_without_secrets(router: Router, admin: Client) -> None:
    html = admin.get(PAGE).content.decode()
    assert "/srv/a.gguf" in html
    assert "s3cretvalue" not in html
    assert "hidden-key" not in html
    assert "A key is stored" in html


def test_all_slots_are_busy(router: Router, operator: Client) -> None:
    Router.objects.update(held=2, listed=[entry("a", "loading"), entry("b", "stopping")])
    assert "All slots are busy" in operator.get(PAGE).content.decode()
    Router.objects.update(held=2, listed=[entry("a", "loaded"), entry("b", "loading")])
    html = operator.get(PAGE).content.decode()
    assert "All slots are busy" not in html
    assert "ends the one that was used least recently" in html
    assert "Unload 2 models" in html


def test_out_of_reach_in_words(router: Router, viewer: Client) -> None:
    Router.objects.update(problem="http://127.0.0.1:8080 does not answer: nothing listens there")
    html = viewer.get(PAGE).content.decode()
    assert "The router cannot be asked" in html
    assert "nothing listens there" in html
    assert "What follows is from" in html
    strip = html[html.index('id="s-router"') :][:200]
    assert "not reachable" in strip


def test_the_strip_says_what_is_loaded(router: Router, viewer: Client) -> None:
    html = viewer.get("/models/").content.decode()
    assert "1 loaded" in html[html.index('id="s-router"') :][:200]
    Router.objects.update(seen_at=timezone.now() - timedelta(minutes=5))
    html = viewer.get("/models/").content.decode()
    assert "not seen lately" in html[html.index('id="s-router"') :][:200]


def test_no_address_yet(host: Host, viewer: Client, admin: Client) -> None:
    assert "No router address is set" in viewer.get(PAGE).content.decode()
    assert 'placeholder="http://127.0.0.1:8080"' in admin.get(PAGE).content.decode()
    assert viewer.get("/router/")["Location"] == PAGE


def test_setting_the_address(router: Router, admin: Client) -> None:
    sent = {"version": "1", "url": "http://127.0.0.1:9000/", "key": "", "reload_after_write": "on"}
    assert admin.post(PAGE, sent).status_code == 302
    row = Router.objects.get()
    assert (row.url, row.key, row.version) == ("http://127.0.0.1:9000", "", 2)
    stale = admin.post(PAGE, sent | {"url": "http://127.0.0.1:9001"})
    assert stale.status_code == 409
    assert "Apply once more" in stale.content.decode()
    bad = admin.post(PAGE, sent | {"version": "2", "url": "file:///etc/passwd"})
    assert bad.status_code == 422
    assert "Write an address such as" in bad.content.decode()


@pytest.mark.parametrize(("role", "settings", "action"), [("viewer", 403, 403), ("operator", 403, 302)])
def test_roles(
    router: Router, client: Client, make_user: Callable[..., Any], role: str, settings: int, action: int
) -> None:
    client.force_login(make_user(role))
    assert client.post(PAGE, {"version": "1", "url": ""}).status_code == settings
    order = {"action": "unload", "model": "qwen3-8b"}
    assert client.post(f"{PAGE}action/", order).status_code == action
    assert Job.objects.filter(kind="unload_model").count() == (action == 302)


def test_the_polled_part(router: Router, viewer: Client) -> None:
    part = viewer.get(PAGE, headers={"HX-Request": "true", "HX-Target": "router-state"}).content.decode()
    assert part.lstrip().startswith('<div id="router-state"')
    assert "<form" not in part


def test_queries_do_not_grow(router: Router, admin: Client) -> None:
    admin.get(PAGE)

    def count() -> int:
        with CaptureQueriesContext(connection) as context:
            assert admin.get(PAGE).status_code == 200
        return len(context)

    few = count()
    Router.objects.update(listed=[entry(f"m{n}", "loaded") for n in range(200)])
    assert count() == few <= 12
    assert StoredPlan.objects.count() == 0
