"""Adapters of the discovery operations (tests/vectors/README.md 5)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from models_app.core.catalog import FileEntry, Header, Row
from models_app.core.classes.audiocpp import is_audiocpp_model
from models_app.core.classes.llm import is_vision_language_model
from models_app.core.discovery import audio_packages, enhancers, families, identity, inheritance, names, sidecars
from models_app.core.discovery.inventory import discover
from models_app.core.discovery.ladder import CANDIDATE, file_kind
from models_app.core.discovery.roots import is_category, path_key, root_list
from models_app.core.discovery.shards import shard_name
from models_app.core.discovery.trellis import companions
from models_app.core.discovery.walk import list_files
from models_app.core.units import GIB, to_gib
from tests.adapters.trees import allow, built, header_of_meta, stub_header

Given = dict[str, Any]


def run_root_list(given: Given) -> Given:
    allow(given, "platform", "settings")
    allow(given["settings"], "modelsRoot", "categoryRoots")
    settings = given["settings"]
    roots = root_list(settings.get("modelsRoot", ""), settings.get("categoryRoots", {}), given["platform"])
    return {"roots": [root.path for root in roots]}


def run_path_key(given: Given) -> Given:
    allow(given, "platform", "paths")
    one, other = (path_key(path, given["platform"]) for path in given["paths"])
    return {"equal": one == other}


def run_is_category(given: Given) -> Given:
    allow(given, "category")
    return {"result": is_category(given["category"])}


def run_discover(given: Given) -> Given:
    allow(given, "roots", "files")
    with built(given["files"]) as base:
        facts = {str(base / file["path"]): file["header"] for file in given["files"] if "header" in file}

        def header_of(path: str) -> Header:
            if path in facts:
                return header_of_meta(facts[path])
            return folder_header(path) if os.path.isdir(path) else stub_header(path)

        listing = list_files([str(base / root) for root in given["roots"]], platform="linux")
        rows = discover(listing, header_of).rows
        probe = sidecars.probe_drafter(files_beside(rows[0].full_path)) if rows else None
        shown_rows = [row_fields(row, base) for row in rows]
    return {
        "count": len(rows),
        "rows": shown_rows,
        "folder_probe": {"path": shown(probe.entry.path, base) if probe else "", "kind": probe.kind if probe else ""},
    }


def folder_header(path: str) -> Header:
    from models_app.core.readers import read_header

    return read_header(path)


def files_beside(path: str) -> list[FileEntry]:
    folder = Path(path).parent
    return [FileEntry(str(file), file.stat().st_size, 0) for file in sorted(folder.iterdir()) if file.is_file()]


def shown(path: str, base: Path) -> str:
    return os.path.relpath(path, base) if path else ""


def row_fields(row: Row, base: Path) -> Given:
    return {
        "id": row.id,
        "base_id": row.base_id,
        "quant": row.quant,
        "publisher": row.publisher,
        "repo": row.repo,
        "file_name": row.file_name,
        "full_path": shown(row.full_path, base),
        "size_gb": to_gib(row.size_bytes),
        "draft_path": shown(row.draft_path, base),
        "draft_kind": row.draft_kind,
        "draft_size_gb": to_gib(row.draft_size_bytes),
        "mmproj_path": shown(row.mmproj_path, base),
        "mmproj_size_gb": to_gib(row.mmproj_size_bytes),
        "codec_path": shown(row.codec_path, base),
        "codec_size_gb": to_gib(row.codec_size_bytes),
        "is_hf": row.is_hf,
        "is_sam": row.is_sam,
        "is_trellis": row.is_trellis,
    }


def run_file_kind(given: Given) -> Given:
    allow(given, "name")
    return {"kind": file_kind(given["name"])}


def run_derive_row(given: Given) -> Given:
    allow(given, "path")
    path = given["path"]
    shard = shard_name(os.path.basename(path))
    if file_kind(os.path.basename(path)) != CANDIDATE or (shard and shard.number != 1):
        return {"row": None}
    found = identity.gguf_identity(path)
    row = {name: getattr(found, name) for name in ("id", "base_id", "quant", "file_name")}
    if "/" in path:
        row |= {"publisher": found.publisher, "repo": found.repo}
    return {"row": row}


def run_quant_is_token(given: Given) -> Given:
    allow(given, "part")
    answers = {identity.is_quant_token(given["part"]), identity.is_quant_token(given["part"].lower())}
    if len(answers) != 1:
        raise AssertionError("case changed the answer")
    return {"result": answers.pop()}


def run_quant_from_filename(given: Given) -> Given:
    allow(given, "name")
    return {"quant": identity.quant_of(given["name"])}


def run_quant_part_index(given: Given) -> Given:
    allow(given, "id")
    return {"index": identity.quant_part_index(given["id"].split("-"))}


def run_slugify(given: Given) -> Given:
    allow(given, "text")
    return {"slug": names.slugify(given["text"])}


def run_unique_names(given: Given) -> Given:
    allow(given, "rows", "taken")
    for row in given["rows"]:
        allow(row, "id", "publisher", "repo")
    rows = sorted((Row(full_path="", **row) for row in given["rows"]), key=names.sort_key)
    return {"names": names.unique_names(rows, given["taken"])}


def run_prettify(given: Given) -> Given:
    allow(given, "id")
    return {"label": names.prettify(given["id"])}


def run_strip_quant_crumbs(given: Given) -> Given:
    allow(given, "label")
    return {"label": names.strip_quant_crumbs(given["label"])}


def run_family_keys(given: Given) -> Given:
    allow(given, "id")
    return {"base_key": families.model_base_key(given["id"]), "family_key": families.family_key(given["id"])}


def run_hf_detect(given: Given) -> Given:
    allow(given, "dir", "config", "files")
    folder = given["dir"]
    files: list[Given] = [{"path": f"{folder}/{name}", "size": size} for name, size in given["files"].items()]
    if isinstance(given["config"], str):
        files.append({"path": f"{folder}/config.json", "text": given["config"]})
    elif given["config"] is not None:
        files.append({"path": f"{folder}/config.json", "json": given["config"]})
    with built(files) as base:
        listing = list_files([str(base)], platform="linux")
        rows = [row for row in discover(listing, _header_or_stub).rows if row.is_hf]
    if not rows:
        return {"is_model": False}
    fields = {name: getattr(rows[0], name) for name in ("id", "base_id", "quant", "publisher", "repo")}
    size = rows[0].size_bytes
    return {"is_model": True, **fields, "weight_bytes": size, "size_gb": to_gib(size)}


def _header_or_stub(path: str) -> Header:
    return folder_header(path) if os.path.isdir(path) else stub_header(path)


def run_inherit_sidecars(given: Given) -> Given:
    allow(given, "rows")
    rows, gates = [], {}
    for case in given["rows"]:
        meta = case.pop("meta")
        rows.append(row_of(case))
        if meta is not None:
            gates[rows[-1].full_path] = inheritance.gate_of(header_of_meta(meta))
    filled = inheritance.inherit_by_root(rows, gates)
    by_path = {row.full_path: row for row in filled}
    return {"rows": [row_fields(by_path[row.full_path], Path()) for row in rows]}


def row_of(case: Given) -> Row:
    """A row from a vector's fields; sizes in GiB."""
    fields = {}
    for name, value in case.items():
        if name.endswith("size_gb"):
            fields[name.replace("_gb", "_bytes")] = round(value * GIB)
        else:
            fields[name] = value
    fields.setdefault("id", os.path.splitext(os.path.basename(case.get("full_path", "")))[0])
    fields.setdefault("full_path", "")
    return Row(**fields)


def run_sidecar_compatible(given: Given) -> Given:
    allow(given, "a", "b")
    one, other = header_of_meta(given["a"]), header_of_meta(given["b"])
    answers = {inheritance.are_compatible(one, other), inheritance.are_compatible(other, one)}
    if len(answers) != 1:
        raise AssertionError("the gate depends on the order")
    return {"result": answers.pop()}


def run_resolve_mmproj(given: Given) -> Given:
    allow(given, "row", "mmproj_file", "file")
    row, state = given["row"], given["file"]
    file = None
    if state and state["exists"] and not state["is_dir"]:
        file = FileEntry(given["mmproj_file"], state["bytes"], 0)
    found = row.get("mmproj_path", ""), round(row.get("mmproj_size_gb", 0) * GIB)
    path, size_bytes = sidecars.resolve_projector(found, given["mmproj_file"], file)
    return {"path": path, "size_gb": size_bytes / GIB}


def run_draft_size_sum(given: Given) -> Given:
    allow(given, "rows")
    rows = [row_of({**row, "id": str(index)}) for index, row in enumerate(given["rows"])]
    return {"size_gb": sidecars.draft_bytes(rows) / GIB}


def run_is_vl_model(given: Given) -> Given:
    allow(given, "name", "arch")
    return {"result": is_vision_language_model(given["name"], given["arch"])}


def run_prompt_enhancer_name(given: Given) -> Given:
    allow(given, "name")
    found = enhancers.enhancer_name(given["name"])
    if found is None:
        return {"match": False}
    return {"match": True, "direction": found.direction, "family": found.family}


def run_pair_enhancers(given: Given) -> Given:
    allow(given, "rows", "image_id")
    pair = enhancers.pair_of(enhancers.detect(given["rows"]), given["image_id"])
    return {"text": pair.text, "edit": pair.edit}


def run_resolve_enhancers(given: Given) -> Given:
    allow(given, "rows", "image_id", "text", "edit")
    detected = enhancers.pair_of(enhancers.detect(given["rows"]), given["image_id"])
    pair = enhancers.resolve(detected, given["text"], given["edit"])
    return {"text": pair.text, "edit": pair.edit}


def run_is_audiocpp_model(given: Given) -> Given:
    allow(given, "meta")
    return {"result": is_audiocpp_model(header_of_meta(given["meta"]))}


def run_audiocpp_package(given: Given) -> Given:
    allow(given, "dir", "files")
    package = audio_packages.audio_package(os.path.basename(given["dir"]), given["files"])
    if package is None:
        return {"ids": []}
    options = package.models[0].options if package.models else {}
    return {"ids": [model.id for model in package.models], "session_options": options, "comments": [package.problem]}


def run_find_asr_aligner(given: Given) -> Given:
    allow(given, "rows")
    return {
        "path": audio_packages.find_aligner((row["full_path"], row.get("audio_family", "")) for row in given["rows"])
    }


def run_trellis_companions(given: Given) -> Given:
    allow(given, "models_root", "package", "files")
    files = [FileEntry(file["path"], file.get("size", 0), 0) for file in given["files"]]
    found = companions(given["models_root"], given["package"], files)
    return {"dino": found.dino, "birefnet": found.birefnet}


ADAPTERS = {name.removeprefix("run_"): value for name, value in list(globals().items()) if name.startswith("run_")}
