"""The editor in a browser: previews while typing, and two people at once who lose nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

SignIn = Callable[..., None]


@pytest.fixture
def settings(page: Page, library: str, sign_in: SignIn, trouble: list[str]) -> Page:
    """The Settings tab of a model, as an editor."""
    sign_in("editor")
    page.goto(f"{library}/models/")
    page.get_by_role("link", name="mixtral-8x7b", exact=True).click()
    page.get_by_role("navigation", name="mixtral-8x7b").get_by_role("link", name="Settings").click()
    return page


@pytest.fixture
def second(browser: Browser, library: str, settings: Page) -> Iterator[Page]:
    """The same tab in a browser of somebody else."""
    context = browser.new_context(viewport={"width": 1440, "height": 1000})
    page = context.new_page()
    page.set_default_timeout(10_000)
    page.goto(f"{library}/login/")
    page.get_by_label("Username").fill("ada")
    page.get_by_label("Password").fill("correct horse battery")
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"{library}/")
    page.goto(settings.url)
    yield page
    context.close()


def test_typing_previews_marks_and_saves(settings: Page) -> None:
    from models_app.models import Override

    context = settings.get_by_label("Context", exact=True)
    context.fill("8k")
    expect(settings.locator("#plan")).to_contain_text("context 8,192")
    expect(settings.locator("#o-ctx")).to_have_text("not saved yet; automatic: 32768")
    expect(context).to_be_focused()
    settings.get_by_label("KV type, keys", exact=True).select_option("q8_0")
    expect(settings.locator("#form-state")).to_have_text("2 settings not saved")
    context.fill("9e9")
    expect(settings.locator("#e-ctx")).to_contain_text("You typed “9e9”")
    expect(context).to_be_focused()
    assert not Override.objects.exists()
    context.fill("8k")
    expect(settings.locator("#e-ctx")).to_be_empty()
    settings.get_by_role("button", name="Save", exact=True).click()
    expect(settings.get_by_text("Saved.")).to_be_visible()
    assert Override.objects.get().fields == {"ctx": 8192, "kvK": "q8_0"}
    settings.get_by_role("button", name="Reset Context").click()
    expect(settings.locator("#form-state")).to_have_text("1 setting not saved")
    expect(context).to_have_value("")


def test_two_people_at_once_lose_nothing(settings: Page, second: Page) -> None:
    from models_app.models import Override

    settings.get_by_label("Context", exact=True).fill("8192")
    settings.get_by_label("Parallel conversations").evaluate("field => field.closest('details').open = true")
    settings.get_by_label("Parallel conversations").fill("2")
    second.get_by_label("Context", exact=True).fill("16384")
    second.get_by_label("KV type, keys", exact=True).select_option("q8_0")
    settings.get_by_role("button", name="Save", exact=True).click()
    expect(settings.get_by_text("Saved.")).to_be_visible()
    second.get_by_role("button", name="Save", exact=True).click()
    panel = second.locator("#conflict")
    expect(panel).to_contain_text("editor saved this")
    row = panel.get_by_role("row", name="Context")
    expect(row).to_contain_text("16384")
    expect(row).to_contain_text("8192")
    expect(row).to_contain_text("automatic")
    expect(second.get_by_label("Context", exact=True)).to_have_value("16384")
    expect(second.get_by_label("KV type, keys", exact=True)).to_have_value("q8_0")
    second.get_by_role("button", name="Save", exact=True).click()
    expect(second.get_by_text("Saved.")).to_be_visible()
    assert Override.objects.get().fields == {"ctx": 16384, "kvK": "q8_0", "parallel": 2}


def test_a_launch_text_is_checked_while_typing(page: Page, library: str, sign_in: SignIn, trouble: list[str]) -> None:
    from models_app.models import Override

    sign_in("admin")
    page.goto(f"{library}/models/")
    page.get_by_role("link", name="qwen3-8b", exact=True).click()
    page.get_by_role("navigation", name="qwen3-8b").get_by_role("link", name="Launch").click()
    text = page.locator("#f-customArgs")
    text.fill("-t 12 # more\n\t--port 9")
    expect(page.locator("#launch li.c").first).to_contain_text("-t 12")
    expect(page.locator("#findings")).to_contain_text("router probes the port it assigned")
    expect(text).to_be_focused()
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator("#e-customArgs")).to_contain_text("--port takes the port from the router")
    text.fill("-t 12 # more\n\t--host 0.0.0.0")
    page.get_by_role("button", name="Save", exact=True).click()
    page.get_by_role("button", name="Save as it is").click()
    expect(page.get_by_text("Saved.")).to_be_visible()
    assert Override.objects.get().fields == {"customArgs": "-t 12 # more\n\t--host 0.0.0.0"}


def test_the_slider_moves_the_window_and_follows_it(settings: Page) -> None:
    context, slider = settings.get_by_label("Context", exact=True), settings.get_by_label("Context, slider")
    expect(slider).to_be_visible()
    context.fill("5000")
    expect(settings.locator("#o-ctx")).to_contain_text("runs with 4,096")
    expect(context).to_have_value("5000")
    slider.focus()
    slider.press("ArrowRight")
    expect(context).to_have_value("8192")
    expect(settings.locator("#plan")).to_contain_text("context 8,192")
    expect(slider).to_have_attribute("max", "32768")
    context.fill("16k")
    expect(slider).to_have_value("16384")


def test_a_sign_in_that_ran_out_costs_no_keystroke(page: Page, library: str, sign_in: SignIn) -> None:
    from models_app.models import Override

    sign_in("editor")
    page.goto(f"{library}/models/")
    page.get_by_role("link", name="qwen3-8b", exact=True).click()
    page.get_by_role("navigation", name="qwen3-8b").get_by_role("link", name="Settings").click()
    context, address = page.get_by_label("Context", exact=True), page.url
    context.fill("8k")
    expect(page.locator("#plan")).to_contain_text("context 8,192")
    other = page.context.new_page()
    other.goto(f"{library}/")
    other.get_by_role("button", name="Sign out").click()
    other.wait_for_url(f"{library}/login/**")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator("#toasts")).to_contain_text("You are signed out. What you typed is still here")
    context.fill("16k")
    expect(page.locator("#toasts li")).to_have_count(1)
    assert page.url == address
    other.get_by_label("Username").fill("editor")
    other.get_by_label("Password").fill("correct horse battery")
    other.get_by_role("button", name="Sign in").click()
    other.wait_for_url(f"{library}/")
    context.fill("12k")  # under a form whose token is an old one by now
    expect(page.locator("#plan")).to_contain_text("context 12,288")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("Saved.")).to_be_visible()
    assert Override.objects.get().fields == {"ctx": 12288}


def test_what_is_typed_stays_where_the_thing_is_gone_or_the_server_away(
    page: Page, library: str, sign_in: SignIn
) -> None:
    from models_app.models import Variant

    sign_in("editor")
    page.goto(f"{library}/models/")
    page.get_by_role("link", name="qwen3-8b", exact=True).click()
    page.get_by_role("navigation", name="qwen3-8b").get_by_role("link", name="Variants").click()
    page.get_by_label("Name").fill("fast")
    page.get_by_role("button", name="Add variant").click()
    context, address = page.get_by_label("Context", exact=True), page.url
    context.fill("8k")
    expect(page.locator("#plan")).to_contain_text("context 8,192")
    page.context.set_offline(True)
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator("#toasts")).to_contain_text("Not saved: the server did not answer")
    expect(context).to_have_value("8k")
    page.context.set_offline(False)
    page.locator("#toasts li").filter(has_text="Not saved").get_by_role("button", name="Retry").click()
    expect(page.get_by_text("Saved.")).to_be_visible()
    Variant.objects.all().delete()
    context.fill("12k")
    expect(page.locator("#toasts")).to_contain_text("This is no longer there.")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator("#toasts")).to_contain_text("nothing was saved")
    expect(context).to_have_value("12k")
    expect(page.locator("#plan")).to_contain_text("context 8,192")
    assert page.url == address
