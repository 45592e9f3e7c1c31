"""A YAML text as a tree with line numbers, built from parser events: no recursion, every count bounded, tags refused.

Scalars get the type that the routers' reader (Go's yaml.v3) gives them: `on`, `off`, `yes` and `no` stay text. Keys are
the raw text of their scalar. Used for files that other people and programs wrote, so the text is hostile.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from models_app.core.errors import ExportError
from models_app.core.export.plain_scalars import TAGGED_TYPES, plain_value

MAX_BYTES = 16 << 20
MAX_NODES = 500_000
MAX_DEPTH = 64
MAX_ALIAS_NODES = 1000
"""Nodes that one alias may stand for."""
MAX_ALIASED_NODES = 100_000
"""Nodes that all aliases of a file may stand for together."""

CORE_TAGS = {f"tag:yaml.org,2002:{name}": name for name in ("str", "int", "float", "bool", "null", "map", "seq")}
MERGE = "<<"


class LoadError(ExportError):
    """A text that cannot be taken as YAML. `line` counts from 1; 0 when no line is to blame."""

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(f"line {line}: {message}" if line else message)
        self.message = message
        self.line = line


_NO_CHILDREN: Any = ({}, [])
"""Of every scalar: nothing is ever put into these."""


@dataclass(slots=True)
class Node:
    """One value. `value` is plain Python (shared with the parents), `pairs` / `items` the children of a collection."""

    value: Any
    line: int
    pairs: dict[str, Node] = field(default_factory=lambda: _NO_CHILDREN[0])
    items: list[Node] = field(default_factory=lambda: _NO_CHILDREN[1])
    size: int = 1
    raw: str = ""
    """The text of a scalar as it stands, escapes resolved."""
    key_lines: dict[str, int] | None = None
    """Of a mapping: the line in which each key stands. A block begins below its key."""

    def child(self, key: str | int) -> Node | None:
        if isinstance(key, str):
            return self.pairs.get(key)
        return self.items[key] if 0 <= key < len(self.items) else None

    def find(self, path: Sequence[str | int]) -> Node | None:
        """The node at a path of keys and positions, None where it ends early."""
        node: Node | None = self
        for key in path:
            node = node.child(key) if node is not None else None
        return node

    def key_line(self, key: str) -> int:
        """The line of a key; that of the mapping where it has none."""
        return (self.key_lines or {}).get(key, self.line)

    def line_named(self, path: Sequence[str | int]) -> int:
        """The line in which the last step of a path is named, as far as the path exists."""
        node, line = self, self.line
        for key in path:
            if (inner := node.child(key)) is None:
                break
            line = node.key_line(key) if isinstance(key, str) else inner.line
            node = inner
        return line

    def line_of(self, path: Sequence[str | int]) -> int:
        """The line of the deepest existing node along a path."""
        node = self
        for key in path:
            if (inner := node.child(key)) is None:
                break
            node = inner
        return node.line


@dataclass(slots=True)
class _Open:
    """A collection whose end has not been seen. `key` is the pending key of a mapping."""

    node: Node
    mapping: bool
    anchor: str
    key: str | None = None
    merged: list[Node] = field(default_factory=list)
    waiting_for_key: bool = True


def decode(data: bytes) -> str:
    """The text of a file: UTF-8, at most 16 MiB, a byte order mark taken off."""
    if len(data) > MAX_BYTES:
        raise LoadError(f"the file has {len(data):,} bytes; at most {MAX_BYTES:,} are read")
    try:
        return data.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise LoadError(f"not UTF-8 (byte {error.start:,})", line) from error


def load(text: str) -> Node:
    """The tree of a one-document text; an empty text is null. Raises `LoadError`."""
    if len(text) > MAX_BYTES or len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise LoadError(f"more than {MAX_BYTES:,} bytes")
    builder = _Builder()
    try:
        for event in yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            builder.take(event)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise LoadError(error.problem or "not YAML", mark.line + 1 if mark else 0) from error
    except (yaml.YAMLError, UnicodeEncodeError) as error:
        raise LoadError(_reader_problem(error), _reader_line(error, text)) from error
    return builder.root or Node(None, 1)


def _reader_problem(error: Exception) -> str:
    character = getattr(error, "character", None)
    if isinstance(character, int):
        return f"character U+{character:04X} is not allowed in YAML"
    return "a character that YAML does not allow" if isinstance(error, UnicodeEncodeError) else "not YAML"


def _reader_line(error: Exception, text: str) -> int:
    character = getattr(error, "character", None)
    position = text.find(chr(character)) if isinstance(character, int) and 0 <= character <= 0x10FFFF else -1
    return text.count("\n", 0, position) + 1 if position >= 0 else 0


class _Builder:
    """Puts the events of one document together."""

    def __init__(self) -> None:
        self.root: Node | None = None
        self.stack: list[_Open] = []
        self.anchors: dict[str, Node] = {}
        self.open_anchors: set[str] = set()
        self.nodes = 0
        self.aliased = 0
        self.documents = 0

    def take(self, event: yaml.Event) -> None:
        line = event.start_mark.line + 1 if event.start_mark else 0
        match event:
            case yaml.DocumentStartEvent():
                self.documents += 1
                if self.documents > 1:
                    raise LoadError("a second document starts here; only one is read", line)
            case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                self._open(event, line)
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                self._close()
            case yaml.AliasEvent():
                self._alias(event.anchor or "", line)
            case yaml.ScalarEvent():
                self._scalar(event, line)

    def _count(self, line: int) -> None:
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise LoadError(f"more than {MAX_NODES:,} values", line)

    def _open(self, event: yaml.MappingStartEvent | yaml.SequenceStartEvent, line: int) -> None:
        self._count(line)
        mapping = isinstance(event, yaml.MappingStartEvent)
        expected = "map" if mapping else "seq"
        if event.tag is not None and CORE_TAGS.get(event.tag) != expected:
            raise LoadError(f"tag {event.tag!r} is refused", line)
        if len(self.stack) >= MAX_DEPTH:
            raise LoadError(f"nested deeper than {MAX_DEPTH} levels", line)
        if self.stack and self.stack[-1].mapping and self.stack[-1].waiting_for_key:
            raise LoadError("a key must be one word, not a collection", line)
        anchor = event.anchor or ""
        if anchor:
            self.open_anchors.add(anchor)
        self.stack.append(_Open(Node({}, line, {}) if mapping else Node([], line, items=[]), mapping, anchor))

    def _close(self) -> None:
        done = self.stack.pop()
        for source in done.merged:
            for key, node in source.pairs.items():
                if key not in done.node.pairs:
                    _put(done.node, key, node)
        self.open_anchors.discard(done.anchor)
        self._place(done.node, done.anchor)

    def _scalar(self, event: yaml.ScalarEvent, line: int) -> None:
        self._count(line)
        node = Node(_typed(event, line), line, raw=event.value)
        if self.stack and self.stack[-1].mapping and self.stack[-1].waiting_for_key:
            self._key(node, merge=event.value == MERGE and event.implicit[0])
        else:
            self._place(node, event.anchor or "")

    def _key(self, node: Node, merge: bool) -> None:
        top = self.stack[-1]
        if node.raw in top.node.pairs and not merge:
            first = top.node.pairs[node.raw].line
            raise LoadError(f"key {node.raw!r} is here twice (first in line {first})", node.line)
        top.key, top.waiting_for_key = (None if merge else node.raw), False
        if not merge:
            top.node.key_lines = top.node.key_lines or {}
            top.node.key_lines[node.raw] = node.line

    def _alias(self, name: str, line: int) -> None:
        if name in self.open_anchors:
            raise LoadError(f"alias *{name} holds itself", line)
        target = self.anchors.get(name)
        if target is None:
            raise LoadError(f"alias *{name} has no anchor", line)
        self.aliased += target.size
        if target.size > MAX_ALIAS_NODES or self.aliased > MAX_ALIASED_NODES:
            raise LoadError(f"alias *{name} stands for too many values", line)
        if self.stack and self.stack[-1].mapping and self.stack[-1].waiting_for_key:
            raise LoadError("a key must be one word, not an alias", line)
        self._place(target, "")

    def _place(self, node: Node, anchor: str) -> None:
        if anchor:
            self.anchors[anchor] = node
        if not self.stack:
            self.root = node
            return
        top = self.stack[-1]
        if not top.mapping:
            top.node.items.append(node)
            top.node.value.append(node.value)
            top.node.size += node.size
        elif top.key is None:
            top.merged += _merge_sources(node)
            top.waiting_for_key = True
        else:
            _put(top.node, top.key, node)
            top.key, top.waiting_for_key = None, True


def _put(mapping: Node, key: str, node: Node) -> None:
    mapping.pairs[key] = node
    mapping.value[key] = node.value
    mapping.size += node.size


def _merge_sources(node: Node) -> list[Node]:
    sources = node.items if isinstance(node.value, list) else [node]
    if not all(isinstance(source.value, dict) for source in sources):
        raise LoadError("<< takes a mapping or a list of mappings", node.line)
    return sources


def _typed(event: yaml.ScalarEvent, line: int) -> Any:
    """The value of a scalar, by its tag or, for a plain one, by its text."""
    text: str = event.value
    if event.tag is not None and event.tag != "!":
        name = CORE_TAGS.get(event.tag)
        if name in (None, "map", "seq"):
            raise LoadError(f"tag {event.tag!r} is refused", line)
        if name == "str":
            return text
        value = plain_value(text)
        if type(value) not in TAGGED_TYPES[str(name)]:
            raise LoadError(f"{text!r} is no {name}", line)
        return value
    return plain_value(text) if event.implicit[0] and event.tag is None else text


def require_finite(node: Node) -> None:
    """Raises LoadError for a number that JSON cannot hold, such as `.inf`: what is to be kept must be stored."""
    stack = [node]
    while stack:
        current = stack.pop()
        if isinstance(current.value, float) and not math.isfinite(current.value):
            raise LoadError(f"{current.raw!r} is no finite number", current.line)
        stack += [*current.pairs.values(), *current.items]


def walk_texts(node: Node, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Node]]:
    """Every text value below a node with its path, in file order. Nodes behind aliases are visited at each place."""
    stack: list[tuple[tuple[str | int, ...], Node]] = [(path, node)]
    while stack:
        where, current = stack.pop()
        if isinstance(current.value, str):
            yield where, current
        children: list[tuple[str | int, Node]] = [*current.pairs.items(), *enumerate(current.items)]
        stack.extend(((*where, key), child) for key, child in reversed(children))
