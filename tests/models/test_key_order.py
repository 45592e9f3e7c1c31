"""What a person wrote keeps its order on every database: a macro may name those before it."""

from __future__ import annotations

import pytest

from gpus_app.models import HostSetting
from models_app.models import Fragment, ImportBatch

KEYS = {"macros": {"zone": "one", "a": "${zone}", "models": "${a}"}, "b": [{"second": 1, "x": None}]}


@pytest.mark.parametrize(
    ("model", "column", "others"),
    [
        (Fragment, "fields", {}),
        (ImportBatch, "report", {"name": "a"}),
        (HostSetting, "values", {"section": "advanced"}),
    ],
)
def test_keys_keep_their_order(model, column, others, host):
    row = model.objects.create(host=host, **others, **{column: KEYS})
    stored = getattr(model.objects.get(pk=row.pk), column)
    assert stored == KEYS
    assert list(stored) == ["macros", "b"]
    assert list(stored["macros"]) == ["zone", "a", "models"]
    setattr(row, column, {"zz": 1, "a": 2})
    model.objects.bulk_update([row], [column])
    assert list(model.objects.values_list(column, flat=True).get(pk=row.pk)) == ["zz", "a"]


def test_what_was_stored_as_an_object_is_still_read(host):
    """PostgreSQL's columns before: Django's own field wrote them."""
    from django.db import connection
    from django.db.models import JSONField

    row = Fragment.objects.create(host=host, fields={})
    own = JSONField().get_db_prep_value({"b": 1, "a": 2}, connection)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE models_app_fragment SET fields = %s WHERE id = %s", [own, row.pk])
    assert Fragment.objects.get().fields == {"b": 1, "a": 2}
