"""Numbers of things that belong elsewhere: another host's under this host's address, another person's, and no numbers.

Rights by role and by policy are tested elsewhere: here everybody is an administrator and is still not given the wrong
thing.
"""

from __future__ import annotations

import pytest
from allauth.usersessions.models import UserSession
from django.contrib.auth import get_user_model
from django.urls import NoReverseMatch, reverse

from gpus_app.models import Backend, Host
from models_app.models import (
    Audition,
    Change,
    DiskVersion,
    Override,
    Revision,
    Root,
    Row,
    Voice,
)
from quartermaster_site.access.models import ApiToken
from quartermaster_site.jobs.models import Job
from tests.access.test_junk import stored
from tests.access.url_table import ASK, CHANGE, READ
from tests.security.addresses import patterns

NUMBERS = ("0", "2147483648", "9223372036854775808")
NO_NUMBERS = ("-1", "1.5", "１", "1%00", "..")
NAMES = ("local/../local", "%2e%2e", "local%00", "local%0a", "LOCAL", "l" * 400, "local'", "локал", "__class__")


@pytest.fixture(scope="module")
def other(tree):
    """A second host; what it has is of the same kinds."""
    host = Host.objects.create(slug="other", name="Other machine", publish_path="/srv/config.yaml")
    root = Root.objects.create(host=host, path="/models", state="ok")
    text = "models: {}\n"
    for number in (1, 2):
        Revision.objects.create(host=host, number=number, dialect="llama-swap", text=text, state="validated")
    row = Row.objects.create(
        host=host, root=root, path="/models/t.gguf", served_id="t", base_id="t", file_name="t.gguf",
        model_class="tts", architecture="qwen3-tts", found={"id": "t", "full_path": "/models/t.gguf"},
    )  # fmt: skip
    rule = Override.objects.create(host=host, match="*x*", fields={"temp": 0.5}, version=1, position=1)
    change = Change.objects.create(
        host=host, match="*x*", rule=rule.pk, action="save", after={"match": "*x*"}, version=1
    )
    return {
        "root": root.pk,
        "backend": Backend.objects.create(host=host, slug="b", kind="llama", path="/opt/b").pk,
        "rule": rule.pk,
        "shared": change.pk,
        "found": DiskVersion.objects.create(host=host, sha256="2" * 64, text=text).pk,
        "voice": Voice.objects.create(host=host, name="only-theirs", form="wav", size_bytes=1, seconds=1).pk,
        "audition": Audition.objects.create(row=row, request={}, audio=b"RIFF", seconds=1).pk,
        "talker": row.pk,
        "revision": 2,
        "job": Job.objects.create(kind="import_fetch", host=host, token="t", state="succeeded").pk,
    }


def named(path, word):
    return "{" + word + "}" in path


OF_ONE_HOST = ("root", "backend", "rule", "shared", "found", "voice", "audition", "talker", "revision", "job")
UNDER_A_HOST = sorted(
    path
    for path in {*READ, *ASK, *CHANGE, "/import/on/local/fetch/{job}/", "/hosts/local/folders/browse/?job={job}"}
    if "/local/" in path and any(named(path, word) for word in OF_ONE_HOST)
)


@pytest.mark.parametrize("path", UNDER_A_HOST)
def test_what_another_host_has_is_not_found_here(visit, tree, other, path):
    client, before = visit("admin"), stored()
    address = path.format(**{**tree, **other})
    data = CHANGE[path][1] if path in CHANGE else {}
    for answer in (client.get(address), client.post(address, data)):
        assert answer.status_code in (404, 405), answer.content[:300]
        assert b"only-theirs" not in answer.content
    assert stored() == before


def test_the_same_in_forms_and_the_api(visit, tree, other):
    """Numbers that a form carries, and revisions of a host that has fewer."""
    client, before = visit("admin", raise_request_exception=False), stored()
    talker = str(other["talker"])
    assert client.post(f"/voices/local/{tree['voice']}/send/", {"model": talker}).status_code == 404
    assert client.post(f"/voices/other/{tree['voice']}/send/", {"model": talker}).status_code == 404
    assert client.get("/config/local/1/diff/2/").status_code == 404
    assert stored() == before
    secret = client.post("/account/tokens/", {"name": "x", "days": "30"}).context["secret"]
    headers = {"Authorization": f"Bearer {secret}"}
    assert client.get("/api/v1/hosts/local/revisions/2/", headers=headers).status_code == 404
    asked = {"revision": 2, "message": "x"}
    answer = client.post("/api/v1/hosts/local/publish/", asked, "application/json", headers=headers)
    assert answer.status_code in (404, 422)


def test_a_person_ends_and_revokes_only_what_is_theirs(visit, tree):
    people = get_user_model().objects
    mine, theirs = visit("viewer"), visit("editor")
    theirs.get("/")
    theirs.post("/account/tokens/", {"name": "only-theirs", "days": "30"})
    session = UserSession.objects.filter(user=people.get(username="editor")).first()
    token = ApiToken.objects.get(name="only-theirs")
    assert mine.post("/account/sessions/end/", {"session": str(session.pk)}).status_code == 404
    assert mine.post(f"/account/tokens/{token.pk}/revoke/").status_code == 404
    assert theirs.get("/account/").status_code == 200
    assert ApiToken.objects.filter(pk=token.pk).exists()
    assert b"only-theirs" not in mine.get("/account/").content
    admin = visit("admin")
    viewer = people.get(username="viewer")
    assert admin.post(f"/access/users/{viewer.pk}/sessions/{session.pk}/end/").status_code == 404
    assert theirs.get("/account/").status_code == 200


def test_an_administrator_revokes_no_token_of_another_as_their_own(visit, tree):
    visit("editor").post("/account/tokens/", {"name": "only-theirs", "days": "30"})
    number = ApiToken.objects.get(name="only-theirs").pk
    assert visit("admin").post(f"/account/tokens/{number}/revoke/").status_code == 404


NUMBERED = sorted(path for path in {*READ, *ASK, *CHANGE} if "{" in path)


@pytest.mark.parametrize("number", [*NUMBERS, *NO_NUMBERS], ids=lambda text: text[:20])
def test_numbers_that_are_none(visit, tree, number):
    """Nothing is found, and nothing is an error of ours."""
    client = visit("admin")
    for path in NUMBERED:
        address = path.format(**dict.fromkeys(tree, number)).partition("?")[0]
        answer = client.get(address)
        assert answer.status_code in (302, 404, 405), address
        if answer.status_code == 302:  # a slash is added, or `..` is a page of its own
            assert answer["Location"].startswith("/"), address


@pytest.mark.parametrize("number", NUMBERS[1:], ids=lambda text: text[:20])
def test_the_same_for_changes(visit, tree, number):
    client, before = visit("admin"), stored()
    for path, (_, data) in CHANGE.items():
        if "{" in path:
            address = path.format(**dict.fromkeys(tree, number))
            assert client.post(address, data).status_code == 404, address
    assert stored() == before


@pytest.mark.parametrize("name", NAMES, ids=lambda text: text[:20])
def test_hosts_that_are_none(visit, tree, name):
    client = visit("admin")
    for pattern in ("/hosts/{}/", "/config/{}/", "/voices/{}/", "/router/{}/", "/export/{}/", "/fleet-variants/{}/"):
        assert client.get(pattern.format(name)).status_code in (301, 302, 404), pattern


def test_every_number_of_an_address_is_one():
    """`<int:pk>` alone stands in addresses of ours; a name is a slug, or looked up as it is."""
    for pattern in patterns():
        if not pattern.startswith(("/account/oidc", "/api/")):
            assert "<pk>" not in pattern
            assert "<str:pk>" not in pattern
    with pytest.raises(NoReverseMatch):
        reverse("models:model-show", args=["-1"])
