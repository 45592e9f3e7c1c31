"""`inspect FILE…`: what the header of a model file says."""

from __future__ import annotations

import argparse
import json
import os
from typing import TYPE_CHECKING, Any, TextIO

from models_app.core.discovery.hostile_names import printable
from models_app.core.errors import HeaderError
from models_app.core.verbs.environment import Environment

if TYPE_CHECKING:
    from models_app.core.readers.cache import HeaderCache

_LABEL_WIDTH = 14


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of this verb."""
    parser.add_argument("files", nargs="+", metavar="FILE", help="a model file, any part of a split set, or a folder")
    parser.add_argument("--json", action="store_true", help="one JSON object a line and file")
    parser.add_argument("--no-cache", action="store_true", help="read afresh, keep nothing")


def run(options: argparse.Namespace, environment: Environment) -> int:
    """Print the facts of each file in the order given. 0 when all could be read, else 1."""
    # Readers are loaded only now, so that a wrong argument is answered at once.
    from models_app.core.readers.cache import HeaderCache

    cache = (
        None if options.no_cache else HeaderCache(environment.header_cache, fold_case=environment.platform != "linux")
    )
    failed = False
    try:
        for index, path in enumerate(options.files, 1):
            environment.note(f"{index}/{len(options.files)} {printable(path)}")
            result = inspect_file(path, cache)
            environment.clear_note()
            failed |= "error" in result
            (_write_json if options.json else _write_text)(result, environment.stdout)
    finally:
        if cache is not None:
            cache.close()
    return int(failed)


def inspect_file(path: str, cache: HeaderCache | None = None) -> dict[str, Any]:
    """The answer for one file: its facts, or what is wrong with it."""
    from models_app.core.classes import classify
    from models_app.core.readers import read_header
    from models_app.core.readers.record import header_meta

    try:
        header = read_header(path, cache=cache)
    except HeaderError as error:
        return {"file": path, "error": {"code": error.code, "message": error.message, "offset": error.offset}}
    return {
        "file": path,
        "format": header.format,
        "size_bytes": header.file_size_bytes,
        "class": classify(os.path.basename(path.rstrip("/")), header).model_class,
        "meta": header_meta(header),
        "warnings": list(header.warnings),
    }


def _write_json(result: dict[str, Any], stdout: TextIO) -> None:
    json.dump(result, stdout)  # piece by piece: a hostile header may hold megabytes of text
    stdout.write("\n")


def _write_text(result: dict[str, Any], stdout: TextIO) -> None:
    lines = [printable(result["file"])]
    if "error" in result:
        error = result["error"]
        place = f" (at byte {error['offset']:,})" if error["offset"] else ""
        lines.append(_line("error", f"{error['message']}{place} [{error['code']}]"))
    else:
        lines += [_line(label, text) for label, text in _facts(result) if text]
        lines += [_line("warning", text) for text in result["warnings"]]
    encoding = stdout.encoding or "utf-8"
    text = "\n".join(lines) + "\n"
    stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))


def _line(label: str, text: str) -> str:
    return f"  {label:<{_LABEL_WIDTH}} {printable(text[:400])}"


def _facts(result: dict[str, Any]) -> list[tuple[str, str]]:
    """Label and text of each fact worth a line; an empty text means there is nothing to say."""
    meta = result["meta"]
    return [
        ("class", result["class"]),
        ("format", f"{result['format']}, {result['size_bytes']:,} bytes ({meta['file_size_gb']:g} GiB)"),
        ("name", meta["general_name"]),
        ("architecture", meta["architecture"]),
        ("quant", meta["quant_label"]),
        ("parameters", _number(meta["param_count"])),
        ("context", _number(meta["context_length"], " tokens trained")),
        ("layers", _layers(meta)),
        ("heads", _heads(meta)),
        ("vocabulary", _number(meta["vocab_size"], " tokens")),
        ("experts", _experts(meta)),
        ("window", _number(meta["sliding_window"], " tokens sliding")),
        ("network", " ".join(part for part in (meta["diffusion_kind"], meta["video_kind"]) if part)),
        ("effort levels", ", ".join(meta["effort_levels"])),
        ("parts", _number(meta["split_count"], " in the set")),
        ("complete", "" if meta["data_complete"] is None else "yes" if meta["data_complete"] else "no"),
    ]


def _number(value: int, unit: str = "") -> str:
    return f"{value:,}{unit}" if value else ""


def _layers(meta: dict[str, Any]) -> str:
    if not meta["block_count"]:
        return ""
    notes = [f"{meta['embedding_length']:,} wide"]
    if meta["head_count_kv_arr"]:
        notes.append(f"{meta['attn_layer_count']} with attention")
    if meta["nextn_layers"]:
        notes.append(f"{meta['nextn_layers']} for prediction")
    return f"{meta['block_count']:,} ({', '.join(notes)})"


def _heads(meta: dict[str, Any]) -> str:
    if not meta["head_count"]:
        return ""
    sizes = f"key {meta['key_length']}, value {meta['value_length']}"
    return f"{meta['head_count']}, {meta['head_count_kv']} for KV ({sizes})"


def _experts(meta: dict[str, Any]) -> str:
    if not meta["expert_count"]:
        return ""
    return f"{meta['expert_count']}, {meta['expert_used']} used ({meta['expert_weight_share']:.0%} of the bytes)"
