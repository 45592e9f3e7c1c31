"""Keys of the pages: rows of tables, tabs, and nothing while somebody types."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, expect

SignIn = Callable[..., None]


def test_rows_of_the_audit_log(page: Page, library: str, sign_in: SignIn, trouble: list[str]) -> None:
    """Its rows have no links: the row itself takes the focus, and Enter shows what changed."""
    from quartermaster_site.access.audit import Actor, record

    sign_in("admin")
    record(Actor(), "user.change", changes={"role": ["viewer", "editor"]})
    page.goto(f"{library}/audit/")
    rows = page.locator("#entries > table > tbody > tr")
    page.keyboard.press("j")
    expect(rows.nth(0)).to_be_focused()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("k")
    page.keyboard.press("j")
    expect(rows.nth(1)).to_be_focused()
    changed = rows.filter(has=page.locator("details")).first
    changed.focus()
    page.keyboard.press("Enter")
    expect(changed.locator("details > table")).to_be_visible()
    page.goto(f"{library}/models/")
    page.keyboard.press("j")
    expect(page.locator("#models tbody > tr a").first).to_be_focused()


def test_rows_tabs_and_the_config(page: Page, library: str, sign_in: SignIn, trouble: list[str]) -> None:
    sign_in("editor")
    page.goto(f"{library}/models/")
    rows = page.locator("tbody tr:has(input[name=row])")
    first, second = (rows.nth(number).locator("a.q-name") for number in (0, 1))
    first.focus()
    page.keyboard.press("ArrowDown")
    expect(second).to_be_focused()
    page.keyboard.press("ArrowUp")
    expect(first).to_be_focused()
    page.keyboard.press("x")
    expect(rows.nth(0).get_by_role("checkbox")).to_be_checked()
    page.keyboard.press("e")
    page.wait_for_url("**/models/*/edit/")
    threads = page.get_by_label("Context", exact=True)
    threads.focus()
    page.keyboard.press("p")
    expect(threads).to_have_value("p")
    threads.fill("")
    page.keyboard.press("Alt+1")
    page.wait_for_url("**/models/*/")
    page.locator("body").press("p")
    page.wait_for_url("**/config/**")
