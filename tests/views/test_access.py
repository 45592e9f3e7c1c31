"""Every page as anonymous and as each role, with and without htmx."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client

from gpus_app.models import Host
from models_app.models import Row
from tests.views.conftest import ROLES

PAGES = (
    "/",
    "/models/",
    "/models/{row}/",
    "/models/{row}/files/",
    "/models/{row}/row/",
    "/issues/",
    "/hosts/",
    "/hosts/local/",
    "/hosts/local/card/",
    "/hosts/local/settings/memory/",
    "/hosts/local/folders/",
    "/jobs/",
    "/jobs/{job}/",
    "/jobs/{job}/panel/",
    "/config/local/",
    "/config/local/1/download/",
    "/account/",
)
POSTS = {
    "/hosts/local/scan/": "operator",
    "/hosts/local/probe/": "operator",
    "/hosts/local/plan/": "operator",
    "/config/local/render/": "operator",
    "/models/{row}/files/read/": "operator",
    "/hosts/local/settings/memory/": "editor",
    "/hosts/local/folders/add/": "admin",
    "/config/local/target/": "admin",
}
HTMX = {"HX-Request": "true"}


def _address(template: str, host: Host) -> str:
    return template.format(row=Row.objects.filter(host=host).first().pk, job=host.jobs.first().pk)  # type: ignore[union-attr]


@pytest.mark.parametrize("page", PAGES)
def test_anonymous_is_sent_to_sign_in(
    client: Client, scanned: Host, as_role: Callable[[str], Client], page: str
) -> None:
    as_role("admin")
    address = _address(page, scanned)
    plain = client.get(address)
    assert plain.status_code == 302
    assert plain["Location"].startswith("/login/?next=")
    partial = client.get(address, headers=HTMX)
    assert partial.status_code == 200
    assert partial["HX-Redirect"].startswith("/login/")
    assert not partial.content


@pytest.mark.parametrize("role", ROLES)
def test_every_role_reads_every_page(scanned: Host, as_role: Callable[[str], Client], role: str) -> None:
    client = as_role(role)
    for page in PAGES:
        address = _address(page, scanned)
        whole = client.get(address)
        assert whole.status_code == 200, address
        assert "no-store" in whole["Cache-Control"]
        assert client.get(address, headers=HTMX).status_code in (200, 286), address


@pytest.mark.parametrize("role", ROLES)
def test_changes_need_their_role(scanned: Host, as_role: Callable[[str], Client], role: str) -> None:
    client = as_role(role)
    for page, needed in POSTS.items():
        answer = client.post(_address(page, scanned), {"version": "1"})
        allowed = ROLES.index(role) >= ROLES.index(needed)
        assert (answer.status_code == 403) is not allowed, (page, role, answer.status_code)
        if not allowed:
            assert "role" in answer.content.decode()


def test_a_fragment_has_no_frame(scanned: Host, viewer: Client) -> None:
    whole = viewer.get("/models/")
    part = viewer.get("/models/", headers=HTMX)
    assert "<html" in whole.content.decode()
    assert part.content.decode().lstrip().startswith('<div id="models"')
    assert "HX-Request" in part["Vary"]


def test_unknown_things_are_not_found(scanned: Host, viewer: Client) -> None:
    for address in ("/models/999999/", "/hosts/nowhere/", "/jobs/999999/", "/config/local/99/download/", "/nothing/"):
        answer = viewer.get(address)
        assert answer.status_code == 404, address
        assert "404" in answer.content.decode()


def test_security_headers(scanned: Host, viewer: Client) -> None:
    answer = viewer.get("/")
    policy = answer["Content-Security-Policy"]
    for part in (
        "default-src 'self'",
        "script-src 'self'",
        "style-src 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    ):
        assert part in policy
    assert "unsafe" not in policy
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert answer["Referrer-Policy"] == "same-origin"


def test_no_page_has_inline_script_style_or_handler(scanned: Host, admin: Client) -> None:
    for page in PAGES:
        if "download" in page:
            continue
        html = admin.get(_address(page, scanned)).content.decode()
        assert "<style" not in html
        assert " style=" not in html, page
        assert "hx-on" not in html
        assert "javascript:" not in html
        assert html.count("<script") == html.count("<script src=")
