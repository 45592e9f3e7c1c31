"""A document as text: two spaces a level, fixed order, the same bytes for the same document (config-yaml.md 2, 3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from models_app.core.export import scalars
from models_app.core.export.document import Document, Entry, Skipped, command_text

WORDS = frozenset({"in", "out", "checkEndpoint", "musicScore"})
"""Keys whose texts come from a short fixed list."""
FLOW_LISTS = frozenset({"in", "out", "aliases", "groups", "reasoningEffort"})
ID_KEYED = frozenset({"apiKeyModels", "promptEnhancers", "groups", "listeners", "sessionOptions", "vars", "sets"})
"""Mappings whose keys are names given by people: always quoted."""
PROSE = frozenset({"systemPrompt", "promptEnhancerPrompt", "promptEnhancerEditPrompt", "description"})
JOINED = frozenset({"apiKeyModels"})
"""Top-level keys that belong to the block before them: no blank line between."""

TOP_COMMENTS = {
    "vramBudgetGB": "resident models stay loaded while the sum of their estVramGB fits this budget",
    "ramBudgetGB": "the same for models that run on the CPU, by their estRamGB",
    "promptEnhancers": "for clients: models that rewrite prompts; image routes never rewrite on their own",
}


def render(document: Document) -> str:
    """The whole file, ending in one newline."""
    lines = [*_comments(document.header, 0), *_comments(document.notes, 0)]
    for name, value in document.top.items():
        lines += block_lines(name, value)
    lines += _models(document)
    for name, value in document.tail.items():
        comments = document.tail_comments.get(name, ())
        lines += block_lines(name, value, comments)
    return "\n".join(lines) + "\n"


def _comments(texts: tuple[str, ...], indent: int) -> Iterator[str]:
    for text in texts:
        yield f"{' ' * indent}# {scalars.one_line(text)}"


def block_lines(name: str, value: Any, comments: tuple[str, ...] = ()) -> list[str]:
    """One top-level block with the blank line and the comments before it."""
    blank = [] if name in JOINED else [""]
    about = (TOP_COMMENTS[name],) if name in TOP_COMMENTS else ()
    return [*blank, *_comments((*about, *comments), 0), *_pair(name, value, 0)]


def _models(document: Document) -> Iterator[str]:
    yield ""
    yield "models:" if document.entries else "models: {}"
    for item in document.models:
        yield ""
        if isinstance(item, Skipped):
            yield from _comments((skipped_text(item),), 2)
        else:
            yield from _entry(item)


def skipped_text(item: Skipped) -> str:
    """The words of a SKIPPED comment, on one line."""
    label = item.label or scalars.quote(item.id)
    return f"SKIPPED {label}: {item.reason}"


def _entry(entry: Entry) -> Iterator[str]:
    yield from _comments(entry.comments, 2)
    yield f"  {scalars.quote(entry.id)}:"
    yield from _command(entry.command)
    for name, value in entry.fields.items():
        yield from _pair(name, value, 4)


def _command(lines: tuple[str, ...]) -> Iterator[str]:
    """`cmd` as a folded block; a line that such a block would change makes it one quoted scalar."""
    if lines and all(foldable(line) for line in lines):
        yield "    cmd: >"
        for line in lines:
            yield f"      {line}"
    else:
        yield f"    cmd: {scalars.quote(command_text(lines))}"


def foldable(line: str) -> bool:
    """True when a folded block keeps this line: not blank, no blanks at its ends, printable throughout."""
    return bool(line) and line == line.strip() and not scalars.UNSAFE.search(line) and "\t" not in line


def _pair(name: str, value: Any, indent: int, quoted: bool = False) -> Iterator[str]:
    margin = " " * indent
    label = f"{margin}{scalars.quote(name) if quoted else scalars.key(name)}:"
    match value:
        case Mapping() if value:
            yield label
            for child, inner in value.items():
                yield from _pair(child, inner, indent + 2, quoted=name in ID_KEYED)
        case list() | tuple() if value and name not in FLOW_LISTS | ID_KEYED:
            yield label
            for item in value:
                yield from _item(item, indent + 2)
        case str() if name in PROSE:
            yield from f"{label} {scalars.long_text(value, indent)}".split("\n")
        case _:
            yield f"{label} {_inline(value, name)}"


def _item(value: Any, indent: int) -> Iterator[str]:
    """One item of a block list; collections inside are written in flow style."""
    yield f"{' ' * indent}- {_inline(value, '')}"


def _inline(value: Any, name: str) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return scalars.number(value)
        case str():
            return scalars.word(value) if name in WORDS else scalars.quote(value)
        case Mapping():
            return "{" + ", ".join(f"{scalars.quote(key)}: {_inline(inner, '')}" for key, inner in value.items()) + "}"
        case list() | tuple():
            return "[" + ", ".join(_inline(item, name) for item in value) + "]"
    raise TypeError(f"{name}: {type(value).__name__} cannot be written")
