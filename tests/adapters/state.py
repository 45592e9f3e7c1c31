"""Adapters of the area `state`."""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import yaml

from gpus_app.core.budget import Budget
from models_app.core.catalog import Header, Plan, Row
from models_app.core.discovery.inventory import discover
from models_app.core.discovery.roots import root_list
from models_app.core.discovery.walk import list_files
from models_app.core.errors import SettingsError
from models_app.core.generate import generate
from models_app.core.plans import plan_row
from models_app.core.readers import read_header
from models_app.core.settings import (
    ApiKey,
    AppSettings,
    BackendEntry,
    BackendSource,
    ExtraImageModel,
    Override,
    PromptEnhancer,
    record_to_mapping,
)
from models_app.core.settings_files.ensure import Target, ensure
from models_app.core.settings_files.files import read_sidecar
from models_app.core.settings_files.pair import Pair
from models_app.core.state import app, digest, edits, extra_models, loading, patch, section_forms, variants
from models_app.core.state import overrides as override_rules
from models_app.core.state.api_keys import delete_key, reconcile_playground_key, upsert_key
from models_app.core.state.editor import editor_save, projector_file_problem
from models_app.core.state.globs import glob_match
from models_app.core.state.sidecar import FILE_NAME, Sidecar, sidecar_from_mapping
from models_app.core.units import GIB
from tests.adapters import given as read
from tests.adapters.given import Answer, Given, keywords


def whole(record: Any) -> Given:
    return record_to_mapping(record, sparse=False)


def settings_defaults(settings: Given) -> Answer:
    read.settings(settings)
    return {"settings": whole(loading.apply_defaults(settings))}


def load_settings(file: Given, sidecar: Given, models_dir: str = "") -> Answer:
    read.settings(file)
    return {"settings": whole(loading.load_settings(file, sidecar_of(sidecar), models_dir=models_dir))}


def sidecar_of(document: Given) -> Sidecar:
    unknown = set(document) - set(whole(Sidecar()))
    if unknown:
        raise KeyError(f"sidecar: unknown keys {sorted(unknown)}")
    return sidecar_from_mapping(document)


def override_order(sidecar: list[Given], file: list[Given], resolve: str | None = None) -> Answer:
    try:
        rows = override_rules.merge_overrides(map(read.override, sidecar), map(read.override, file))
    except SettingsError as error:
        return {"error": str(error)}
    answer: Answer = {"order": [row.match for row in rows]}
    if resolve is not None:
        found = override_rules.resolve_override(rows, resolve, "")
        answer["resolved"] = found and whole(found)
    return answer


def resolve_override(overrides: list[Given], path: str, quant: str) -> Answer:
    return {"index": override_rules.resolve_index([read.override(row) for row in overrides], path, quant)}


def match_glob(pattern: str, text: str) -> Answer:
    return {"result": glob_match(pattern, text)}


def normalize_none(override: Given) -> Answer:
    return {"override": whole(override_rules.normalise_none(read.override(override)))}


def inherit_str(variant: str, model: str) -> Answer:
    return {"value": variants.inherit_text(variant, model)}


def variant_merge(override: Given, variant: Given) -> Answer:
    return {"effective": whole(variants.merge_variant(read.override(override), read.variant(variant)))}


def image_variant_merge(override: Given, variant: Given) -> Answer:
    return {"effective": whole(variants.merge_image_variant(read.override(override), read.variant(variant)))}


def patch_merge(stored: Given, incoming: Given) -> Answer:
    known_patch(stored, incoming)
    return {"stored": patch.merge_patch(stored, incoming)}


def patch_replace(stored: Given, incoming: Given) -> Answer:
    known_patch(stored, incoming)
    return {"stored": patch.replace_patch(incoming)}


def known_patch(*documents: Given) -> None:
    for document in documents:
        unknown = {key for key, value in document.items() if value is not None} - set(
            patch.patch_from_mapping(document)
        )
        if unknown:
            raise KeyError(f"unknown patch fields {sorted(unknown)}")


def settings_form(section: str, body: Given) -> Answer:
    return {"accepted": not section_forms.section_errors(section, known_form(section, body))}


def known_form(section: str, body: Given) -> Given:
    unknown = set(body) - set(patch.SECTIONS[section])
    if unknown:
        raise KeyError(f"unknown fields of section {section}: {sorted(unknown)}")
    return body


def settings_form_store(section: str, action: str, stored: Given, body: Given) -> Answer:
    known_patch(stored)
    if action == "reset":
        return {"patch": patch.reset_section(section, stored)}
    if action != "save":
        raise KeyError(action)
    return {"patch": patch.save_section(section, stored, known_form(section, body))}


def app_settings(
    file_app: Given | None, sidecar_app: Given | None, argv: Given | None = None, builtin: Given | None = None
) -> Answer:
    layers = [read.record(AppSettings, layer) for layer in (argv, sidecar_app, file_app, builtin)]
    return {"app": record_to_mapping(app.layer_app(*layers))}


def known_app_form(body: Given) -> Given:
    read.record(AppSettings, {key: value for key, value in body.items() if key != "hfTokenClear"})
    return body


def app_settings_form(stored: Given, body: Given) -> Answer:
    before = read.record(AppSettings, stored)
    after, errors = app.save_app(before, known_app_form(body))
    return {
        "accepted": not errors,
        "stored_token": after.hf_token,
        "token_echoed": bool(app.shown_app(after).settings.hf_token),
        "regenerates": False,
        "restart_needed": app.restart_needed(after, before),
    }


def app_settings_put(puts: list[Given]) -> Answer:
    stored = AppSettings()
    for block in puts:
        stored = edits.put_app(Sidecar(app=stored), read.record(AppSettings, block)).app
    return {"stored": record_to_mapping(stored)}


def app_settings_shown(stored: Given) -> Answer:
    form = app.shown_app(read.record(AppSettings, stored))
    return {
        "shown": {
            **whole(form.settings),
            "adminOpen": form.admin_open,
            "watchModels": form.watch_models,
            "updateCheck": form.update_check,
            "hfTokenSet": form.hf_token_set,
        }
    }


def extra_image_models_put(rows: list[Given], served: list[str], extras: list[str]) -> Answer:
    with tempfile.NamedTemporaryFile() as file, tempfile.TemporaryDirectory() as folder:
        places = {"<file>": file.name, "<missing>": f"{folder}/missing", "<dir>": folder}
        models = [
            read.record(ExtraImageModel, {key: places.get(value, value) for key, value in row.items()}) for row in rows
        ]
        status, _ = extra_models.check_extra_models(models, served, extras, os.path.isfile)
    return {"status": status, "stored": status == extra_models.ACCEPTED}


def validate_mmproj_file(file: Given) -> Answer:
    exists, is_dir, architecture = _projector(**file)
    return {"accepted": not projector_file_problem(exists, is_dir, architecture)}


def _projector(exists: bool, is_dir: bool, architecture: str = "") -> tuple[bool, bool, str]:
    return exists, is_dir, architecture


def inputs_hash(files: list[Given], blob_utf8: str) -> Answer:
    records = [_record(**file) for file in files]
    return {"sha256": digest.inputs_digest(records, blob_utf8.encode())}


def _record(root: int, rel: str, size: int, mtime_ns: int) -> digest.FileRecord:
    return digest.FileRecord(root, rel, size, mtime_ns)


class Workplace:
    """A settings file, a sidecar, two roots and a backend in a folder of their own."""

    def __init__(self, folder: Path, settings: Given) -> None:
        self.folder = folder
        self.model = self.write("models/a.gguf", b"GGUF")
        self.template = self.write("chat.jinja", b"template")
        self.backend = self.write("bin/llama-server", b"program")
        self.settings_file = folder / "quartermaster-generate.yaml"
        self.sidecar_file = folder / FILE_NAME
        document: Given = {"modelsRoot": str(folder / "models"), "serverExe": str(self.backend), **settings}
        rows = [{"match": "*", "chatTemplateFile": str(self.template)}]
        self.settings_file.write_text(yaml.safe_dump({"settings": document, "overrides": rows}))
        self.sidecar_file.write_text(yaml.safe_dump({"overrides": [{"match": str(self.model), "ctx": 4096}]}))
        self.output = folder / "out" / "config.yaml"
        self.output.parent.mkdir()
        self.version = "1"
        self.program_folder = "/opt/quartermaster"

    def write(self, name: str, content: bytes) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return path

    @property
    def target(self) -> Target:
        return Target(self.settings_file, self.output, self.version, self.program_folder)

    def ensure(self) -> Any:
        return ensure(self.target, self.generate)

    def generate(self, pair: Pair) -> str:
        """The product's own pipeline over the roots of the settings, as on a machine without a GPU."""
        state = pair.state()
        roots = root_list(state.settings.models_root, state.settings.category_roots, "linux")
        inventory = discover(list_files(roots, platform="linux"), read_header)
        budget = Budget((), 24 * GIB)

        def planner(row: Row, header: Header | None, override: Override) -> tuple[Plan, ...]:
            return plan_row(row, header, settings=state.settings, override=override, budget=budget)

        made = generate(
            inventory,
            planner,
            header_of=lambda path: None,
            settings=state.settings,
            timestamp="",
            overrides=state.overrides,
            dialect="quartermaster",
        )
        return made.text

    def edit_settings(self, change: Callable[[Given], None]) -> None:
        document = yaml.safe_load(self.settings_file.read_text())
        change(document["settings"])
        self.settings_file.write_text(yaml.safe_dump(document))


def _touch(path: Path) -> None:
    found = path.stat()
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns + 1_000_000))


CHANGES: dict[str, Callable[[Workplace], Any]] = {
    "gguf_size": lambda place: place.write("models/a.gguf", b"GGUF and more"),
    "gguf_mtime": lambda place: _touch(place.model),
    "gguf_added": lambda place: place.write("models/b.gguf", b"GGUF"),
    "gguf_removed": lambda place: place.model.unlink(),
    "gguf_renamed": lambda place: place.model.rename(place.folder / "models" / "c.gguf"),
    "generate_file_byte": lambda place: place.settings_file.write_text(place.settings_file.read_text() + "#\n"),
    "sidecar_byte": lambda place: place.sidecar_file.write_text(place.sidecar_file.read_text() + "#\n"),
    "models_root": lambda place: place.edit_settings(lambda settings: settings.update(modelsRoot="/other")),
    "extra_root_added": lambda place: place.edit_settings(
        lambda settings: settings.update(categoryRoots={"image": "/images"})
    ),
    "generator_version": lambda place: setattr(place, "version", "2"),
    "install_folder": lambda place: setattr(place, "program_folder", "/srv/quartermaster"),
    "hf_folder_added": lambda place: place.write("models/hf/config.json", b"{}"),
    "ggml_added": lambda place: place.write("models/sam.ggml", b"ggml"),
    "chat_template_edited": lambda place: place.template.write_bytes(b"another template"),
    "backend_binary_replaced": lambda place: place.backend.write_bytes(b"another program"),
}


def inputs_hash_change(change: str) -> Answer:
    with tempfile.TemporaryDirectory() as folder:
        place = Workplace(Path(folder), {})
        before = place.ensure().digest
        CHANGES[change](place)
        return {"changed": place.ensure().digest != before}


def ensure_config(calls: int, between: str, settings: Given) -> Answer:
    read.settings(settings)
    with tempfile.TemporaryDirectory() as folder:
        place = Workplace(Path(folder), settings)
        regenerated = []
        for call in range(calls):
            if call == calls - 1:
                {
                    "none": lambda: None,
                    "delete_output": place.output.unlink,
                    "delete_overridden_gguf": place.model.unlink,
                }[between]()
            regenerated.append(place.ensure().regenerated)
        sidecar = read_sidecar(place.sidecar_file.read_bytes()).content
        return {
            "regenerated": regenerated,
            "files": sorted(path.name for path in place.output.parent.iterdir()),
            "models": len(yaml.safe_load(place.output.read_text())["models"]),
            "override_rows": len(sidecar.overrides),
        }


class SidecarRun:
    """A run of edits; `results` are their return values."""

    def __init__(self, platform: str, files: dict[str, bool], file_overrides: list[Given]) -> None:
        self.platform = platform
        self.files = files
        self.file_overrides = [read.override(row) for row in file_overrides]
        self.sidecar = Sidecar()

    def run(self, op: str, given: Given) -> Any:
        return getattr(self, op)(**given)

    def list_overrides(self) -> None:
        return None

    def upsert_override(self, **row: Any) -> None:
        self.sidecar = edits.upsert_override(self.sidecar, read.override(row), self.platform)

    def delete_override(self, match: str) -> bool:
        self.sidecar, gone = edits.delete_override(self.sidecar, match, self.platform)
        return gone

    def prune(self) -> list[str]:
        self.sidecar, gone = edits.prune_overrides(self.sidecar, lambda path: not self.files.get(path, False))
        return list(gone)

    def put_enhancers(self, list: list[Given]) -> None:  # noqa: A002
        self.sidecar = edits.put_enhancers(self.sidecar, [read.record(PromptEnhancer, row) for row in list])

    def put_extra_models(self, list: list[Given]) -> None:  # noqa: A002
        self.sidecar = edits.put_extra_models(self.sidecar, [read.record(ExtraImageModel, row) for row in list])

    def put_backends(self, list: list[Given]) -> None:  # noqa: A002
        self.sidecar = edits.put_backends(self.sidecar, [read.record(BackendEntry, row) for row in list])

    def put_sources(self, list: list[Given]) -> None:  # noqa: A002
        self.sidecar = edits.put_sources(self.sidecar, [read.record(BackendSource, row) for row in list])

    def put_app(self, app: Given) -> None:
        self.sidecar = edits.put_app(self.sidecar, read.record(AppSettings, app))

    def merge_settings(self, patch: Given) -> None:
        known_patch(patch)
        self.sidecar = edits.merge_settings(self.sidecar, patch)

    def clear_settings(self) -> None:
        self.sidecar = edits.clear_settings(self.sidecar)

    def set_lora_dir(self, category: str, path: str) -> None:
        self.sidecar = edits.set_lora_dir(self.sidecar, category, path)

    def set_root(self, category: str, path: str) -> None:
        self.sidecar = edits.set_root(self.sidecar, category, path)

    def set_display_name(self, id: str, name: str) -> None:  # noqa: A002
        self.sidecar = edits.set_display_name(self.sidecar, id, name)

    def upsert_key(self, **key: Any) -> None:
        self.sidecar = upsert_key(self.sidecar, read.record(ApiKey, key))

    def delete_key(self, name: str) -> None:
        self.sidecar = delete_key(self.sidecar, name)

    def reconcile_playground_key(self) -> bool:
        self.sidecar, changed = reconcile_playground_key(self.sidecar, secrets.token_hex)
        return changed

    def ui_save(self, path: str, body: Given) -> None:
        read.override(body)
        # The operation does not say the model's quantisation, so rows of every one count.
        rows = [replace(row, quant="") for row in self.file_overrides]
        index = override_rules.resolve_index(rows, path, "")
        start = None if index is None else self.file_overrides[index]
        row = editor_save(start, path, body)
        self.sidecar = edits.upsert_override(self.sidecar, row, self.platform)


def sidecar_ops(
    platform: str, ops: list[Given], files: dict[str, bool] | None = None, file_overrides: list[Given] | None = None
) -> Answer:
    run = SidecarRun(platform, {_real(path): found for path, found in (files or {}).items()}, file_overrides or [])
    results = []
    for given in ops:
        result = run.run(given["op"], {key: _real(value) for key, value in given.items() if key != "op"})
        results.append([_shown(item) for item in result] if isinstance(result, list) else result)
    sidecar = run.sidecar
    built_in = next((key.key for key in sidecar.api_keys or () if key.name == "playground (built-in)"), "")
    answer = {
        item.name: getattr(sidecar, item.name) for item in fields(Sidecar) if item.name not in ("overrides", "app")
    }
    document = whole(sidecar)
    return {
        **{key: document[key] for key in document},
        "overrides": [{**whole(row), "match": _shown(row.match)} for row in sidecar.overrides],
        "settings": answer["settings"],
        "app": whole(sidecar.app or AppSettings()),
        "apiKeys": document["apiKeys"] or [],
        "promptEnhancers": document["promptEnhancers"] or [],
        "results": results,
        "builtin_key": built_in,
    }


_FOLDER = "/srv/models"


def _real(value: Any) -> Any:
    return value.replace("<dir>", _FOLDER) if isinstance(value, str) else value


def _shown(text: str) -> str:
    return text.replace(_FOLDER, "<dir>")


ADAPTERS = {
    name: keywords(function)
    for name, function in {
        "settings_defaults": settings_defaults,
        "load_settings": load_settings,
        "override_order": override_order,
        "resolve_override": resolve_override,
        "glob_match": match_glob,
        "normalize_none": normalize_none,
        "inherit_str": inherit_str,
        "variant_merge": variant_merge,
        "image_variant_merge": image_variant_merge,
        "sidecar_ops": sidecar_ops,
        "patch_merge": patch_merge,
        "patch_replace": patch_replace,
        "settings_form": settings_form,
        "settings_form_store": settings_form_store,
        "app_settings": app_settings,
        "app_settings_form": app_settings_form,
        "app_settings_put": app_settings_put,
        "app_settings_shown": app_settings_shown,
        "extra_image_models_put": extra_image_models_put,
        "validate_mmproj_file": validate_mmproj_file,
        "inputs_hash": inputs_hash,
        "inputs_hash_change": inputs_hash_change,
        "ensure_config": ensure_config,
    }.items()
}
