"""The live preview: newest answer wins, messages beside fields, what was open stays open."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

SignIn = Callable[..., None]


@pytest.fixture
def model(page: Page, library: str, sign_in: SignIn, trouble: list[str]) -> Page:
    sign_in("viewer")
    page.goto(f"{library}/models/")
    page.get_by_role("link", name="mixtral-8x7b", exact=True).click()
    return page


def test_previews_follow_typing_and_store_nothing(model: Page) -> None:
    from models_app.models import Override

    plan = model.locator("#plan")
    model.get_by_label("Context", exact=True).fill("8k")
    expect(plan).to_contain_text("context 8,192")
    model.get_by_label("Parallel conversations").fill("2")
    expect(plan).to_contain_text("pool 16,384")
    expect(model.locator("#o-parallel")).to_have_text("tried here, not stored")
    model.get_by_label("Expert layers in RAM").fill("10")
    expect(plan).to_contain_text("experts of the first 10 layers in RAM")
    expect(plan.locator("li.c")).to_contain_text("--n-cpu-moe 10")
    assert not Override.objects.exists()
    model.reload()
    expect(model.get_by_label("Context", exact=True)).to_have_value("")


def test_the_enter_key_takes_what_is_typed(model: Page) -> None:
    context = model.get_by_label("Context", exact=True)
    context.fill("12k")
    context.press("Enter")
    expect(model.locator("#plan")).to_contain_text("context 12,288")
    expect(context).to_have_value("12k")


def test_a_bad_value_is_named_beside_its_field_and_the_plan_stays(model: Page) -> None:
    before = model.locator(".q-verdict strong").inner_text()
    model.get_by_label("Micro-batch", exact=True).fill("1e")
    slot = model.locator("#e-ub")
    expect(slot).to_contain_text("You typed “1e”")
    expect(model.get_by_label("Micro-batch", exact=True)).to_have_attribute("aria-invalid", "true")
    expect(model.locator("#plan")).to_have_attribute("data-stale", "")
    assert model.locator(".q-verdict strong").inner_text() == before
    expect(model.get_by_label("Micro-batch", exact=True)).to_be_focused()
    model.get_by_label("Micro-batch", exact=True).fill("1024")
    expect(slot).to_be_empty()
    expect(model.get_by_label("Micro-batch", exact=True)).not_to_have_attribute("aria-invalid", "true")


def test_disclosures_and_focus_survive_a_preview(model: Page) -> None:
    weights = model.locator("#plan details[data-key=weights]")
    weights.locator("summary").click()
    model.get_by_label("Context", exact=True).fill("4096")
    expect(model.locator("#plan")).to_contain_text("context 4,096")
    expect(weights).to_have_attribute("open", "")
    expect(model.get_by_label("Context", exact=True)).to_be_focused()


def test_picks_and_resets_do_not_leave_the_page(model: Page) -> None:
    address = model.url
    model.get_by_role("button", name="8k", exact=True).click()
    expect(model.locator("#plan")).to_contain_text("context 8,192")
    expect(model.get_by_role("button", name="8k", exact=True)).to_have_attribute("aria-pressed", "true")
    model.get_by_role("button", name="Reset Context to automatic").click()
    expect(model.get_by_label("Context", exact=True)).to_have_value("")
    expect(model.locator("#o-ctx")).to_have_text("planner")
    assert model.url == address


def test_filtering_the_list_keeps_the_address(page: Page, library: str, sign_in: SignIn, trouble: list[str]) -> None:
    sign_in("viewer")
    page.goto(f"{library}/models/")
    page.keyboard.press("/")
    page.keyboard.type("gemma")
    expect(page.locator("tbody tr")).to_have_count(1)
    assert page.url.endswith("/models/?q=gemma")
    page.go_back()
    expect(page.locator("tbody tr")).to_have_count(6)


def test_the_curve_follows_typing_and_leads_to_a_comparison(model: Page) -> None:
    section = model.locator("#plan section", has_text="Context against memory")
    expect(section.get_by_role("img")).to_be_visible()
    model.get_by_label("Layers on the GPU").fill("33")
    model.get_by_label("Expert layers in RAM").fill("20")
    model.get_by_label("Context", exact=True).fill("8k")
    expect(section).to_contain_text("Planned: 8,192 tokens")
    twin = section.locator("details")
    twin.locator("summary").click()
    expect(section.get_by_role("row", name="8,192")).to_contain_text("planned")
    model.get_by_label("Context", exact=True).fill("16k")
    expect(section).to_contain_text("Planned: 16,384 tokens")
    expect(twin, "what was open stays open").to_have_attribute("open", "")
    model.get_by_role("button", name="Compare with the stored plan").click()
    expect(model).to_have_url(re.compile(r"/compare/\?b-ctx=16k&b-ngl=33&b-nCpuMoe=20$"))
    expect(model.get_by_role("row", name="Context per conversation")).to_contain_text("16,384")
    expect(model.locator("#command .c").first).to_contain_text("-c 16384")
    model.get_by_role("link", name="Swap A and B").click()
    expect(model).to_have_url(re.compile(r"\?a-ctx=16k"))
    expect(model.locator("#command .x").first).to_contain_text("-c 16384")
