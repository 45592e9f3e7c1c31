"""What every answer carries, whatever it is: a page, a fragment, an error, a file, a sound, JSON, allauth's pages."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import path as route

from quartermaster_site import urls
from quartermaster_site.http import API_PATH
from tests.access.url_table import HTMX
from tests.security.addresses import ALL
from tests.security.conftest import PASSWORD
from tests.security.markup import faults
from tests.site.test_security_headers import POLICY

FIXED = {
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
METHODS = ("GET", "HEAD", "OPTIONS", "TRACE", "CONNECT", "PROPFIND", "PUT", "X")


def check(answer, where):
    sent = answer["Content-Security-Policy"]
    policy = dict(part.strip().split(" ", 1) for part in sent.split(";") if part.strip())
    assert policy == POLICY, where
    for name, value in FIXED.items():
        assert answer.headers.get(name) == value, f"{where}: {name}"
    assert "microphone=()" in answer["Permissions-Policy"], where
    assert "Server" not in answer.headers, where


def fails(request):
    raise RuntimeError("zqsecret of the inner works")


urlpatterns = [*urls.urlpatterns, route("fails/", fails), route("api/v1/fails/", fails)]
handler400, handler403, handler404, handler500 = urls.handler400, urls.handler403, urls.handler404, urls.handler500


def test_every_address_for_everybody(visit):
    for role in ("viewer", ""):
        client = visit(role) if role else Client()
        for address in ALL:
            answer = client.get(address)
            check(answer, address)
            assert not role or "no-store" in answer["Cache-Control"], address


@pytest.mark.parametrize("path", ["/", "/models/1/", "/config/local/1/download/", "/audit/export/", "/nowhere/"])
def test_fragments_and_files_too(visit, path):
    check(visit("admin").get(path, headers=HTMX), path)


def test_allauths_pages_have_nothing_inline(visit):
    client = visit("viewer")
    client.post("/account/reauthenticate/", {"password": PASSWORD})
    shown = [address for address in ALL if address.startswith(("/account/", "/login/", "/logout/"))]
    for address in shown:
        answer = client.get(address)
        if answer.status_code == 200 and "html" in answer["Content-Type"]:
            assert not faults(answer.content.decode()), address


@pytest.mark.parametrize("method", METHODS)
def test_methods_that_nobody_needs(visit, method):
    """TRACE gives nothing back, OPTIONS opens nothing to other sites."""
    client = visit("viewer")
    for address in ("/", "/healthz", "/models/1/", "/account/password/change/", "/api/v1/hosts/", "/nowhere/"):
        answer = client.generic(method, address, headers={"X-Note": "zqnote"})
        check(answer, address)
        assert answer.status_code < 500
        assert b"zqnote" not in answer.content
        assert not [name for name in answer.headers if name.lower().startswith("access-control-")]


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "testserver.evil.example",
        "testserver:bad",
        "testserver@evil.example",
        "[::1",
        "localhost\tx",
        "a,b",
    ],
)
def test_other_names_are_answered_with_nothing(tree, host):
    answer = Client().get("/login/", headers={"Host": host})
    check(answer, host)
    assert answer.status_code == 400
    assert "evil" not in answer.content.decode()


def test_a_forwarded_name_is_not_believed(tree):
    answer = Client().get("/login/", headers={"X-Forwarded-Host": "evil.example", "X-Forwarded-Port": "1"})
    assert answer.status_code == 200
    assert "evil" not in answer.content.decode()


@pytest.mark.parametrize("headers", [{}, HTMX], ids=["page", "fragment"])
@pytest.mark.parametrize("path", ["/fails/", f"{API_PATH}fails/"])
@pytest.mark.urls("tests.security.test_response_headers")
def test_a_fault_of_ours_tells_nothing(visit, path, headers):
    """No trace, no message of the exception, no path of a file: a reference into the log."""
    client = visit("admin", raise_request_exception=False)
    answer = client.get(path, headers=headers)
    check(answer, path)
    assert answer.status_code == 500
    body = answer.content.decode()
    for secret in ("zqsecret", "Traceback", "RuntimeError", ".py", "site-packages", "DJANGO", "SECRET_KEY"):
        assert secret not in body, secret
    assert answer.wsgi_request.request_id in body
    is_json = answer["Content-Type"].startswith("application/json")
    assert is_json is path.startswith(API_PATH)


@pytest.mark.parametrize(
    ("path", "options", "status"),
    [
        ("/nowhere/", {}, 404),
        ("/models/9/", {}, 404),
        ("/hosts/local/scan/", {}, 405),
        ("/access/users/", {}, 403),
        ("/hosts/local/settings/memory/?x=%ff%00", {}, 200),
        ("/import/9/", {}, 404),
        (f"{API_PATH}nowhere/", {}, 404),
        (f"{API_PATH}models/x/", {"headers": {"Authorization": "Bearer x"}}, 401),
        (f"{API_PATH}hosts/", {"headers": {"Authorization": "Bearer \x00\x7f"}}, 401),
        (f"{API_PATH}hosts/", {"headers": {"Authorization": "Basic dmlld2VyOng="}}, 401),
    ],
)
def test_refusals_tell_nothing_either(visit, path, options, status):
    answer = visit("viewer").get(path, **options)
    check(answer, path)
    assert answer.status_code == status
    for secret in ("Traceback", "Exception", ".py", "urlpatterns", "quartermaster_site", "models_app"):
        assert secret not in answer.content.decode()


def test_debug_pages_are_off():
    from django.conf import settings

    assert settings.DEBUG is False
