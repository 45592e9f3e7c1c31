"""About: versions, licences, checks for administrators, and the documentation as pages of the site."""

from __future__ import annotations

import re

import pytest
from django.urls import reverse

from models_app.pages import about_page
from models_app.pages.about_page import chapter_html, chapters, libraries
from quartermaster_site.version import product_version


@pytest.mark.parametrize(("role", "checked"), [("viewer", False), ("admin", True)])
def test_about_says_what_runs(as_role, host, role, checked):
    text = as_role(role).get(reverse("models:about")).content.decode()
    assert product_version() in text
    assert f"Worker of {host.name}" in text
    assert "PyYAML" in text
    assert ("<h2>Checks</h2>" in text) is checked


def test_every_library_states_a_licence():
    assert [item for item in libraries() if not item.licence or item.version == "not installed"] == []
    assert {"Django", "Tabler", "uPlot"} <= {item.name for item in libraries()}


@pytest.mark.parametrize("chapter", chapters(), ids=lambda chapter: chapter.name)
def test_every_chapter_is_a_page_whose_links_lead_somewhere(as_role, host, chapter):
    client = as_role("viewer")
    answer = client.get(chapter.url)
    assert answer.status_code == 200
    html = chapter_html(chapter.name)
    assert "<h1" in html
    for href in re.findall(r'href="(/[^"#]*)(?:#[^"]*)?"', html):
        assert client.get(href).status_code == 200, href
    assert not re.search(r'href="[^"/]*\.md', html), "a link to a chapter is an address of the site"


@pytest.mark.parametrize("name", ["nothing", "..", "users.md", "%2e%2e"])
def test_no_other_file_is_read(as_role, host, name):
    assert as_role("admin").get(f"/about/docs/{name}/").status_code == 404


def test_markup_in_a_chapter_stays_text(tmp_path, monkeypatch):
    (tmp_path / "x.md").write_text("# X\n\n<script>1</script> [a](javascript:1) [b](users.md#who)\n")
    monkeypatch.setattr(about_page, "DOCS", tmp_path)
    chapters.cache_clear()
    chapter_html.cache_clear()
    try:
        html = chapter_html("x")
    finally:
        chapters.cache_clear()
        chapter_html.cache_clear()
    assert "<script" not in html
    assert "javascript:1)" not in re.sub(r">[^<]*<", "><", html)
    assert '/about/docs/users/#who"' in html
