"""A tree of every kind of file, scanned by the real host task, as the Models, Components and Issues pages show it.

The expected table is tests/golden/whole_tree_pages.txt. Rewrite it with `WRITE_GOLDEN=1 pytest`, and read the
difference. Figures of plans are not in it: they have tests of their own.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils.html import strip_tags

from gpus_app.models import Host
from models_app import services
from models_app.models import Component, Finding, HeaderFacts, Root, Row, StoredPlan
from models_app.pages.component_list import TABS
from quartermaster_site.access.audit import Actor
from quartermaster_site.jobs.models import Job
from tests.views.conftest import run
from tests.whole_tree import build

GOLDEN = Path(__file__).parents[1] / "golden" / "whole_tree_pages.txt"
PLANNED = ("Context", "Est. VRAM", "RAM", "Placement", "State", "Since")
"""Columns that depend on plans or on the time."""


@pytest.fixture
def base(host: Host, tmp_path: Path, django_capture_on_commit_callbacks: Any) -> Path:
    """The tree, scanned and planned; the root that lies inside another one is refused by the form and left out here."""
    for path, category in build(tmp_path)[:2]:
        Root.objects.create(host=host, path=path, category=category)
    run(django_capture_on_commit_callbacks, lambda: services.start_scan(host=host, actor=Actor()))
    scan = Job.objects.get(kind="scan")
    assert scan.state == "succeeded_with_warnings", (scan.error, scan.log)
    return tmp_path


def cells(html: str) -> Iterator[list[str]]:
    """The cells of every row of every table, but for those of PLANNED."""
    for row in re.findall(r'<tr role="row"[^>]*>(.*?)</tr>', html, re.DOTALL):
        found = re.findall(r"<(td|th)([^>]*)>(.*?)</(?:td|th)>", row, re.DOTALL)
        labels = [(re.search(r'data-l="([^"]*)"', attributes), text) for _, attributes, text in found]
        if 'scope="row"' in row:
            yield [_text(text) for label, text in labels if label is None or label[1] not in PLANNED]


def _text(html: str) -> str:
    return unescape(" ".join(strip_tags(re.sub(r"<(?:span|a|code|strong)", r" \g<0>", html)).split()))


def lines(client: Client, address: str) -> list[str]:
    html = client.get(address).content.decode()
    assert "Page 1 of" not in html, "the table has more than one page"
    return [" | ".join(cell or "-" for cell in row) for row in cells(html)]


def table(client: Client) -> Iterator[str]:
    yield "# models: name and id | quants | class and family | size"
    yield from lines(client, "/models/")
    for tab, (title, _) in TABS.items():
        yield f"\n# components, {title}: file | role | family, shape, evidence | size | used by | chosen because"
        yield from lines(client, f"/components/?tab={tab}")
    yield "\n# goes with: role | file | chosen because | pin"
    for row in Row.objects.filter(model_class__in=("image", "video", "tts")).order_by("path"):
        yield f"{row.served_id}:"
        html = client.get(f"/models/{row.pk}/files/").content.decode()
        section = html.partition("<h2>Goes with</h2>")[2].partition("</section>")[0]
        yield from ("    " + " | ".join(cell or "-" for cell in found) for found in cells(section))
    yield "\n# issues: severity | object | what | how to fix"
    # Files without a plan are checked below: which they are depends on the backends of a host.
    yield from sorted(line for line in lines(client, "/issues/") if "| Not served" not in line)


def test_the_whole_table(base: Path, viewer: Client) -> None:
    text = "\n".join(table(viewer)).replace(f"{base}/", "") + "\n"
    if os.environ.get("WRITE_GOLDEN"):
        GOLDEN.write_text(text)
    assert text == GOLDEN.read_text()


def test_every_file_is_a_model_a_component_or_explained(base: Path, viewer: Client) -> None:
    """Nothing in the tree is left without a word; what is left out here is a part of something that is named."""
    named = {row.path for row in Row.objects.all()} | {item.path for item in Component.objects.all()}
    named |= {item.path for item in Finding.objects.all()}
    parts = {shard[0] for row in Row.objects.all() for shard in row.found["shards"]}
    silent = []
    for file in sorted(base.rglob("*")):
        known = {str(file), str(file.parent)} & named or str(file) in parts
        if file.is_file() and file.suffix in (".gguf", ".safetensors", ".ggml") and not known:
            silent.append(str(file.relative_to(base)))
    assert silent == [
        "elsewhere/repo/Linked-2B-Q8_0.gguf",
        "image/3d/TRELLIS.2-4B/ckpts/a.safetensors",
        "llm/bad/line\nbreak-Q8_0.gguf",
        "llm/big/Headless-70B-GGUF/Headless-70B-Q4_K_M-00003-of-00004.gguf",
        "llm/big/Headless-70B-GGUF/Headless-70B-Q4_K_M-00004-of-00004.gguf",
        "llm/flat/again.gguf",
    ]


def test_every_row_without_a_plan_says_why(base: Path) -> None:
    planned = StoredPlan.objects.filter(profile="base").exclude(verdict="unplanned")
    silent = Row.objects.exclude(pk__in=planned.values("row")).exclude(path__in=Finding.objects.values("path"))
    assert not silent.values_list("served_id", flat=True)


def test_the_scan_read_each_header_once_and_kept_only_those_of_rows(base: Path) -> None:
    assert HeaderFacts.objects.count() == HeaderFacts.objects.values("path").distinct().count()
    assert not HeaderFacts.objects.filter(path__endswith=".safetensors").exists()
