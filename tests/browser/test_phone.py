"""Small screens: nothing scrolls sideways, the plan is a sheet, tables are cards; light, dark and 320 px."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

SignIn = Callable[..., None]
PAGES = (
    "/",
    "/models/",
    "/models/{row}/",
    "/models/{row}/files/",
    "/components/",
    "/components/?chat=1",
    "/components/?tab=projectors",
    "/issues/",
    "/hosts/",
    "/hosts/atlas/",
    "/hosts/atlas/settings/memory/",
    "/hosts/atlas/settings/gpu/",
    "/hosts/atlas/settings/kv/",
    "/hosts/atlas/settings/advanced/",
    "/hosts/atlas/settings/groups/",
    "/hosts/atlas/rules/",
    "/hosts/atlas/history/",
    "/hosts/atlas/fits/",
    "/hosts/atlas/fits/?rows=all&show=over",
    "/hosts/atlas/folders/",
    "/hosts/atlas/by-hand/",
    "/hosts/atlas/by-hand/image/",
    "/jobs/",
    "/jobs/1/",
    "/config/atlas/",
    "/account/",
    "/account/password/change/",
)


@pytest.fixture(params=[320, 390], ids=["320px", "390px"])
def width(request: pytest.FixtureRequest) -> int:
    return int(request.param)


def _addresses(base: str) -> list[str]:
    from models_app.models import Row
    from quartermaster_site.jobs.models import Job

    values = {"row": Row.objects.get(served_id__startswith="llama33").pk}
    first = Job.objects.order_by("pk").values_list("pk", flat=True).first()
    return [base + page.format(**values).replace("/jobs/1/", f"/jobs/{first}/") for page in PAGES]


def test_no_page_scrolls_sideways(page: Page, library: str, sign_in: SignIn, trouble: list[str], width: int) -> None:
    sign_in("admin")
    page.set_viewport_size({"width": width, "height": 800})
    for address in _addresses(library):
        page.goto(address)
        overflow = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert overflow <= 0, f"{address} is {overflow} px too wide"


def test_every_page_has_one_title_and_labelled_controls(
    page: Page, library: str, sign_in: SignIn, trouble: list[str]
) -> None:
    sign_in("admin")
    for address in _addresses(library):
        page.goto(address)
        assert page.locator("h1").count() == 1, address
        nameless: Any = page.evaluate(
            """() => Array.from(document.querySelectorAll('main input:not([type=hidden]), main select, main button'))
                 .filter(e => !(e.labels && e.labels.length) && !e.textContent.trim() && !e.getAttribute('aria-label'))
                 .map(e => e.outerHTML.slice(0, 120))"""
        )
        assert nameless == [], address
        twice: Any = page.evaluate(
            """() => { const ids = Array.from(document.querySelectorAll('[id]'), e => e.id);
                       return ids.filter((id, at) => ids.indexOf(id) !== at); }"""
        )
        assert twice == [], address


def test_the_plan_is_a_sheet(page: Page, library: str, sign_in: SignIn, trouble: list[str]) -> None:
    sign_in("viewer")
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(_addresses(library)[2])
    plan = page.locator("#plan")
    expect(plan).to_be_hidden()
    dock = page.locator("#dock")
    expect(dock).to_contain_text("context")
    dock.click()
    expect(plan).to_be_visible()
    page.keyboard.press("Escape")
    expect(plan).to_be_hidden()
    page.get_by_label("Context", exact=True).fill("8192")
    expect(dock).to_contain_text("context 8,192")


def test_the_menu_opens_without_a_script_of_ours(page: Page, library: str, sign_in: SignIn) -> None:
    sign_in("viewer")
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{library}/")
    navigation = page.get_by_role("navigation", name="Main")
    expect(navigation).to_be_hidden()
    page.get_by_role("button", name="Menu").click()
    navigation.get_by_role("link", name="Jobs").click()
    expect(page.get_by_role("heading", name="Jobs", level=1)).to_be_visible()
