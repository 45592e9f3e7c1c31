"""The two files as values, and reading them (state.md 1, 8): the generate file that people write, the UI's sidecar."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from models_app.core.errors import SettingsError
from models_app.core.export.fragments import YAML, Fragments, form_of
from models_app.core.export.load import LoadError, Node, decode, load
from models_app.core.fields import PATCH_FIELDS
from models_app.core.settings import Override, Settings, override_from_mapping, record_from_mapping
from models_app.core.settings.codec import shape
from models_app.core.settings_files.reading import Path, Remark, Remarks, record_document
from models_app.core.state.loading import LoadedState, Measured, load_state
from models_app.core.state.sidecar import Sidecar, sidecar_from_mapping

GENERATE_FILE_NAME = "quartermaster-generate.yaml"

Content = TypeVar("Content")


@dataclass(frozen=True, slots=True)
class FolderSpec:
    """One folder of the scan. A blank category is the main one."""

    path: str = ""
    category: str = ""


@dataclass(frozen=True, slots=True)
class OwnSettings:
    """Keys of the settings map that only this program knows; others pass over them."""

    folders: tuple[FolderSpec, ...] = ()
    """Every folder that is scanned, where `modelsRoot` and `categoryRoots` cannot say it: they have one a category."""
    device_reserve_gb: Mapping[str, float] = field(default_factory=dict)
    """Index of a device -> GiB that plans leave to others."""
    device_preference: Mapping[str, str] = field(default_factory=dict)
    """Index of a device -> `first`, `last` or `never`: when plans use it."""
    fragments: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    """Served id -> raw keys that are merged last into a router's file; "" is the top of the file."""
    preset_fragments: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    """The same for the presets of llama-server's router."""

    def fragments_for(self, dialect: str) -> Fragments:
        """What is merged into a file of a dialect."""
        kept = dict(self.fragments if form_of(dialect) == YAML else self.preset_fragments)
        return Fragments(kept.pop("", {}), kept)


@dataclass(frozen=True, slots=True)
class GenerateFile:
    """The generate file: keys that it sets, in the types of their fields, and its rows in order."""

    settings: Mapping[str, Any] = field(default_factory=dict)
    own: OwnSettings = field(default_factory=OwnSettings)
    overrides: tuple[Override, ...] = ()

    @property
    def document(self) -> dict[str, Any]:
        """What `state.loading` takes, without the rows."""
        return {"settings": dict(self.settings)}


@dataclass(frozen=True, slots=True)
class ReadFile(Generic[Content]):
    """A file that was read: what it says, what of it cannot be taken, and which keys nothing reads."""

    content: Content
    tree: Node
    errors: tuple[Remark, ...] = ()
    unknown: tuple[Remark, ...] = ()

    def line_of(self, path: Path) -> int:
        return self.tree.line_named(path)

    def errors_below(self, path: Path) -> tuple[Remark, ...]:
        """What cannot be taken of one part."""
        return tuple(remark for remark in self.errors if remark.path[: len(path)] == path)


def read_generate_file(data: bytes) -> ReadFile[GenerateFile]:
    """A generate file from its bytes; nothing but faults of the text as a whole raise (`LoadError`)."""
    tree, remarks = _top(data), Remarks()
    _only(tree, ("settings", "overrides"), remarks)
    node = tree.child("settings") or Node(None, tree.line)
    own = shape(OwnSettings).keys()
    settings = record_document(Settings, _without(node, own), ("settings",), remarks)
    ours = record_from_mapping(OwnSettings, record_document(OwnSettings, _with(node, own), ("settings",), remarks))
    rows = tuple(_rows(tree.child("overrides"), ("overrides",), remarks))
    return ReadFile(GenerateFile(settings, ours, rows), tree, tuple(remarks.errors), tuple(remarks.unknown))


def read_sidecar(data: bytes) -> ReadFile[Sidecar]:
    """A sidecar from its bytes; an empty one is empty state. Raises `LoadError` as above."""
    tree, remarks = _top(data), Remarks()
    known = shape(Sidecar)
    _only(tree, known, remarks)
    apart = ("settings", "overrides")
    document = record_document(Sidecar, _with(tree, [key for key in known if key not in apart]), (), remarks)
    patch = tree.child("settings") or Node(None, tree.line)
    patch_keys = [field.key for field in PATCH_FIELDS]
    document["settings"] = record_document(Settings, patch, ("settings",), remarks, keys=patch_keys)
    sidecar = sidecar_from_mapping(document)
    rows = tuple(_rows(tree.child("overrides"), ("overrides",), remarks))
    content = Sidecar(**{**{name: getattr(sidecar, name) for name in sidecar.__slots__}, "overrides": rows})
    return ReadFile(content, tree, tuple(remarks.errors), tuple(remarks.unknown))


def state_of(
    generate_file: GenerateFile, sidecar: Sidecar, *, models_dir: str = "", measured: Measured | None = None
) -> LoadedState:
    """What planning starts from: the load sequence of state.md 2 over the two files."""
    return load_state(
        generate_file.document, sidecar, models_dir=models_dir, measured=measured, rows=generate_file.overrides
    )


def must_be_sound(name: str, read: ReadFile[Content]) -> Content:
    """The content of a file that is used as a whole. Raises `SettingsError` with all that is wrong in it."""
    if read.errors:
        shown = "\n".join(f"{name}: {remark}" for remark in read.errors[:20])
        more = len(read.errors) - 20
        raise SettingsError(f"{shown}\n{name}: {more} more" if more > 0 else shown)
    return read.content


def _top(data: bytes) -> Node:
    tree = load(decode(data))
    if tree.value is None:
        return Node({}, 1)
    if not isinstance(tree.value, dict):
        raise LoadError("expected a map at the top", tree.line)
    return tree


def _rows(node: Node | None, path: Path, remarks: Remarks) -> Iterable[Override]:
    if node is None or node.value is None:
        return
    if not isinstance(node.value, list):
        remarks.wrong(node, path, "expected a list")
        return
    for index, child in enumerate(node.items):
        row = override_from_mapping(record_document(Override, child, (*path, index), remarks))
        if not row.match.strip():
            remarks.wrong(child, (*path, index), "match is required")
        yield row


def _only(tree: Node, known: Iterable[str], remarks: Remarks) -> None:
    names = list(known)
    for key in tree.pairs:
        if key not in names:
            remarks.not_known(tree.key_line(key), (key,), names)


def _with(node: Node, keys: Iterable[str]) -> Node:
    """A map with these keys alone; anything else as it is."""
    wanted = set(keys)
    if not isinstance(node.value, dict):
        return Node(None, node.line)
    pairs = {key: child for key, child in node.pairs.items() if key in wanted}
    return Node({key: child.value for key, child in pairs.items()}, node.line, pairs, key_lines=node.key_lines)


def _without(node: Node, keys: Iterable[str]) -> Node:
    if not isinstance(node.value, dict):
        return node
    return _with(node, node.pairs.keys() - set(keys)) if node.pairs.keys() & set(keys) else node
