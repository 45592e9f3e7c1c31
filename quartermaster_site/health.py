"""Liveness, without a sign-in: "ok" or "degraded", nothing more."""

from __future__ import annotations

from django.contrib.auth.decorators import login_not_required
from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe


@require_safe
@login_not_required
def healthz(request: HttpRequest) -> HttpResponse:
    """503 when the database does not answer."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        return HttpResponse("degraded\n", status=503, content_type="text/plain")
    return HttpResponse("ok\n", content_type="text/plain")
