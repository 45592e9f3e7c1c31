"""Rules in browsers: two people at once, and everything without scripts."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

SignIn = Callable[..., None]


def _enter(page: Page, library: str, name: str) -> None:
    page.set_default_timeout(10_000)
    page.goto(f"{library}/login/")
    page.get_by_label("Username").fill(name)
    page.get_by_label("Password").fill("correct horse battery")
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"{library}/")


@pytest.fixture
def second(browser: Browser, library: str) -> Iterator[Page]:
    """A browser of ada, an administrator."""
    context = browser.new_context(viewport={"width": 1440, "height": 1000})
    page = context.new_page()
    _enter(page, library, "ada")
    yield page
    context.close()


@pytest.fixture
def plain(browser: Browser, library: str) -> Iterator[Page]:
    """The same on a phone, without scripts."""
    context = browser.new_context(java_script_enabled=False, viewport={"width": 390, "height": 844})
    page = context.new_page()
    _enter(page, library, "ada")
    yield page
    context.close()


def _add(page: Page, library: str, pattern: str) -> None:
    page.goto(f"{library}/hosts/atlas/rules/")
    page.get_by_label("Pattern").fill(pattern)
    page.get_by_role("button", name="Add rule").click()
    page.get_by_role("button", name="Show impact").last.wait_for()


def test_two_people_edit_one_rule(page: Page, second: Page, library: str, sign_in: SignIn, trouble: list[str]) -> None:
    from models_app.models import Override

    sign_in("editor")
    _add(page, library, "*qwen3*")
    second.goto(page.url)
    context = page.get_by_label("Context", exact=True)
    context.fill("9e9")
    expect(page.locator("#e-ctx")).to_contain_text("You typed “9e9”")
    context.fill("8k")
    expect(page.locator("#impact")).to_contain_text("2 of 2 plans would change", timeout=15_000)
    expect(page.locator("#form-state")).to_have_text("1 setting not saved")
    expect(context).to_be_focused()
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("Saved.")).to_be_visible()
    second.get_by_label("Context", exact=True).fill("16k")
    second.get_by_label("Pattern").fill("*qwen3-8b*")
    second.get_by_label("KV type, keys", exact=True).select_option("q8_0")
    second.get_by_role("button", name="Save", exact=True).click()
    panel = second.locator("#conflict")
    expect(panel).to_contain_text("editor saved this")
    row = panel.get_by_role("row", name="Context")
    for text in ("16384", "8192", "automatic"):
        expect(row).to_contain_text(text)
    expect(second.get_by_label("KV type, keys", exact=True)).to_have_value("q8_0")
    row.get_by_label("8192").check()
    second.get_by_role("button", name="Save", exact=True).click()
    expect(second.get_by_text("Saved.")).to_be_visible()
    rule = Override.objects.get()
    assert (rule.match, rule.fields) == ("*qwen3-8b*", {"ctx": 8192, "kvK": "q8_0"})
    second.get_by_role("link", name="History", exact=True).click()
    expect(second.get_by_role("article").first).to_contain_text("ada changed the rule *qwen3-8b*")


def test_an_order_that_somebody_changed_is_not_changed_blindly(
    page: Page, second: Page, library: str, sign_in: SignIn, trouble: list[str]
) -> None:
    sign_in("editor")
    for pattern in ("*qwen3*", "*qwen3-8b*"):
        _add(page, library, pattern)
    for browser_page in (page, second):
        browser_page.goto(f"{library}/hosts/atlas/rules/")
    expect(page.get_by_role("row", name="2.")).to_contain_text("can never win")
    page.get_by_role("button", name="Move rule 2 up").click()
    expect(page.get_by_role("row", name="1.")).to_contain_text("*qwen3-8b*")
    second.get_by_role("button", name="Move rule 1 down").click()
    expect(second.get_by_role("alert")).to_contain_text("changed the order of the rules meanwhile")
    expect(second.get_by_role("row", name="1.")).to_contain_text("*qwen3-8b*")


def test_rules_work_without_scripts_on_a_phone(plain: Page, library: str) -> None:
    from models_app.models import Override

    _add(plain, library, "*mixtral*")
    plain.get_by_label("Context", exact=True).fill("8k")
    plain.get_by_role("button", name="Show impact").last.click()
    expect(plain.locator("#impact")).to_contain_text("1 of 1 plan would change")
    assert Override.objects.get().fields == {}
    plain.get_by_role("button", name="Save", exact=True).click()
    assert Override.objects.get().fields == {"ctx": 8192}
    plain.goto(f"{library}/hosts/atlas/rules/")
    overflow = plain.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert overflow <= 0
    plain.get_by_role("link", name="Delete… rule 1").click()
    expect(plain.locator("#impact")).to_contain_text("1 of 1 plan would change")
    plain.get_by_role("button", name="Delete rule").click()
    expect(plain.get_by_text("No rules")).to_be_visible()
    plain.get_by_role("link", name="History", exact=True).click()
    plain.get_by_role("button", name="Restore the state").first.click()
    assert Override.objects.get().fields == {"ctx": 8192}
