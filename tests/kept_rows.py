"""Rows that cost time to make, a scan say: the first test of a process makes them, later ones get copies."""

from __future__ import annotations

import copy
from collections.abc import Callable
from datetime import datetime
from typing import Any, NamedTuple

from django.apps import apps
from django.db import connection
from django.db.models import DateTimeField, Field, Model
from django.utils import timezone

from quartermaster_site.access.models import Account, Installation

Rows = dict[type[Model], dict[Any, Model]]
PEOPLE = ("auth", "account", "usersessions", "sessions", "contenttypes")
"""Apps whose rows decide nothing about what is made."""


class Kept(NamedTuple):
    made_at: datetime
    gone: Rows
    new: Rows
    changed: Rows


class KeptRows:
    """What one fixture makes out of what the database holds, by what that was. Times in copies are as long ago as they
    were when the row was made.
    """

    def __init__(self) -> None:
        self.kept: dict[str, Kept] = {}

    def store(self, make: Callable[[], object], *of: object) -> None:
        """`of` is what else it depends on, such as the person that acts."""
        before = _rows()
        stored = [(model, _values(rows)) for model, rows in before.items() if model not in (Account, Installation)]
        key = repr((of, stored))
        if key in self.kept:
            _copy(self.kept[key])
            return
        make()
        self.kept[key] = _difference(timezone.now(), before, _rows())


def _rows() -> Rows:
    """Everything that is stored but people, by kind and number."""
    models = [model for model in apps.get_models(include_auto_created=True) if model._meta.managed]
    models = [model for model in models if model._meta.app_label not in PEOPLE]
    counts = ", ".join(f'(SELECT count(*) FROM "{model._meta.db_table}")' for model in models)
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {counts}")
        found = cursor.fetchone()
    return {model: model._base_manager.in_bulk() for model, count in zip(models, found, strict=True) if count}


def _values(rows: dict[Any, Model]) -> dict[Any, list[object]]:
    return {
        key: [getattr(row, field.attname) for field in row._meta.concrete_fields if not _is_time(field)]
        for key, row in sorted(rows.items())
    }


def _is_time(field: Field[Any, Any]) -> bool:
    return isinstance(field, DateTimeField)


def _difference(made_at: datetime, before: Rows, after: Rows) -> Kept:
    gone: Rows = {
        model: {key: row for key, row in rows.items() if key not in after.get(model, {})}
        for model, rows in before.items()
    }
    new: Rows = {}
    changed: Rows = {}
    for model, rows in after.items():
        there = before.get(model, {})
        new[model] = {key: row for key, row in rows.items() if key not in there}
        changed[model] = {key: row for key, row in rows.items() if key in there and _all(row) != _all(there[key])}
    return Kept(made_at, gone, new, changed)


def _all(row: Model) -> list[object]:
    return [getattr(row, field.attname) for field in row._meta.concrete_fields]


def _copy(kept: Kept) -> None:
    passed = timezone.now() - kept.made_at
    for model, rows in kept.gone.items():
        if rows:
            model._base_manager.filter(pk__in=rows)._raw_delete(connection.alias)
    for model, rows in kept.new.items():
        model._base_manager.bulk_create([_later(row, passed) for row in rows.values()])
    for rows in kept.changed.values():
        for row in rows.values():
            _later(row, passed).save()


def _later(row: Model, passed: Any) -> Model:
    row = copy.copy(row)
    for field in filter(_is_time, row._meta.concrete_fields):
        if then := getattr(row, field.attname):
            setattr(row, field.attname, then + passed)
    return row
