"""A real Chromium against the real site: tasks run in the request, files are those of the zoo.

Every page is watched: a script error, a blocked resource (content security policy) or a server error fails the test.
"""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.handlers.wsgi import WSGIHandler
from playwright.sync_api import BrowserContext, ConsoleMessage, Page, Response

from tests.zoo import zoo

os.environ.setdefault("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
MODELS = ("qwen3-0.6b-q8_0", "qwen3-8b-q4_k_m", "gemma3-12b-q4_k_m", "mixtral-8x7b-q4_0", "llama33-70b-q4_k_m")
_EXPECTED = ("status of 422", "status of 409", "htmx:sendAbort", "htmx:afterRequest")
"""Refusals are answers; the browser reports them as failed loads all the same. A newer preview aborts the older one on
purpose, and htmx reports that too; a request that fails for another reason reports `htmx:sendError` as well."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "tests/browser" in item.nodeid:
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args: dict[str, Any]) -> dict[str, Any]:
    executable = os.environ.get("QM_CHROMIUM") or shutil.which("chromium")
    if not executable:
        pytest.fail("Chromium is missing: apt-get install chromium, or name a build in QM_CHROMIUM.")
    return {**browser_type_launch_args, "executable_path": executable, "args": list(ARGUMENTS)}


@pytest.fixture(scope="session")
def browser_context_args(browser_context_args: dict[str, Any]) -> dict[str, Any]:
    return {**browser_context_args, "viewport": {"width": 1440, "height": 1000}}


@pytest.fixture
def context(context: BrowserContext) -> BrowserContext:
    context.set_default_timeout(10_000)
    return context


@pytest.fixture
def trouble(page: Page) -> Iterator[list[str]]:
    """What went wrong in the browser; must be empty in the end."""
    found: list[str] = []

    def note_message(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and not any(text in message.text for text in _EXPECTED):
            found.append(f"{message.type}: {message.text}")

    def note_response(response: Response) -> None:
        if response.status >= 500 or response.status == 404:
            found.append(f"{response.status} {response.url}")

    page.on("console", note_message)
    page.on("pageerror", lambda error: found.append(f"script: {error}"))
    page.on("response", note_response)
    yield found
    assert found == []


@pytest.fixture(scope="session")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    for name in MODELS:
        zoo.write_model(name, str(folder))
    (folder / "broken.gguf").write_bytes(b"GGUF\x03\x00")
    return folder


@pytest.fixture
def one_request_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The threads of the live server share one connection where the database lies in memory, and would read each
    other's results; the product gives each thread its own.
    """
    turn, answer = threading.RLock(), WSGIHandler.__call__

    def in_turn(handler: WSGIHandler, *request: Any) -> Any:
        with turn:
            return answer(handler, *request)

    monkeypatch.setattr(WSGIHandler, "__call__", in_turn)


@pytest.fixture
def site(live_server: Any, transactional_db: None, one_request_at_a_time: None) -> str:
    """The address of a site with one host whose worker answers, and nobody registered yet."""
    from django.utils import timezone

    from gpus_app.models import Device, Host

    host = Host.objects.create(
        slug="atlas",
        name="atlas",
        last_seen_at=timezone.now(),
        probed_at=timezone.now(),
        cpu_count=16,
        ram_total_bytes=64 << 30,
        ram_available_bytes=58 << 30,
    )
    Device.objects.create(
        host=host, index=0, name="RTX 3090", vendor="nvidia", total_bytes=24 << 30, free_bytes=23 << 30
    )
    Device.objects.create(
        host=host, index=1, name="RTX 3060", vendor="nvidia", total_bytes=12 << 30, free_bytes=11 << 30
    )
    return str(live_server.url)


@pytest.fixture
def library(site: str, shelf: Path, make_user: Callable[..., Any]) -> str:
    """The same site, set up by `ada`, with the shelf scanned and planned."""
    from django.utils import timezone

    from gpus_app.models import Host
    from models_app import services
    from models_app.models import Root
    from quartermaster_site.access.audit import Actor
    from quartermaster_site.access.models import Installation

    make_user("admin", "ada")
    host = Host.objects.get()
    Root.objects.create(host=host, path=str(shelf))
    services.start_scan(host=host, actor=Actor())
    Installation.objects.update_or_create(pk=1, defaults={"setup_finished_at": timezone.now()})
    return site


@pytest.fixture
def sign_in(page: Page, library: str, make_user: Callable[..., Any]) -> Callable[..., None]:
    """`sign_in("editor")` through the sign-in page."""

    def enter(role: str = "admin") -> None:
        make_user(role)
        page.goto(f"{library}/login/")
        page.get_by_label("Username").fill(role)
        page.get_by_label("Password").fill("correct horse battery")
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url(f"{library}/")

    return enter
