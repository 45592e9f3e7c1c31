"""Adapters of the operations that emit whole entries, one row or one hand-declared model at a time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gpus_app.core.budget import budget_of
from models_app.core.catalog import Plan
from models_app.core.export.build import build_document
from models_app.core.export.document import Document, Entry, Skipped
from models_app.core.export.entry import PlannedModel, plan_env
from models_app.core.export.groups import coexist_set
from models_app.core.export.render import skipped_text
from models_app.core.launch.tokens import split_command
from models_app.core.plans import plan_row
from tests.adapters import given as read
from tests.adapters.given import Answer, Given


def emit_entry(given: Given) -> Answer:
    given = dict(given)
    model_class = given.pop("class")
    settings, override = read.settings(given.pop("settings")), read.override(given.pop("override", None))
    row = replace(read.row(given.pop("row")), model_class=model_class)
    header = read.header(given.pop("meta", None))
    found = given.pop("companions", {})
    if given or found.keys() - {"dino", "birefnet", "vae"}:
        raise KeyError(f"unknown fields: {sorted(given)} {sorted(found)}")
    budget = budget_of([settings.target_vram_gb], settings.max_ram_gb)
    row = replace(row, dino_path=found.get("dino", ""), birefnet_path=found.get("birefnet", ""))
    plans = plan_row(row, header, settings=settings, override=override, budget=budget)
    model = PlannedModel(row, header, plans, override, budget=budget)
    document = build_document([model], settings, "now")
    assert plan_env(plans[0], budget) == []
    answer = _answer(document)
    name = coexist_set(model_class, plans[0].engine, override)
    return {**answer, "coexist": name}


def emit_extra_image(given: Given) -> Answer:
    given = dict(given)
    settings = {**given.pop("settings"), "extraImageModels": [given.pop("model")]}
    taken = given.pop("taken")
    assert not given, given
    document = build_document([_served(name) for name in taken], read.settings(settings), "now")
    return _answer(document, len(taken))


def _served(name: str) -> PlannedModel:
    """A discovered model that has an id already."""
    plan = Plan(name, "llm", "fits", None, None, lines=("llama-server", "--port ${PORT}"))
    return PlannedModel(read.row({"id": name, "full_path": f"/m/{name}.gguf"}), None, (plan,))


def _answer(document: Document, position: int = 0) -> Answer:
    item: Any = document.models[position]
    if isinstance(item, Skipped):
        return {"emitted": False, "comments": f"# {skipped_text(item)}"}
    assert isinstance(item, Entry)
    command = " ".join(item.command)
    return {
        "emitted": True,
        "entry": dict(item.fields),
        "cmd": command,
        "exe": split_command(command)[0],
        "comments": [f"# {text}" for text in item.comments],
    }
