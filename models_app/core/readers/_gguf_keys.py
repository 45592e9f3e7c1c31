"""The key-value section of a GGUF file: one pass, front to back, keeping little (headers.md 1.3, 4, 15)."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import NamedTuple

from models_app.core.errors import MalformedHeader
from models_app.core.readers import limits
from models_app.core.readers._names import compact_name, printable
from models_app.core.readers._window import Window

BOOL, STRING, ARRAY, U32 = 7, 8, 9, 4
SCALARS: dict[int, struct.Struct] = {
    type_id: struct.Struct("<" + letter) for type_id, letter in enumerate("BbHhIif?")
} | {type_id: struct.Struct("<" + letter) for type_id, letter in ((10, "Q"), (11, "q"), (12, "d"))}
"""Value type id -> layout. A bool is any byte; everything but 0 is true."""
_FLOATS = frozenset({6, 12})
_WIDTHS = {type_id: layout.size for type_id, layout in SCALARS.items()}
_ODD_ARRAY_COST = 16
"""How many plain elements an inner array costs that cannot be stepped over in one jump."""
_SMALLEST_ELEMENT = {STRING: 8, ARRAY: 12}

ALIGNMENT_KEY = b"general.alignment"
WANTED_STRINGS = frozenset(
    {
        b"general.architecture",
        b"general.type",
        b"general.name",
        b"general.basename",
        b"general.size_label",
        b"general.finetune",
        b"tokenizer.chat_template",
        b"audiocpp.model_spec.family",
        b"qwen3-tts.model_type",
        b"config",
    }
)
WANTED_STRING_ENDINGS = (b".rope.scaling.type", b".decision.type")
"""Under any architecture, because a key may stand before the one that names the architecture."""


class ArrayValue(NamedTuple):
    """An array: always type and count, the elements only of small integer and bool arrays."""

    type_id: int
    length: int
    elements: tuple[int, ...] | None


Value = int | float | bool | bytes | ArrayValue


@dataclass(slots=True)
class KeyValues:
    """What was kept of the section. Strings stay bytes; a value that was not kept has no entry."""

    values: dict[bytes, Value] = field(default_factory=dict)
    alignment: int = limits.DEFAULT_ALIGNMENT
    warnings: list[str] = field(default_factory=list)

    def warn(self, text: str) -> None:
        if len(self.warnings) < limits.MAX_WARNINGS:
            self.warnings.append(text)


class KeyWalk:
    """Walks the section of one file; the budgets for walked and kept elements are those of the whole file."""

    def __init__(self, window: Window) -> None:
        self._window = window
        self._result = KeyValues()
        self._walked = 0
        self._kept_elements = 0

    def run(self, count: int) -> KeyValues:
        """Read `count` pairs."""
        seen: set[bytes | str | int] = set()
        for _ in range(count):
            start = self._window.offset
            key = self._key()
            name = compact_name(key)
            if name in seen:
                raise MalformedHeader("duplicate_key", f"the key {printable(key)!r} occurs twice", offset=start)
            seen.add(name)
            self._pair(key)
        return self._result

    def _key(self) -> bytes:
        start = self._window.offset
        length = self._window.u64()
        if not 1 <= length <= limits.MAX_NAME_BYTES:
            raise MalformedHeader("key_length", f"a key of {length:,} bytes", offset=start)
        if length > self._window.full_size:
            raise MalformedHeader("string_length", f"a key of {length:,} bytes in a smaller file", offset=start)
        return self._window.take(length)

    def _pair(self, key: bytes) -> None:
        start = self._window.offset
        type_id = self._window.u32()
        if key == ALIGNMENT_KEY and type_id != U32:
            raise MalformedHeader("alignment", f"general.alignment has value type {type_id}, not u32", offset=start)
        value = self._value(type_id, key)
        if value is not None and len(key) <= limits.MAX_EXTRA_KEY_BYTES:
            self._result.values[key] = value
        if key == ALIGNMENT_KEY:
            self._set_alignment(value, start)

    def _set_alignment(self, value: Value | None, start: int) -> None:
        if not isinstance(value, int) or value.bit_count() != 1 or value > limits.MAX_ALIGNMENT:
            raise MalformedHeader("alignment", f"general.alignment is {value!r}, no power of two", offset=start)
        self._result.alignment = value

    def _value(self, type_id: int, key: bytes) -> Value | None:
        layout = SCALARS.get(type_id)
        if layout is not None:
            raw = self._window.take(layout.size)
            value: int | float | bool = layout.unpack(raw)[0]
            return value
        if type_id == STRING:
            return self._string(key)
        if type_id == ARRAY:
            return self._array(key, 1)
        raise MalformedHeader(
            "value_type", f"{printable(key)!r} has the unknown value type {type_id}", offset=self._window.offset - 4
        )

    def _string(self, key: bytes) -> bytes | None:
        length = self._window.string_length()
        is_wanted = key in WANTED_STRINGS
        limit = limits.MAX_STRING_BYTES
        if not is_wanted and key.endswith(WANTED_STRING_ENDINGS):
            is_wanted, limit = True, limits.MAX_SHORT_TEXT
        if is_wanted and length <= limit:
            return self._window.take(length)
        if is_wanted:
            self._result.warn(f"{printable(key)} is {length:,} bytes long and was ignored")
        self._window.skip(length)
        return None

    def _array(self, key: bytes, depth: int) -> ArrayValue:
        """Step over an array, or take it in when it is small and of integers or bools. Checks come before any move."""
        start = self._window.offset
        type_id = self._window.u32()
        layout = SCALARS.get(type_id)
        width = layout.size if layout is not None else _SMALLEST_ELEMENT.get(type_id)
        if width is None:
            raise MalformedHeader(
                "value_type", f"{printable(key)!r} has the unknown element type {type_id}", offset=start
            )
        count = self._window.u64()
        if count > limits.MAX_ARRAY_ELEMENTS or count * width > self._window.full_size:
            why = "more than are read" if count > limits.MAX_ARRAY_ELEMENTS else "more than the file has room for"
            raise MalformedHeader(
                "array_count", f"{printable(key)!r} claims {count:,} elements, {why}", offset=start + 4
            )
        if layout is None:
            self._walk(key, type_id, count, depth, start)
        elif depth == 1 and type_id not in _FLOATS and 1 <= count <= limits.MAX_KEPT_ELEMENTS:
            return ArrayValue(type_id, count, self._elements(key, layout, count))
        else:
            self._window.skip(count * width)
        return ArrayValue(type_id, count, None)

    def _walk(self, key: bytes, type_id: int, count: int, depth: int, start: int) -> None:
        self._walked += count
        if self._walked > limits.MAX_WALKED_ELEMENTS:
            raise MalformedHeader(
                "array_count",
                f"too many strings and inner arrays, {count:,} of them in {printable(key)!r}",
                offset=start,
            )
        if type_id == STRING:
            self._window.skip_strings(count)
            return
        if depth == limits.MAX_NESTING and count:
            raise MalformedHeader("nesting", f"{printable(key)!r} nests arrays too deep", offset=start)
        done = 0
        while done < count:
            done += self._window.skip_arrays(count - done, _WIDTHS)
            if done < count:
                self._walked += _ODD_ARRAY_COST
                self._array(key, depth + 1)
                done += 1

    def _elements(self, key: bytes, layout: struct.Struct, count: int) -> tuple[int, ...] | None:
        raw = self._window.take(count * layout.size)
        self._kept_elements += count
        if self._kept_elements > limits.MAX_KEPT_TOTAL:
            self._result.warn(f"{printable(key)} was ignored: the header holds too many arrays")
            return None
        return struct.unpack(f"<{count}{layout.format[-1]}", raw)
