"""Log injection: one event is one line, whatever text it was about; and no text makes a header of its own."""

from __future__ import annotations

import logging

import pytest
from django.conf import settings
from django.test import Client

from quartermaster_site.access.models import AuditEntry
from quartermaster_site.jobs.receiving import log as receiving_log

FORGED = "x\r\n2026-01-01 00:00:00,000 INFO root: all is well\x1b[2J\x85\u2028\u202eevil"
ADDRESSES = (
    "/nowhere/x%0d%0aINFO%20root:%20all%20is%20well/",
    "/hosts/%0aINFO%20root:%20all%20is%20well/",
    "/models/1/%1b[2J/",
    "/%e2%80%a8/",
)


@pytest.fixture
def lines(monkeypatch):
    """What the log of the product gets, by its own format."""
    given = dict(settings.LOGGING["formatters"]["line"])
    kind = given.pop("()", logging.Formatter)
    fmt = given.pop("fmt", None) or given.pop("format")
    written = []

    class Kept(logging.Handler):
        def emit(self, record):
            written.append(self.format(record))

    handler = Kept()
    handler.setFormatter(kind(fmt, **given))
    root = logging.getLogger()
    root.addHandler(handler)
    yield written
    root.removeHandler(handler)


def forged(written):
    return [
        text for line in written for text in (line,) if len(text.splitlines()) > 1 or "\x1b" in text or "\u202e" in text
    ]


def test_a_message_is_one_line(lines):
    receiving_log.warning("report refused: %s", FORGED)
    assert len(lines) == 1
    assert not forged(lines)
    assert "all is well" in lines[0]


def test_a_trace_still_has_its_lines(lines):
    try:
        raise ValueError("zq")
    except ValueError:
        receiving_log.exception("job %s failed", FORGED)
    assert "Traceback" in lines[0]
    assert "all is well" in lines[0].splitlines()[0]


def test_requests_forge_no_lines(lines, tree, visit):
    clients = (visit("viewer", raise_request_exception=False), Client(raise_request_exception=False))
    for client in clients:
        for address in ADDRESSES:
            for headers in ({"User-Agent": FORGED}, {"X-Request-ID": FORGED}, {"Referer": FORGED}, {"Host": FORGED}):
                client.get(address, headers=headers)
        client.post("/login/", {"login": FORGED, "password": "x"})
    assert lines
    assert not forged(lines)


def test_the_id_of_a_request_is_ours(visit, tree):
    client = visit("viewer")
    client.get("/models/9/", headers={"X-Request-ID": FORGED})
    client.post("/hosts/local/folders/add/", {"path": "/x"}, headers={"X-Request-ID": "zqmine"})
    assert not AuditEntry.objects.filter(request_id__contains="zq").exists()


@pytest.mark.parametrize("text", ["a\r\nSet-Cookie: zq=1", "a\nX-Note: zq", "a\r\n\r\n<zq>"])
def test_no_text_becomes_a_header(visit, tree, text):
    """Places to go on to, names of files, and what htmx is told."""
    client = visit("admin", raise_request_exception=False)
    for address, data in (
        ("/login/", {"next": f"/models/?{text}"}),
        ("/issues/{finding}/acknowledge/", {"next": f"/models/{text}"}),
        ("/hosts/local/folders/add/", {"path": "/srv/x", "next": f"/models/{text}"}),
        ("/models/{model}/compare/", {"a": text}),
        ("/models/{model}/preview/", {"goto": text, "ctx": text}),
    ):
        for headers in ({}, {"HX-Request": "true", "HX-Target": text.replace("\r", "").replace("\n", "")}):
            for answer in (
                client.post(address.format(**tree), data, headers=headers),
                client.get(address.format(**tree), data, headers=headers),
            ):
                assert answer.status_code < 500, address
                assert "zq" not in answer.cookies
                assert "X-Note" not in answer.headers
                for name, value in answer.headers.items():
                    assert "\n" not in value, name
                    assert "\r" not in value, name
