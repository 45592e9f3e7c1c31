"""The product's main job in a browser: set-up, scan, a model, a what-if, the config file in hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from playwright.sync_api import Page, expect


def test_from_the_printed_link_to_a_config_file(page: Page, site: str, shelf: Path, trouble: list[str]) -> None:
    from quartermaster_site.access.services import issue_setup_token

    page.goto(f"{site}/setup/?token={issue_setup_token()}")
    expect(page.get_by_role("heading", name="Is everything in place?")).to_be_visible()
    page.get_by_role("button", name="Continue").click()

    page.get_by_label("Username").fill("ada")
    page.get_by_label("Password", exact=True).fill("correct horse battery")
    page.get_by_label("Password again").fill("correct horse battery")
    page.get_by_role("button", name="Continue").click()

    expect(page.get_by_role("heading", name="Which machine holds the models?")).to_be_visible()
    page.get_by_role("button", name="Continue").click()

    page.get_by_label("Folder").fill(str(shelf))
    page.get_by_role("button", name="Add folder").click()
    expect(page.get_by_role("cell", name="not scanned yet")).to_be_visible()
    page.get_by_role("button", name="Continue").click()

    expect(page.get_by_role("heading", name="What runs the models?")).to_be_visible()
    page.get_by_role("button", name="Later").click()

    page.get_by_label("VRAM target").fill("33.5")
    page.get_by_label("RAM limit").fill("58")
    page.get_by_role("button", name="Continue").click()

    page.get_by_role("button", name="Scan now").click()
    expect(page.get_by_role("heading", name="6 models in 6 quants, 1 finding")).to_be_visible()
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("radio", name="llama-swap").check()
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("button", name="Finish and see the models").click()

    page.get_by_role("link", name="gemma3-12b", exact=True).click()
    plan = page.get_by_role("complementary", name="Plan for these values")
    expect(plan).to_contain_text("of 33.5 GiB")
    page.get_by_label("Context", exact=True).fill("16k")
    expect(plan).to_contain_text("context 16,384")
    expect(page.locator("#plan-say")).to_contain_text("context 16,384")

    page.get_by_role("navigation", name="Main").get_by_role("link", name="Config file").click()
    expect(page.get_by_text("Valid for llama-swap")).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("link", name="Download config.yaml").click()
    document: Any = yaml.safe_load(Path(download.value.path()).read_text())
    assert len(document["models"]) == 5
