"""A document of presets as text (router-llama-server.md 3.1)."""

from __future__ import annotations

from collections.abc import Iterator

from models_app.core.export.document import Document, Entry
from models_app.core.export.presets.writing import comment_text
from models_app.core.export.render import skipped_text


def render(document: Document) -> str:
    """The whole file, ending in one newline."""
    return "\n".join(_lines(document)) + "\n"


def _lines(document: Document) -> Iterator[str]:
    for text in (*document.header, *document.notes, *(skipped_text(item) for item in document.skipped)):
        yield _comment(text)
    for key, value in document.top.items():
        yield f"{key} = {value}"
    for entry in document.entries:
        yield ""
        yield from _section(entry)


def _section(entry: Entry) -> Iterator[str]:
    for text in entry.comments:
        yield _comment(text)
    yield f"[{entry.id}]"
    for key, value in entry.fields.items():
        yield f"{key} = {value}"


def _comment(text: str) -> str:
    return f"; {comment_text(text).strip()}".rstrip()
