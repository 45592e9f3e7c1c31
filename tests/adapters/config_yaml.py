"""Vector adapters of the area `config-yaml`."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from gpus_app.core.budget import budget_of
from models_app.core import generate
from models_app.core.catalog import Header
from models_app.core.discovery.inventory import discover
from models_app.core.discovery.roots import root_list
from models_app.core.discovery.walk import list_files
from models_app.core.errors import HeaderError
from models_app.core.export import build, llama_swap, load, matrix, render, schema
from models_app.core.export.document import Document, Entry, structure
from models_app.core.export.enhancers import enhancer_keys, enhancer_table
from models_app.core.export.entry import capabilities, estimate_keys, slot_cache_preamble
from models_app.core.export.environment import entry_env
from models_app.core.export.groups import assign_groups, coexist_name, swap_group_error
from models_app.core.export.llama_swap_entry import Converted, convert_entry
from models_app.core.export.naming import public_name
from models_app.core.export.parse import document_of
from models_app.core.export.router import matrix as expressions
from models_app.core.export.router.load_rules import load_config
from models_app.core.export.top import top_level
from models_app.core.plans import plan_row
from models_app.core.readers import read_header
from models_app.core.settings import (
    Override,
    Settings,
    SlotCache,
    override_from_mapping,
    settings_from_mapping,
    unknown_keys,
)
from models_app.core.settings.codec import record_from_mapping
from models_app.core.settings.records import PromptEnhancer
from models_app.core.state.profile_set import ProfiledModel, ctx_tag, profile_set
from tests.adapters import trees
from tests.adapters.fields import take

Vector = dict[str, Any]


def settings_of(given: Vector) -> Settings:
    """Settings of a vector. What it does not name has its default, inside the slot cache block it is unset."""
    if unknown := unknown_keys(Settings, given):
        raise ValueError(f"unknown settings: {unknown}")
    settings = settings_from_mapping(given)
    block = given.get("slotCache")
    if block is not None:
        unset: Vector = {"minSaveTokens": 0, "maxDiskGB": 0, "maxSessions": 0}
        settings = replace(settings, slot_cache=record_from_mapping(SlotCache, {**unset, **block}))
    return settings


def override_of(given: Vector) -> Override:
    if unknown := unknown_keys(Override, given):
        raise ValueError(f"unknown override fields: {unknown}")
    return override_from_mapping(given)


def top_level_blocks(given: Vector) -> Vector:
    blocks, cache_dir = take(given, "settings", "cache_dir?")
    settings = settings_of({"targetVramGB": 0, "maxRamGB": 0, **blocks})
    document = Document(
        dialect="quartermaster",
        top=top_level(settings, cache_dir or ""),
        tail=build.grouping(settings, [], {}),
    )
    text = render.render(document)
    tree = load.load(text)
    return {"keys": tree.value, "text": text, "order": list(tree.pairs)}


def profiles(given: Vector) -> Vector:
    row, projector, override, settings = take(given, "row", "projector", "override", "settings")
    model_id, model_class, arch, backend = take(row, "id", "class", "arch?", "backend?")
    if model_class != "llm":
        raise ValueError(f"profiles of class {model_class}")
    model = ProfiledModel(model_id, model_id, arch or "", "/p/mmproj.gguf" if projector else "", backend or "llama")
    specs = profile_set(model, override_of(override), settings_of(settings))
    return {
        "ids": [spec.id for spec in specs],
        "requested_ctx": {spec.id: spec.override.ctx for spec in specs},
        "projector_in": {spec.id: spec.projector or None for spec in specs},
        "capabilities": {spec.id: capabilities(["--mmproj"] if spec.projector else []) or None for spec in specs},
        "unlisted": {spec.id: spec.override.unlisted for spec in specs},
    }


def tag(given: Vector) -> Vector:
    (ctx,) = take(given, "ctx")
    return {"tag": ctx_tag(ctx)}


def renamed(given: Vector) -> Vector:
    settings, model_id = take(given, "settings", "id")
    name = public_name(settings_of(settings).display_names, model_id)
    return {"name": name, "aliases": [name] if name else []}


def env(given: Vector) -> Vector:
    model_class, gpus, device, split, runtime, index = take(
        given, "class", "gpus", "backend_device", "tensor_split?", "runtime?", "telemetry_index?"
    )
    items = entry_env(
        model_class,
        device_count=gpus,
        backend_device=device,
        tensor_split=split or (),
        runtime=runtime or "",
        telemetry_index=index or 0,
    )
    return {"env": items}


def estimates(given: Vector) -> Vector:
    return {"entry": estimate_keys(*take(given, "est_vram_gb", "est_ram_gb"))}


def preamble(given: Vector) -> Vector:
    settings, override = take(given, "settings", "override")
    return {"entry": slot_cache_preamble(settings_of(settings), override_of(override))}


def enhancer_entry(given: Vector) -> Vector:
    table, text, edit, own = take(given, "table", "text", "edit", "text_prompt?")
    rows = [record_from_mapping(PromptEnhancer, row) for row in table]
    return {"entry": enhancer_keys(rows, text, edit, own or "")}


def enhancers(given: Vector) -> Vector:
    (settings,) = take(given, "settings")
    table = enhancer_table(settings_of(settings).prompt_enhancers)
    text = render.render(Document(dialect="quartermaster", top={"promptEnhancers": table} if table else {}))
    tree = load.load(text)
    found = tree.value.get("promptEnhancers")
    return {"promptEnhancers": found, "order": list(found or {})}


def groups(given: Vector) -> Vector:
    settings, emitted, coexist = take(given, "settings", "emitted_ids", "coexist")
    assignment = assign_groups(settings_of(settings).groups, emitted, coexist)
    return {
        "groups": assignment.groups,
        "group_order": list(assignment.groups),
        "listeners": {address: block["groups"] for address, block in assignment.listeners.items()},
        "listener_order": list(assignment.listeners),
    }


def coexist_group_name(given: Vector) -> Vector:
    name, settings = take(given, "set", "settings")
    return {"name": coexist_name(name, settings_of(settings).groups)}


def swap_group(given: Vector) -> Vector:
    (override,) = take(given, "override")
    return {"accepted": not swap_group_error(override_of(override))}


def emit_extra_model(given: Vector) -> Vector:
    (settings,) = take(given, "settings")
    document = build.build_document([], settings_of(settings), "2026-11-30T10:00:00+00:00")
    members = {model: name for name, fields in document.tail["groups"].items() for model in fields["members"]}
    return {
        "emitted": any(entry.id == "x" for entry in document.entries),
        "group": members.get("x", ""),
        "comments": comments_of(render.render(document)),
    }


def comments_of(text: str) -> str:
    return "\n".join(line.strip() for line in text.splitlines() if line.lstrip().startswith("#"))


def export_entry(given: Vector) -> Vector:
    model_class, fields = take(given, "class", "entry")
    rest = {name: value for name, value in fields.items() if name != "cmd"}
    entry = Entry("x", tuple(fields["cmd"]), rest, model_class=model_class, base="x")
    result = convert_entry(entry, llama_swap.Options(config_folder="/srv/export"))
    if isinstance(result, Converted):
        written = result.entry
        return {
            "emitted": True,
            "entry": dict(written.fields),
            "cmd": list(written.command),
            "comments": list(written.comments),
            "file_written": bool(result.companions),
        }
    return {"emitted": False, "comments": f"# {render.skipped_text(result)}", "file_written": False}


def export_top(given: Vector) -> Vector:
    (top,) = take(given, "top")
    try:
        blocks, notes = llama_swap.convert_top(top, llama_swap.Options())
    except llama_swap.ExportError:
        return {"refused": True}
    return {"refused": False, "top": blocks, "comments": "\n".join(notes)}


def export_file(given: Vector) -> Vector:
    (config,) = take(given, "config")
    document = llama_swap.convert(document_of(config), llama_swap.Options(config_folder="/srv/export"))
    text = render.render(document)
    value = load.load(text).value
    places = [value, *value["models"].values(), *value.get("groups", {}).values()]
    return {
        "present_keys": {name for place in places for name in place},
        "schema_ok": schema.is_valid("llama-swap", value) and value == structure_of(document),
        "loads": load_config("llama-swap", text, {}).loads,
    }


def structure_of(document: Document) -> Vector:
    """What the text must read back as; a folded command ends in a newline."""
    meant = structure(document)
    for fields in meant["models"].values():
        fields["cmd"] += "\n"
    return meant


def export_matrix(given: Vector) -> Vector:
    budget, models = take(given, "budget_gb", "models")
    candidates = [matrix.Candidate(*take(model, "id", "base", "estVramGB", "coexist")) for model in models]
    block = matrix.matrix_block(candidates, budget)
    names = block["vars"]
    sets = [
        [names[name] for name in members]
        for text in block["sets"].values()
        for members in expressions.expand(expressions.parse(text))
    ]
    return {"sets": sets, "vars": names}


def generate_config(given: Vector) -> Vector:
    settings_given, files = take(given, "settings", "files")
    settings = settings_of(settings_given)
    with trees.built(files) as base:
        facts = {str(base / file["path"]): file["header"] for file in files if "header" in file}
        real = {str(base / file["path"]) for file in files if "kv" in file}

        def header_of(path: str) -> Header:
            if path in facts:
                return trees.header_of_meta(facts[path])
            return read_header(path) if path in real or os.path.isdir(path) else trees.stub_header(path)

        def known_header(path: str) -> Header | None:
            try:
                return header_of(path)
            except HeaderError:
                return None

        roots = [str(base / root.path) for root in root_list(settings.models_root, settings.category_roots, "linux")]
        budget = budget_of([settings.target_vram_gb], settings.max_ram_gb)
        result = generate.generate(
            discover(list_files(roots, platform="linux"), header_of),
            lambda row, header, override: plan_row(
                row, header, settings=settings, override=override, budget=budget, headers=known_header
            ),
            header_of=known_header,
            settings=settings,
            timestamp="2026-11-30T10:00:00+00:00",
            dialect="quartermaster",
        )
    tree = load.load(result.text)
    return {
        "ids": list(tree.pairs["models"].pairs),
        "groups": tree.value["groups"],
        "comments": comments_of(result.text),
    }


ADAPTERS: dict[str, Callable[[Vector], Vector]] = {
    "generate_config": generate_config,
    "top_level": top_level_blocks,
    "profiles": profiles,
    "ctx_tag": tag,
    "public_name": renamed,
    "entry_env": env,
    "estimate_keys": estimates,
    "slot_cache_preamble": preamble,
    "enhancer_keys": enhancer_entry,
    "enhancer_table": enhancers,
    "assign_groups": groups,
    "coexist_name": coexist_group_name,
    "validate_swap_group": swap_group,
    "emit_extra_model": emit_extra_model,
    "export_entry": export_entry,
    "export_top": export_top,
    "export_file": export_file,
    "export_matrix": export_matrix,
}
