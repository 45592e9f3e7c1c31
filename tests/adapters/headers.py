"""Adapters of the area `headers`: from a vector's input to a call of the readers, and back."""

from __future__ import annotations

import itertools
import json
import os
import struct
import tempfile
import time
from io import BytesIO
from pathlib import Path
from typing import Any

from models_app.core.catalog import Header
from models_app.core.discovery.identity import quant_of
from models_app.core.errors import HeaderError, TruncatedHeader
from models_app.core.readers import read_header
from models_app.core.readers.cache import HeaderCache, fingerprint_of
from models_app.core.readers.chat_template import advertised_levels, scan_chat_template
from models_app.core.readers.gguf import read_gguf
from models_app.core.readers.hugging_face import CONFIG_NAME, config_header, parse_config, read_folder
from models_app.core.readers.identity import identity_keys
from models_app.core.readers.quant_label import quant_label
from models_app.core.readers.record import header_from_json, header_meta
from models_app.core.readers.remote import (
    RangeRefused,
    RangeRequest,
    fetch_range,
    share_key,
    stamp_size,
    walk_header,
)
from models_app.core.readers.safetensors import header_length, iter_tensors
from models_app.core.readers.tensor_types import BY_ID, tensor_bytes
from tests.gguf_bytes import header_bytes, padded_header

Given = dict[str, Any]
Answer = dict[str, Any]


def take(given: Given, *names: str) -> None:
    """An input field that is not known is a failure."""
    unknown = given.keys() - set(names)
    if unknown:
        raise ValueError(f"unknown input fields {sorted(unknown)}")


def meta_of(header: Header) -> Answer:
    meta = header_meta(header)
    return {"meta": {**meta, "general_name_length": len(header.general_name)}}


def error_of(error: HeaderError) -> Answer:
    answer: Answer = {"code": error.code, "hint": error.hint, "version": error.version}
    if isinstance(error, TruncatedHeader):
        answer |= {"need": error.need, "retryable": error.retryable}
    return {"error": answer}


def read_gguf_header(given: Given) -> Answer:
    take(given, "header", "raw_hex", "path_is_directory", "path_exists", "file_size", "partial")
    try:
        if given.get("path_is_directory") or given.get("path_exists") is False:
            with tempfile.TemporaryDirectory() as folder:
                return meta_of(read_header(folder if given.get("path_is_directory") else f"{folder}/missing.gguf"))
        raw = header_bytes(given["header"]) if "header" in given else bytes.fromhex(given["raw_hex"])
        return meta_of(read_gguf(BytesIO(raw), given.get("file_size", len(raw))))
    except HeaderError as error:
        return error_of(error)


def tensor_size(given: Given) -> Answer:
    take(given, "type", "shape")
    kind = BY_ID.get(given["type"])
    return {
        "type_name": kind.name if kind else None,
        "block": kind.block if kind else None,
        "block_bytes": kind.block_bytes if kind else None,
        "bytes": tensor_bytes(given["type"], given["shape"]),
    }


def label(given: Given) -> Answer:
    take(given, "type_bytes")
    return {"label": quant_label({int(type_id): size for type_id, size in given["type_bytes"].items()})}


def identity(given: Given) -> Answer:
    take(given, "base_name", "size_label", "fine_tune", "general_name")
    keys = identity_keys(given["base_name"], given["size_label"], given["fine_tune"], given["general_name"])
    return keys._asdict()


def long_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if "repeat" in value:
        return value["repeat"] * value["count"]
    return "".join(long_text(part) for part in value["parts"])


def scan_template(given: Given) -> Answer:
    take(given, "template")
    template = long_text(given["template"])
    started = time.perf_counter()
    facts = scan_chat_template(template)
    elapsed_ms = (time.perf_counter() - started) * 1000
    return {
        "preserves_thinking": facts.preserves_thinking,
        "effort_levels": list(facts.effort_levels),
        "elapsed_ms": elapsed_ms,
    }


def effort_levels(given: Given) -> Answer:
    take(given, "baked_levels", "override_template")
    override = given["override_template"]
    text = long_text(override) if override is not None and override != {"missing": True} else None
    levels = advertised_levels(tuple(given["baked_levels"]), has_override=override is not None, override_text=text)
    return {"effort_levels": list(levels)}


def safetensors_header(given: Given) -> Answer:
    take(given, "raw_hex", "file_size")
    stream = BytesIO(bytes.fromhex(given["raw_hex"]))
    try:
        length = header_length(stream, given["file_size"])
        records = list(iter_tensors(stream, length))
    except HeaderError as error:
        return error_of(error)
    return {"tensors": {record.name: {"dtype": record.dtype, "shape": list(record.shape)} for record in records}}


def hf_metadata(given: Given) -> Answer:
    take(given, "config")
    if given["config"] is None:
        with tempfile.TemporaryDirectory() as folder:
            try:
                return meta_of(read_folder(folder))
            except HeaderError as error:
                return error_of(error)
    raw = json.dumps(given["config"]).encode()
    config = parse_config(BytesIO(raw), len(raw))
    if config is None:
        return {"error": {"code": f"broken {CONFIG_NAME}"}}
    return meta_of(config_header(config))


def metadata_cache(given: Given) -> Answer:
    take(given, "seed", "file_content", "change", "reads", "mutate_result")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.gguf")
        Path(path).write_text(given.get("file_content", "GGUF"))
        cache = HeaderCache(Path(folder) / "cache" / "headers.sqlite3")
        try:
            if given.get("seed") is not None:
                cache.put(path, fingerprint_of([path]), seed_header(given["seed"]))
            apply_change(path, given.get("change") or {})
            return read_through(cache, path, given)
        finally:
            cache.close()


def seed_header(meta: Given) -> Header:
    """A record from meta facts, where null is absent and the size is in GB."""
    record = {name: value for name, value in meta.items() if value is not None}
    if "file_size_gb" in record:
        record["file_size_bytes"] = round(record.pop("file_size_gb") * (1 << 30))
    return header_from_json(record)


def apply_change(path: str, change: Given) -> None:
    take(change, "mtime_ns_delta", "content")
    status = os.stat(path)
    if "content" in change:
        Path(path).write_text(change["content"])
    if "mtime_ns_delta" in change:
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + change["mtime_ns_delta"]))


def read_through(cache: HeaderCache, path: str, given: Given) -> Answer:
    opens = itertools.count()

    def parse() -> Header:
        next(opens)
        return read_header(path)

    answer: Answer = {}
    for number in range(given.get("reads", 1) + bool(given.get("mutate_result"))):
        try:
            header = cache.read([path], parse)
            answer = meta_of(header)
        except HeaderError as error:
            answer = error_of(error)
        else:
            if given.get("mutate_result") and number == 0:
                try_to_change(header)
    return answer | {"opens": next(opens)}


def try_to_change(header: Header) -> None:
    for change in (
        lambda: setattr(header, "architecture", "changed"),
        lambda: header.head_count_kv_arr.__setitem__(0, 99),  # type: ignore[attr-defined]
        lambda: header.extra.__setitem__("changed", 1),  # type: ignore[index]
    ):
        try:
            change()
        except (AttributeError, TypeError):
            continue


def header_share_key(given: Given) -> Answer:
    take(given, "file_name")
    return {"key": share_key(given["file_name"], quant_of(given["file_name"]))}


def remote_header_size(given: Given) -> Answer:
    take(given, "group_file_bytes", "prefix_bytes")
    return {"file_size_gb": stamp_size(Header(), given["group_file_bytes"]).file_size_gib}


def remote_header_walk(given: Given) -> Answer:
    take(given, "file_bytes", "header_bytes", "first_bytes_hex")
    if "header_bytes" in given:
        content = padded_header(given["header_bytes"])
    else:
        content = bytes.fromhex(given["first_bytes_hex"])
    file_bytes = given["file_bytes"]
    requests: list[list[int]] = []

    def fetch(offset: int, length: int) -> bytes:
        requests.append([offset, length])
        end = min(offset + length, file_bytes)
        return content[offset:end].ljust(max(end - offset, 0), b"\0")

    try:
        walk_header(fetch, file_bytes)
    except HeaderError as error:
        return {"requests": requests, "result": error.code}
    return {"requests": requests, "result": "ok"}


class ServerAnswer:
    """What a server sends for one range of a file in which every 8 bytes hold their own number."""

    location = ""

    def __init__(self, given: Given, first: int, last: int) -> None:
        size = given.get("file_bytes", 0)
        ignores = given.get("server_ignores_range", False)
        self.status = 200 if ignores else 206
        start, end = (0, size) if ignores else (first, min(last + 1, size))
        content = b"".join(struct.pack(">Q", number) for number in range(start // 8, end // 8 + 1))
        shifted = content[start % 8 :][: max(end - start, 0)]
        self.body = [shifted[index : index + 1000] for index in range(0, len(shifted), 1000)]


def range_fetch(given: Given) -> Answer:
    take(given, "offset", "length", "file_bytes", "repo", "path", "server_ignores_range")
    requests: list[str] = []

    def send(url: str, headers: Any) -> ServerAnswer:
        requests.append(url)
        first, last = headers["Range"].removeprefix("bytes=").split("-")
        return ServerAnswer(given, int(first), int(last))

    request = RangeRequest(
        given.get("repo", "owner/name"), given.get("path", "model.gguf"), given["offset"], given["length"]
    )
    try:
        taken = fetch_range(request, send, base_url="https://hub.example", allowed_hosts=["hub.example"])
    except RangeRefused as error:
        return {"error": str(error), "requests": len(requests)}
    skipped = -request.offset % 8
    answer: Answer = {"returned_bytes": len(taken), "requests": len(requests)}
    if len(taken) >= skipped + 8:
        answer["returned_first_byte_offset"] = struct.unpack_from(">Q", taken, skipped)[0] * 8 - skipped
    return answer


ADAPTERS = {
    "read_gguf_header": read_gguf_header,
    "tensor_bytes": tensor_size,
    "quant_label": label,
    "identity": identity,
    "scan_chat_template": scan_template,
    "effort_levels": effort_levels,
    "safetensors_header": safetensors_header,
    "hf_metadata": hf_metadata,
    "metadata_cache": metadata_cache,
    "header_share_key": header_share_key,
    "remote_header_size": remote_header_size,
    "remote_header_walk": remote_header_walk,
    "fetch_range": range_fetch,
}
