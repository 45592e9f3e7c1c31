"""Open redirects: whatever an address, a form or a header names as the place to go on to, it is on this site."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, quote, urlencode, urljoin, urlsplit

import pytest
from django.test import RequestFactory

from models_app.models import Finding
from quartermaster_site.http import local_path
from quartermaster_site.middleware import _path_of
from tests.security.conftest import PASSWORD
from tests.security.markup import faults

HERE = "http://testserver"
ELSEWHERE = (
    "//evil.example",
    "///evil.example",
    "////evil.example/..",
    "/\\evil.example",
    "\\\\evil.example",
    "\\/evil.example",
    "/\t/evil.example",
    "/\n/evil.example",
    "/\r\n\\evil.example",
    "\t//evil.example",
    "\x00//evil.example",
    " //evil.example",
    "https://evil.example",
    "HTTPS://evil.example",
    "https:evil.example",
    "https:/evil.example",
    "https:///evil.example",
    "http:\\\\evil.example",
    "http://testserver@evil.example",
    "http://testserver:80@evil.example/",
    "http://testserver.evil.example",
    "http://evil.example#testserver",
    "http://evil.example?testserver",
    "http://evil.example\\@testserver",
    "http://testserver//evil.example",
    "http://testserver///evil.example",
    "http://testserver/\\evil.example",
    "http://testserver\\\\evil.example",
    "http://[::1]@evil.example",
    "http://[evil.example",
    "javascript:alert(1)",
    "JavaScript:alert(1)",
    "java\tscript:alert(1)",
    "\x01javascript:alert(1)",
    "javascript://testserver/%0aalert(1)",
    "data:text/html,x",
    "vbscript:x",
    "ftp://testserver/",
    "／／evil.example",
    "//evil。example",
    "http://ｅvil.example",
    "/%5cevil.example",
    "/%0d%0aLocation:%20//evil.example",
    "/\u2028//evil.example",
    "x" * 70_000,
)
"""Ways out of the site; some of them are harmless paths, which may be followed as what they are."""
TRICKS = (
    "//evil.example",
    "/\\evil.example",
    "/\n/evil.example",
    "https:evil.example",
    "javascript:alert(1)",
    "http://[evil.example",
    "http://testserver@evil.example",
    "http://testserver//evil.example",
    "http://testserver/\\evil.example",
    "/%0d%0aLocation:%20//evil.example",
    "／／evil.example",
)
"""One of each kind, for forms that take a while."""
WAYS = {
    "sign-in": ("/login/", {"login": "viewer", "password": PASSWORD}, "next"),
    "sign-out": ("/logout/", {}, "next"),
    "folder added": ("/hosts/local/folders/add/", {"path": "/srv/more"}, "next"),
    "finding acknowledged": ("/issues/{finding}/acknowledge/", {}, "next"),
    "look at the target": ("/config/local/look/", {}, "next"),
    "proof of the password": ("/account/reauthenticate/", {"password": PASSWORD}, "next"),
    "password changed": (
        "/account/password/change/",
        {"oldpassword": PASSWORD, "password1": "wrong", "password2": "horse"},
        "next",
    ),
}
"""Every form that goes on to where it is told."""


def stays(target: str) -> bool:
    """A browser that follows this from a page of ours is still on our site."""
    plain = re.sub(r"[\t\r\n]", "", target).strip("".join(map(chr, range(33)))).replace("\\", "/")
    try:
        found = urlsplit(urljoin(f"{HERE}/some/page/", plain))
    except ValueError:
        return False
    return found.scheme == "http" and found.netloc == "testserver" and not plain.startswith("//")


@pytest.mark.parametrize("target", ELSEWHERE, ids=lambda text: repr(text[:40]))
def test_a_local_path_is_local(target):
    request = RequestFactory().get("/")
    assert stays(local_path(request, target, default="/home/"))
    assert local_path(request, target, default="/home/").startswith("/")
    assert stays(_path_of(target))


@pytest.mark.parametrize("target", ["/models/?q=a%20b", "/jobs/3/", f"{HERE}/models/5/?ctx=8192"])
def test_a_path_of_ours_is_kept(target):
    assert local_path(RequestFactory().get("/"), target) == target.removeprefix(HERE)


@pytest.mark.parametrize("way", WAYS)
def test_forms_lead_nowhere_else(visit, tree, way):
    address, data, name = WAYS[way]
    path = address.format(**tree)
    for target in TRICKS:
        client = visit("admin")
        if way == "sign-in":
            client.logout()
        for answer in (
            client.post(path, {**data, name: target}),
            client.post(f"{path}?{urlencode({name: target})}", data),
        ):
            assert answer.status_code < 500
            assert stays(answer.headers.get("Location", "/")), target
            assert stays(answer.headers.get("HX-Redirect", "/")), target
            assert not faults(answer.content.decode()), target
    assert Finding.objects.exists()


def test_the_folder_browser_goes_back_into_the_site(visit):
    client = visit("admin")
    for target in TRICKS:
        answer = client.get("/hosts/local/folders/browse/", {"for": "folder", "back": target})
        links = re.findall(r'href="([^"]*)"', answer.content.decode())
        assert all(stays(link) for link in links), target
        assert not faults(answer.content.decode()), target


@pytest.mark.parametrize("header", ["HX-Current-URL", "Referer"])
def test_an_ended_session_leads_to_sign_in_and_back_here(client, tree, header):
    for target in TRICKS:
        named = quote(target, safe="/:@#?\\[]") if header == "HX-Current-URL" else target
        headers = {header: named, **({"HX-Request": "true"} if header == "HX-Current-URL" else {})}
        answer = client.post("/hosts/local/scan/", headers=headers)
        location = answer.headers.get("HX-Redirect") or answer["Location"]
        assert location.startswith("/login/?next="), target
        assert stays(parse_qs(urlsplit(location).query)["next"][0]), target


@pytest.mark.parametrize(
    "path", ["//evil.example/", "/\\evil.example/", "//evil.example/..//models", "/%2f%2fevil.example/"]
)
def test_an_address_without_its_slash_is_completed_here(visit, path):
    """CommonMiddleware adds a missing slash by a redirect."""
    for address in (path, path.rstrip("/")):
        answer = visit("viewer").get(address)
        assert stays(answer.headers.get("Location", "/")), address
