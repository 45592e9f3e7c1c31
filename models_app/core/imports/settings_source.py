"""What a generate file and its sidecar say, as items of an import (web.md 12.4).

Either file may be missing. Where both say something about the same, the sidecar counts and the other line is told, as
it is in the load sequence. Nothing is left out: faults, keys that nothing reads, and what has no place here are items
that go nowhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from models_app.core.errors import ExportError
from models_app.core.export.load import MAX_BYTES, decode
from models_app.core.fields import PATCH_FIELDS, SETTINGS_FIELDS, Field
from models_app.core.imports.report import Item, Kind, Target
from models_app.core.imports.settings_lists import list_items
from models_app.core.imports.settings_rows import KnownFile, PathKey, row_items
from models_app.core.imports.settings_said import Files, Said, lost
from models_app.core.settings.codec import shape
from models_app.core.settings_files.archive import texts_of_zip
from models_app.core.settings_files.files import GENERATE_FILE_NAME, read_generate_file, read_sidecar
from models_app.core.settings_files.reading import Remark
from models_app.core.state.sidecar import FILE_NAME, Sidecar

SETTINGS, REMARKS = "settings", "remarks"
"""Headings of the report, beside those of lists and rows."""

_SECTIONS = {"encoders": "encoders", "promptEnhancers": "enhancers", "extraImageModels": "declared"}
_PATCHED = frozenset(field.key for field in PATCH_FIELDS)
_LISTS = frozenset({"displayNames", "slotCache", "promptEnhancers"})
"""Keys that have a place of their own at the top of a sidecar."""
_IN_FILE_ONLY = frozenset({"groups", "encoders"})


SEAM = f"--- # {FILE_NAME}"
"""A line between a generate file and the sidecar that goes with it, where both come as one text."""


def joined(file: str, sidecar: str) -> str:
    """Both files as one text."""
    return f"{file}{'' if file.endswith(chr(10)) else chr(10)}{SEAM}\n{sidecar}"


def from_archive(data: bytes) -> str:
    """Both files of an exported archive as one text. Raises `ExportError` where it has neither."""
    found = texts_of_zip(data, (GENERATE_FILE_NAME, FILE_NAME), MAX_BYTES)
    if not found:
        raise ExportError(f"The archive has neither {GENERATE_FILE_NAME} nor {FILE_NAME}.")
    texts = [decode(found.get(name, b"")) for name in (GENERATE_FILE_NAME, FILE_NAME)]
    return joined(*texts)


def read_files(name: str, data: bytes) -> Files:
    """The file or the files of a text: one alone is a sidecar by its name, or by a key that only a sidecar has.

    Raises `LoadError` with the line in its file.
    """
    first, seam, second = data.partition(f"\n{SEAM}\n".encode())
    if seam:
        return Files(read_generate_file(first), read_sidecar(second))
    if name.replace("\\", "/").rpartition("/")[2] == FILE_NAME:
        return Files(None, read_sidecar(data))
    found = read_generate_file(data)
    only = shape(Sidecar).keys() - {"settings", "overrides"}
    return Files(None, read_sidecar(data)) if only & found.tree.pairs.keys() else Files(found, None)


def section_of_key(key: str) -> str:
    """The section of a host's settings that holds a key: its group in the catalogue, but for a few."""
    return _SECTIONS.get(key) or next((field.group for field in SETTINGS_FIELDS if field.key == key), "")


def settings_items(files: Files, models: Iterable[KnownFile], key: PathKey) -> tuple[Item, ...]:
    """Everything in the files as items, in the order in which they have to be applied."""
    settings = (item for field in SETTINGS_FIELDS for item in _items_of(files, field))
    return (
        *list_items(files),
        *settings,
        *_own_settings(files),
        *row_items(files, tuple(models), key),
        *_remarks(files),
    )


def _items_of(files: Files, field: Field) -> Iterator[Item]:
    """The items of a key that is a value of a section."""
    key = field.key
    if key in _PATCHED:
        own = files.in_sidecar("settings", key)
    elif key in _LISTS:
        own = files.in_sidecar(key)
    elif key in _IN_FILE_ONLY:
        own = None
    else:
        return
    if key == "displayNames":
        yield from _names(files)
        return
    said, others = files.counting(key, own, SETTINGS)
    yield from others
    if said is None:
        return
    if field.file_zero is not None and said.value == 0 and own is None:
        yield lost(said, SETTINGS, "0 in a generate file is “not set”.")
    elif key == "encoders":
        for name in said.value:
            if pin := files.in_file(key, name):
                yield _setting(name, pin, section_of_key(key))
    else:
        yield _setting(key, said)


def _setting(key: str, said: Said, section: str = "") -> Item:
    target = Target(Kind.SETTING, section or section_of_key(key), field=key)
    return Item(said.source, said.line, target, said.value, SETTINGS)


def _names(files: Files) -> Iterator[Item]:
    """The one map that is laid over the file's, name by name."""
    own, other = files.in_sidecar("displayNames"), files.in_file("displayNames")
    said = own or other
    if said is not None:
        value = {**(other.value if other else {}), **(own.value if own else {})}
        yield _setting("displayNames", Said(said.source, said.line, value))


def _own_settings(files: Files) -> Iterator[Item]:
    """What only this program writes into such a file."""
    if files.file is None:
        return
    own = files.file.content.own
    for key, value in (("deviceReserveGB", own.device_reserve_gb), ("devicePreference", own.device_preference)):
        if value:
            line = files.file.line_of(("settings", key))
            yield _setting(key, Said(f"settings.{key}", line, dict(value)), "gpu")


def _remarks(files: Files) -> Iterator[Item]:
    """Faults of the settings, and keys that nothing reads. Faults of rows are told where the rows are."""
    for prefix, read in (("", files.file), ("sidecar ", files.sidecar)):
        for remark in read.errors if read else ():
            if remark.path[:1] != ("overrides",) or len(remark.path) < 2:
                yield _remark(prefix, remark, f"Cannot be used: {remark.text}.")
        for remark in read.unknown if read else ():
            yield _remark(prefix, remark, f"{remark.text[:1].upper()}{remark.text[1:]}.")


def _remark(prefix: str, remark: Remark, note: str) -> Item:
    return lost(Said(f"{prefix}{remark.where}", remark.line, None), REMARKS, note)
