"""What goes into the log beside its lines."""

from __future__ import annotations

from logging import LogRecord

from django.http import HttpResponse

UNREADABLE_REQUESTS = ("RequestDataTooBig", "TooManyFieldsSent", "TooManyFilesSent")
"""Django's names for requests that it refuses to read; each has a logger of its own."""


def without_log_line(response: HttpResponse) -> HttpResponse:
    """The same answer, which Django gives no line of its own: whoever is refused could fill the log with them."""
    response._has_been_logged = True  # type: ignore[attr-defined]
    return response


def without_trace_of_clients(record: LogRecord) -> bool:
    """What a client sent wrong is one line: traces are for our own faults."""
    if getattr(record, "status_code", 500) < 500:
        record.exc_info = None
    return True
