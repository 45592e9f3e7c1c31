"""What goes into the log beside its lines."""

from __future__ import annotations

import re
from logging import Formatter, LogRecord

from django.http import HttpResponse

_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
"""Line breaks of every kind, what terminals take as orders, and marks that turn the direction of text."""

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


class OneLine(Formatter):
    """A message is one line, whatever text from outside is in it; the trace of our own fault stands below it."""

    def formatMessage(self, record: LogRecord) -> str:  # noqa: N802 - the name that logging calls
        record.message = _CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), record.message)
        return super().formatMessage(record)
