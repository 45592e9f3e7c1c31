"""Whole page or fragment, redirects for both kinds of client, errors as pages."""

from __future__ import annotations

import pytest
from django.http import HttpResponse
from django.test import RequestFactory
from django.urls import path
from django_htmx.middleware import HtmxDetails

from quartermaster_site import errors, http
from quartermaster_site.middleware import DomainErrors


def request(target="/", **headers):
    found = RequestFactory().get(target, headers={name.replace("_", "-"): value for name, value in headers.items()})
    found.htmx = HtmxDetails(found)
    found.request_id = "abc123"
    return found


@pytest.fixture(autouse=True)
def rendered(monkeypatch):
    def render(request, name, context, status=200):
        return HttpResponse(name, status=status)

    monkeypatch.setattr(http, "render", render)


@pytest.mark.parametrize(
    ("headers", "name"),
    [
        ({}, "list.html"),
        ({"HX_Request": "true", "HX_Target": "counts"}, "list.html#counts"),
        ({"HX_Request": "true", "HX_Target": "somewhere"}, "list.html#table"),
        ({"HX_Request": "true"}, "list.html#table"),
        ({"HX_Request": "true", "HX_Boosted": "true"}, "list.html"),
        ({"HX_Request": "true", "HX_History_Restore_Request": "true"}, "list.html"),
    ],
)
def test_the_fragment_that_is_asked_for(headers, name):
    response = http.page(request(**headers), "list.html", fragments=["table", "counts"])
    assert response.content.decode() == name
    assert response["Vary"] == "HX-Request"


def test_redirects_for_both():
    assert http.go_to(request(), "/x/").status_code == 302
    response = http.go_to(request(HX_Request="true"), "/x/")
    assert (response.status_code, response["HX-Redirect"]) == (200, "/x/")


@pytest.mark.parametrize(
    ("candidate", "result"),
    [
        ("/models/?q=a", "/models/?q=a"),
        ("http://testserver/models/", "/models/"),
        ("https://evil.example/", "/"),
        ("//evil.example", "/"),
        ("", "/"),
    ],
)
def test_only_paths_of_this_site(candidate, result):
    assert http.local_path(request(), candidate) == result


@pytest.mark.parametrize(
    ("address", "result"), [("::ffff:10.0.0.7", "10.0.0.7"), ("fe80::1%eth0", "fe80::1"), ("10.0.0.7", "10.0.0.7")]
)
def test_addresses_are_written_one_way(address, result):
    found = request()
    found.META["REMOTE_ADDR"] = address
    assert http.client_address(found) == result


ERRORS = [
    (errors.Refused("No such colour."), 422),
    (errors.NotAllowed("Not for you."), 403),
    (errors.NotFound("Nothing there."), 404),
    (errors.EditConflict("Changed.", saved={}, version=2), 409),
    (errors.Busy("Slow down.", wait_seconds=7), 429),
    (errors.Unavailable("The queue is away."), 503),
    (errors.QuartermasterError("Something expected."), 422),
]


@pytest.mark.parametrize(("error", "status"), ERRORS)
@pytest.mark.parametrize("headers", [{}, {"HX_Request": "true"}])
def test_expected_failures_have_their_page(db, error, status, headers):
    response = DomainErrors(lambda request: HttpResponse()).process_exception(request(**headers), error)
    assert response.status_code == status
    assert str(error) in response.content.decode()
    whole = "<html" in response.content.decode()
    assert whole == (not headers)


def test_a_wait_is_said_in_a_header_too(db):
    response = DomainErrors(lambda request: HttpResponse()).process_exception(request(), ERRORS[4][0])
    assert response["Retry-After"] == "7"


def test_unexpected_failures_are_not_swallowed():
    assert DomainErrors(lambda request: HttpResponse()).process_exception(request(), KeyError("x")) is None


def broken(request):
    raise KeyError("a secret detail")


urlpatterns = [path("broken/", broken)]
handler500 = "quartermaster_site.error_pages.server_error"


@pytest.mark.django_db
@pytest.mark.urls(__name__)
def test_a_server_error_has_a_reference_and_no_details(client, make_user, caplog):
    client.force_login(make_user("admin"))
    client.raise_request_exception = False
    response = client.get("/broken/")
    assert response.status_code == 500
    body = response.content.decode()
    assert "secret detail" not in body
    reference = next(record.getMessage() for record in caplog.records if "reference" in record.getMessage()).split()[1]
    assert reference.rstrip(":") in body


@pytest.mark.parametrize(
    ("asked", "status", "content", "where"),
    [
        ("", 200, b"0123456789", None),
        ("bytes=0-3", 206, b"0123", "bytes 0-3/10"),
        ("bytes=4-", 206, b"456789", "bytes 4-9/10"),
        ("bytes=-2", 206, b"89", "bytes 8-9/10"),
        ("bytes=-99", 206, b"0123456789", "bytes 0-9/10"),
        ("bytes=8-999", 206, b"89", "bytes 8-9/10"),
        ("bytes=10-", 416, b"", "bytes */10"),
        ("bytes=5-2", 416, b"", "bytes */10"),
        ("bytes=-0", 416, b"", "bytes */10"),
        ("bytes=0-1,4-5", 200, b"0123456789", None),
        ("bytes=-", 200, b"0123456789", None),
        ("lines=1-2", 200, b"0123456789", None),
        (f"bytes={'9' * 99}-", 200, b"0123456789", None),
    ],
)
def test_parts_of_a_sound(rf, asked, status, content, where):
    answer = http.part_of(rf.get("/", headers={"Range": asked} if asked else {}), b"0123456789", "audio/wav")
    assert (answer.status_code, answer.content, answer.get("Content-Range")) == (status, content, where)
    assert answer["Accept-Ranges"] == "bytes"
