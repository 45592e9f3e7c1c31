"""What runs here, in which versions and under which licences; and the documentation as pages."""

from __future__ import annotations

import platform
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, metadata

import django
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from django.urls import reverse
from markdown_it import MarkdownIt
from markdown_it.token import Token

from gpus_app.models import Host
from models_app.core.readers.cache import PARSER_VERSION
from quartermaster_site.errors import NotFound
from quartermaster_site.version import PROJECT, PROTOCOL, product_version

DOCS = PROJECT.parent / "docs"
_NAME = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*?)(?=[\[<>=!~ ]|$)")
VENDORED = (("Tabler", "1.6.1", "MIT"), ("htmx", "with django-htmx", "Zero-Clause BSD"), ("uPlot", "1.6.32", "MIT"))
"""What lies in static/vendor, or comes with a package."""


@dataclass(frozen=True, slots=True)
class Fact:
    name: str
    value: str


@dataclass(frozen=True, slots=True)
class Library:
    name: str
    version: str
    licence: str


@dataclass(frozen=True, slots=True)
class Chapter:
    name: str
    title: str

    @property
    def url(self) -> str:
        return reverse("models:doc-show", args=[self.name])


def versions() -> list[Fact]:
    """Of what runs this page."""
    applied = MigrationRecorder(connection).applied_migrations()
    database = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}.get(connection.vendor, connection.vendor)
    number = ".".join(map(str, connection.get_database_version()))
    return [
        Fact("Quartermaster", product_version()),
        Fact("Header readers", str(PARSER_VERSION)),
        Fact("Messages to agents", str(PROTOCOL)),
        Fact("Database", f"{database} {number}, {len(applied)} migrations"),
        Fact("Python", platform.python_version()),
        Fact("Django", django.get_version()),
    ]


def workers(hosts: Sequence[Host]) -> list[Fact]:
    """What runs on each machine."""
    own = product_version()
    return [
        Fact(host.name, f"{host.worker_version or 'never seen'}{_apart(host.worker_version, own)}") for host in hosts
    ]


def _apart(version: str, own: str) -> str:
    return f", this server is {own}" if version and version != own else ""


@cache
def libraries() -> tuple[Library, ...]:
    """Direct dependencies that are installed, by name, with the licence that each states."""
    found = [Library(name, version, licence) for name, version, licence in VENDORED]
    for line in (PROJECT.parent / "requirements.txt").read_text().splitlines():
        name = _NAME.match(line)
        if name:
            found.append(_library(name[1]))
    return tuple(sorted(found, key=lambda item: item.name.lower()))


def _library(name: str) -> Library:
    try:
        facts = metadata(name)
    except PackageNotFoundError:
        return Library(name, "not installed", "")
    known = facts.json
    stated = str(known.get("license_expression") or known.get("license") or "")
    classified = [str(text).rpartition("::")[2].strip() for text in known.get("classifier", ()) if "License ::" in text]
    short = stated if 0 < len(stated) < 60 and "\n" not in stated else ", ".join(classified)
    return Library(facts["Name"], facts["Version"], short)


@cache
def chapters() -> tuple[Chapter, ...]:
    """The documentation that is shipped with the product, by title; none where only the code was installed."""
    if not DOCS.is_dir():
        return ()
    found = [Chapter(path.stem, _title(path.read_text())) for path in DOCS.glob("*.md")]
    return tuple(sorted(found, key=lambda chapter: chapter.title.lower()))


def _title(text: str) -> str:
    return text.partition("\n")[0].lstrip("# ").strip()


@cache
def chapter_html(name: str) -> str:
    """A chapter as HTML. Its source is ours alone; raw HTML in it would be shown as text. NotFound."""
    if name not in {chapter.name for chapter in chapters()}:
        raise NotFound("There is no such chapter.")
    reader = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = reader.parse((DOCS / f"{name}.md").read_text())
    _prepare(tokens)
    return str(reader.renderer.render(tokens, reader.options, {}))


def _prepare(tokens: Sequence[Token]) -> None:
    """Anchors for headings, the look of tables and commands, links between chapters as addresses of this site."""
    for place, token in enumerate(tokens):
        if token.type == "heading_open":
            token.attrSet("id", _anchor(tokens[place + 1].content))
        elif token.type == "table_open":
            token.attrSet("class", "table")
        elif token.type in ("fence", "code_block"):
            token.attrSet("class", "q-pre")
        for inner in token.children or ():
            if inner.type == "link_open":
                inner.attrSet("href", _href(str(inner.attrGet("href") or "")))
            elif inner.type == "image":  # the files are not served
                inner.type, inner.tag = "text", ""


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w\s-]", "", heading.lower()).strip().replace(" ", "-")


def _href(href: str) -> str:
    page, mark, anchor = href.partition("#")
    if page.endswith(".md") and "/" not in page:
        return reverse("models:doc-show", args=[page.removesuffix(".md")]) + mark + anchor
    return href
