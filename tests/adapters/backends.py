"""Adapters of the area `backends`: the registry of executables."""

from __future__ import annotations

from models_app.core.launch import backends as registry
from models_app.core.settings import BackendEntry
from tests.adapters import given as read
from tests.adapters.given import Answer, Given, keywords


def entries(rows: list[Given]) -> list[BackendEntry]:
    return [read.record(BackendEntry, row) for row in rows]


def kind_classes(kind: str) -> Answer:
    return {"classes": list(registry.kind_classes(kind))}


def resolve_backend(backends: list[Given], override: Given, **given: str) -> Answer:
    backend_class = given.pop("class")
    if given:
        raise KeyError(f"unknown input fields {sorted(given)}")
    found = registry.resolve_backend(entries(backends), read.override(override).backend, backend_class)
    return {"id": found.id if found else ""}


def class_taken(rows: list[Given], kind: str) -> Answer:
    return {"result": registry.class_taken(entries(rows), kind)}


ADAPTERS = {
    "kind_classes": keywords(kind_classes),
    "resolve_backend": keywords(resolve_backend),
    "class_taken": keywords(class_taken),
}
