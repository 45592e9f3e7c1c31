"""Everything that matters works with scripts switched off: links, forms, redirects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect


@pytest.fixture
def plain(browser: Browser, library: str, make_user: Callable[..., Any]) -> Any:
    """A page without scripts, signed in as an administrator."""
    make_user("admin")
    context: BrowserContext = browser.new_context(java_script_enabled=False, viewport={"width": 1440, "height": 1000})
    context.set_default_timeout(10_000)
    page = context.new_page()
    page.goto(f"{library}/login/")
    page.get_by_label("Username").fill("admin")
    page.get_by_label("Password").fill("correct horse battery")
    page.get_by_role("button", name="Sign in").click()
    yield page
    context.close()


def test_filter_sort_and_pick(plain: Page, library: str) -> None:
    plain.goto(f"{library}/models/")
    plain.get_by_role("searchbox").fill("qwen3")
    plain.get_by_role("button", name="Apply").click()
    expect(plain.locator("tbody tr")).to_have_count(2)
    plain.get_by_role("link", name="Size").click()
    expect(plain.locator("tbody tr").first).to_contain_text("qwen3-0.6b")
    plain.get_by_role("link", name="Size").click()
    expect(plain.locator("tbody tr").first).to_contain_text("qwen3-8b")


def test_what_if(plain: Page, library: str) -> None:
    plain.goto(f"{library}/models/?q=qwen3-8b")
    plain.get_by_role("link", name="qwen3-8b", exact=True).click()
    plain.get_by_label("Context", exact=True).fill("8k")
    plain.get_by_role("button", name="Update preview").click()
    expect(plain.locator("#plan")).to_contain_text("context 8,192")
    assert "ctx=8k" in plain.url
    plain.get_by_label("Context", exact=True).fill("12k")
    plain.get_by_label("Context", exact=True).press("Enter")
    expect(plain.locator("#plan")).to_contain_text("context 12,288")
    plain.get_by_label("Context", exact=True).fill("8k")
    plain.get_by_role("button", name="Update preview").click()
    plain.get_by_label("Micro-batch").fill("zzz")
    plain.get_by_role("button", name="Update preview").click()
    expect(plain.get_by_role("alert")).to_contain_text("Micro-batch")
    expect(plain.get_by_label("Context", exact=True)).to_have_value("8k")


def test_what_fits(plain: Page, library: str) -> None:
    plain.goto(f"{library}/hosts/atlas/fits/")
    plain.get_by_role("searchbox").fill("qwen3")
    plain.get_by_role("button", name="Apply").click()
    expect(plain.locator("tbody tr")).to_have_count(2)
    plain.get_by_role("link", name="32k").click()
    expect(plain.locator("tbody tr").first).to_contain_text("qwen3-0.6b")
    plain.get_by_role("link", name="32k").click()
    expect(plain.locator("tbody tr").first).to_contain_text("qwen3-8b")
    plain.locator("tbody tr").first.get_by_role("link", name="16,384 tokens").click()
    expect(plain.get_by_label("Context", exact=True)).to_have_value("16384")
    expect(plain.locator("#plan")).to_contain_text("context 16,384")


def test_settings_scan_and_config(plain: Page, library: str) -> None:
    plain.goto(f"{library}/hosts/atlas/settings/memory/")
    plain.get_by_label("VRAM target").fill("20")
    plain.get_by_role("button", name="Apply").click()
    expect(plain.get_by_text("Applied.")).to_be_visible()
    plain.get_by_role("button", name="Scan now").click()
    expect(plain.get_by_role("heading", level=1)).to_contain_text("Scan")
    plain.goto(f"{library}/config/atlas/")
    expect(plain.get_by_text("TargetVramGB=20")).to_be_visible()
    plain.get_by_label("Quartermaster router").check()
    plain.get_by_role("button", name="Change").click()
    expect(plain.get_by_text("Valid for Quartermaster router")).to_be_visible()


def test_sign_out(plain: Page, library: str) -> None:
    plain.goto(f"{library}/")
    plain.get_by_role("button", name="Sign out").click()
    expect(plain.get_by_role("heading", name="Sign in")).to_be_visible()


def test_settings_are_tried_and_saved_without_script(plain: Page, library: str) -> None:
    from models_app.models import Override

    plain.goto(f"{library}/models/")
    plain.get_by_role("link", name="qwen3-8b", exact=True).click()
    plain.get_by_role("navigation", name="qwen3-8b").get_by_role("link", name="Settings").click()
    plain.get_by_label("Context", exact=True).fill("8k")
    plain.get_by_role("button", name="Update preview").click()
    expect(plain.locator("#plan")).to_contain_text("context 8,192")
    expect(plain.locator("#form-state")).to_have_text("1 setting not saved")
    assert not Override.objects.exists()
    plain.get_by_label("Context", exact=True).press("Enter")
    expect(plain.get_by_text("Saved.")).to_be_visible()
    assert Override.objects.get().fields == {"ctx": 8192}
    plain.get_by_role("button", name="Reset Context").click()
    expect(plain.get_by_label("Context", exact=True)).to_have_value("")
    plain.get_by_role("button", name="Save", exact=True).click()
    expect(plain.get_by_text("Saved.")).to_be_visible()
    assert Override.objects.get().fields == {}
