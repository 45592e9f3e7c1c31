"""The texts of a host as a list, without what is large about them."""

from __future__ import annotations

from typing import Any

from django.db.models import F, Func, IntegerField, QuerySet

from gpus_app.models import Host
from models_app.models import Revision


class _EntryCount(Func):
    """The number of entries in a generator's report; 0 where there is no report."""

    output_field = IntegerField()

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        template = "COALESCE(json_array_length(%(expressions)s, '$.entries'), 0)"
        return self.as_sql(compiler, connection, template=template, **context)

    def as_postgresql(self, compiler: Any, connection: Any, **context: Any) -> Any:
        template = "COALESCE(jsonb_array_length(%(expressions)s -> 'entries'), 0)"
        return self.as_sql(compiler, connection, template=template, **context)


def revision_history(host: Host) -> QuerySet[Revision]:
    """All texts of a host, the newest first, with the number of their entries as `entry_count`."""
    rows = Revision.objects.filter(host=host).select_related("author", "approved_by", "submitted_by")
    counted = rows.annotate(entry_count=_EntryCount(F("summary")))
    return counted.defer("text", "summary", "findings", "inputs").order_by("-number")
