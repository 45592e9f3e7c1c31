"""JSON columns whose objects keep the order of their keys on every database."""

from __future__ import annotations

import json
from typing import Any

from django.db import models


class OrderedJSONField(models.JSONField):
    """A JSON column for what a person wrote: in a router's file macros and members of a group have an order.

    PostgreSQL's `jsonb` sorts the keys of an object by their length, so there the column holds the JSON text as one
    string; SQLite keeps the text as it is. Objects and lists only; no queries into the value. To migrations it is
    Django's own field, and what `jsonb` columns held before stays readable.
    """

    def deconstruct(self) -> Any:
        name, _, args, kwargs = super().deconstruct()
        return name, "django.db.models.JSONField", args, kwargs

    def get_db_prep_value(self, value: Any, connection: Any, prepared: bool = False) -> Any:
        if connection.vendor == "postgresql" and value is not None:
            value = json.dumps(value)
        return super().get_db_prep_value(value, connection, prepared)

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Any:
        found = super().from_db_value(value, expression, connection)
        return json.loads(found) if connection.vendor == "postgresql" and isinstance(found, str) else found
