"""Writes GGUF headers from the notation of tests/vectors/README.md section 4, as small as a test needs them."""

from __future__ import annotations

import struct
from typing import Any

from models_app.core.readers.tensor_types import tensor_bytes

FORMATS = {
    "u8": "B",
    "i8": "b",
    "u16": "H",
    "i16": "h",
    "u32": "I",
    "i32": "i",
    "f32": "f",
    "bool": "?",
    "string": "",
    "array": "",
    "u64": "Q",
    "i64": "q",
    "f64": "d",
}
TYPE_IDS = {name: number for number, name in enumerate(FORMATS)}


def raw_text(value: Any) -> bytes:
    """A key, a name or a string value: text, {repeat, count} or {hex}."""
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytes):
        return value
    if "hex" in value:
        return bytes.fromhex(value["hex"])
    return value["repeat"].encode() * value["count"]


def string(value: Any) -> bytes:
    raw = raw_text(value)
    return struct.pack("<Q", len(raw)) + raw


def scalar(kind: str, value: Any) -> bytes:
    if kind == "string":
        return string(value)
    if isinstance(value, dict) and "hex" in value:
        return bytes.fromhex(value["hex"])
    return struct.pack("<" + FORMATS[kind], value)


def typed_value(kind: str, value: Any) -> bytes:
    """Value type and value."""
    if not kind.startswith("array<"):
        return struct.pack("<I", TYPE_IDS[kind]) + scalar(kind, value)
    return struct.pack("<I", TYPE_IDS["array"]) + array(kind, value)


def array(kind: str, value: Any) -> bytes:
    """Element type, count, elements; the element type may itself be an array."""
    element = kind[len("array<") : -1]
    if isinstance(value, dict) and "hex" in value:
        body = bytes.fromhex(value["hex"])
        count = len(body) // struct.calcsize("<" + FORMATS[element])
    elif isinstance(value, dict):
        one = array(element, value["repeat"]) if element.startswith("array<") else scalar(element, value["repeat"])
        count, body = value["count"], one * value["count"]
    elif element.startswith("array<"):
        count, body = len(value), b"".join(array(element, item) for item in value)
    else:
        count, body = len(value), b"".join(scalar(element, item) for item in value)
    return struct.pack("<IQ", TYPE_IDS[element.split("<")[0]], count) + body


def pair(key: Any, kind: str, value: Any) -> bytes:
    return string(key) + typed_value(kind, value)


def tensor(name: Any, shape: list[int], type_id: int, offset: int = 0) -> bytes:
    return string(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, type_id, offset)


def gguf(pairs: list[bytes] | None = None, tensors: list[bytes] | None = None, *, version: int = 3) -> bytes:
    """A header from finished pairs and tensor infos."""
    pairs, tensors = pairs or [], tensors or []
    return b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(pairs)) + b"".join(pairs) + b"".join(tensors)


def header_bytes(header: dict[str, Any]) -> bytes:
    """A header in the notation of the vectors: offsets run on, each tensor padded to 32 bytes, nothing behind."""
    infos, offset = [], 0
    for entry in header.get("tensors", []):
        infos.append(tensor(entry["name"], entry["shape"], entry["type"], offset))
        offset += -(-(tensor_bytes(entry["type"], entry["shape"]) or 0) // 32) * 32
    pairs = [pair(key, kind, value) for key, kind, value in header.get("kv", [])]
    return gguf(pairs, infos, version=header.get("version", 3))


def padded_header(size: int) -> bytes:
    """A header of exactly `size` bytes (at least 200), nearly all of it a tokenizer of 1,016-byte strings."""
    first = pair("general.architecture", "string", "llama")
    array_head = string("tokenizer.ggml.tokens") + struct.pack("<IIQ", 9, 8, 0)
    filler_head = string("filler") + struct.pack("<IQ", 8, 0)
    room = size - 24 - len(first) - len(array_head) - len(filler_head)
    count, rest = divmod(room, 1024)
    tokens = string("tokenizer.ggml.tokens") + struct.pack("<IIQ", 9, 8, count) + string("t" * 1016) * count
    filler = string("filler") + struct.pack("<IQ", 8, rest) + bytes(rest)
    return gguf([first, tokens, filler])
