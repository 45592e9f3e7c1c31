"""A passkey is added, and signs its owner in: alone, and after the password. The authenticator is Chromium's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from playwright.sync_api import Page, expect

pytestmark = [pytest.mark.slow, pytest.mark.once]
SignIn = Callable[..., None]
AUTHENTICATOR = {
    "protocol": "ctap2",
    "transport": "internal",
    "hasResidentKey": True,
    "hasUserVerification": True,
    "isUserVerified": True,
    "automaticPresenceSimulation": True,
}


@pytest.fixture
def authenticator(page: Page) -> Any:
    """What a telephone or a key would answer to this page."""
    session = page.context.new_cdp_session(page)
    session.send("WebAuthn.enable")
    session.send("WebAuthn.addVirtualAuthenticator", {"options": AUTHENTICATOR})
    return session


def add(page: Page, library: str) -> None:
    page.goto(f"{library}/account/")
    page.get_by_role("link", name="Two-factor sign-in").click()
    page.locator("section", has=page.get_by_role("heading", name="Security Keys")).get_by_role("link").click()
    page.get_by_label("Password", exact=True).fill("correct horse battery")  # asked before a factor is changed
    page.get_by_role("button", name="Confirm").click()
    page.get_by_label("Passwordless").check()
    page.get_by_role("button", name="Add", exact=True).click()
    page.wait_for_url("**/2fa/recovery-codes/")


def sign_out(page: Page, library: str) -> None:
    page.goto(f"{library}/logout/")
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url("**/login/**")


def test_it_is_added_and_signs_in(
    page: Page, library: str, sign_in: SignIn, authenticator: Any, trouble: list[str], client: Client
) -> None:
    from quartermaster_site.access.models import AuditEntry

    sign_in("admin")
    add(page, library)
    sign_out(page, library)
    page.get_by_role("button", name="Use a passkey").click()
    page.wait_for_url(f"{library}/")
    sign_out(page, library)
    page.get_by_label("Username").fill("admin")
    page.get_by_label("Password").fill("correct horse battery")
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("**/2fa/authenticate/")
    page.get_by_role("button", name="Use a security key").click()
    page.wait_for_url(f"{library}/")
    entries = list(AuditEntry.objects.filter(actor="admin").order_by("pk").values_list("action", "reason"))
    assert entries == [
        ("sign-in", ""),
        ("user.factor", "a passkey added"),
        ("user.factor", "a recovery code added"),
        ("sign-out", ""),
        ("sign-in", "by a passkey alone"),
        ("sign-out", ""),
        ("sign-in", "and by a passkey"),
    ]


def test_what_the_browser_refuses_is_said(page: Page, library: str, authenticator: Any, trouble: list[str]) -> None:
    page.goto(f"{library}/login/")
    page.get_by_role("button", name="Use a passkey").click()
    expect(page.get_by_role("status")).to_contain_text("No passkey was used")
    page.goto(f"{library.replace('localhost', '127.0.0.1')}/login/")
    page.get_by_role("button", name="Use a passkey").click()
    expect(page.get_by_role("status")).to_contain_text("Passkeys need HTTPS and a name")
