"""Every page as nobody and as each role, whole and as a fragment; every change needs its role and a POST."""

from __future__ import annotations

import io
import re

import pytest
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver
from django.utils import timezone

from gpus_app.models import Agent, Host
from models_app.models import Publishing, Revision, RevisionDetails, Router, Row, TargetWatch
from quartermaster_site.access.models import AuditEntry
from quartermaster_site.jobs.models import Job
from tests.access.conftest import TALKER
from tests.speech_files import wav


class Recording(io.BytesIO):
    """A file to upload again and again."""

    name = "new.wav"

    def read(self, size: int | None = -1) -> bytes:
        return wav()


class Config(io.BytesIO):
    """The same for a router's file."""

    name = "config.yaml"

    def read(self, size: int | None = -1) -> bytes:
        return self.getvalue()


VIEWER, OPERATOR, EDITOR, ADMIN = ROLES = ("viewer", "operator", "editor", "admin")

READ = [
    "/",
    "/models/",
    "/models/{model}/",
    "/models/{model}/row/",
    "/models/{model}/edit/",
    "/models/{model}/launch/",
    "/models/{model}/variants/",
    "/models/{model}/variants/{variant}/",
    "/models/{model}/history/",
    "/fleet-variants/local/",
    "/fleet-variants/local/all/",
    "/models/{model}/files/",
    "/models/{model}/test/",
    "/models/{model}/compare/",
    "/models/{model}/check/",
    "/components/",
    "/issues/",
    "/issues/export/",
    "/hosts/",
    "/hosts/local/",
    "/hosts/local/rules/",
    "/hosts/local/rules/{rule}/",
    "/hosts/local/history/",
    "/hosts/local/fits/",
    "/hosts/local/card/",
    "/hosts/local/settings/memory/",
    "/hosts/local/settings/gpu/",
    "/hosts/local/settings/checks/",
    "/hosts/local/settings/kv/",
    "/hosts/local/settings/sampling/",
    "/hosts/local/settings/advanced/",
    "/hosts/local/settings/guards/",
    "/hosts/local/settings/groups/",
    "/hosts/local/folders/",
    "/hosts/local/machine/",
    "/hosts/local/backends/",
    "/hosts/local/by-hand/",
    "/config/",
    "/config/local/",
    "/router/",
    "/router/local/",
    "/voices/",
    "/voices/local/",
    "/voices/local/servers/{talker}/audition/",
    "/voices/local/auditions/{audition}/audio/",
    "/config/local/review/",
    "/config/local/revisions/",
    "/export/local/",
    "/export/local/overrides.csv",
    "/config/local/drift/",
    "/config/local/drift/{found}/",
    "/config/local/{revision}/diff/{revision}/",
    "/config/local/{revision}/download/",
    "/jobs/",
    "/jobs/{job}/",
    "/jobs/{job}/panel/",
    "/account/",
]
ASK = {
    "/import/": EDITOR,
    "/import/on/local/": EDITOR,
    "/import/{batch}/": EDITOR,
    "/import/{applied}/undo/": EDITOR,
    "/voices/local/new/": EDITOR,
    "/voices/local/{voice}/delete/": EDITOR,
    "/voices/local/servers/{talker}/address/": ADMIN,
    "/models/{model}/forget/": EDITOR,
    "/models/bulk/": EDITOR,
    "/models/{model}/reset/": EDITOR,
    "/models/{model}/variants/{variant}/delete/": EDITOR,
    "/fleet-variants/local/all/delete/": EDITOR,
    "/hosts/local/folders/browse/?for=folder&back=/hosts/": ADMIN,
    "/hosts/local/rules/{rule}/delete/": EDITOR,
    "/hosts/local/folders/{root}/remove/": ADMIN,
    "/hosts/local/machine/remove/": ADMIN,
    "/machines/add/": ADMIN,
    "/keys/": ADMIN,
    "/keys/new/": ADMIN,
    "/keys/{key}/": ADMIN,
    "/keys/{key}/revoke/": ADMIN,
    "/hosts/local/backends/{backend}/": ADMIN,
    "/hosts/local/backends/{backend}/remove/": ADMIN,
    "/hosts/local/by-hand/enhancer/": EDITOR,
    "/hosts/local/by-hand/enhancer/remove/?of=pe": EDITOR,
    "/config/local/{revision}/write/": OPERATOR,
    "/config/local/{revision}/rollback/": OPERATOR,
    "/access/users/": ADMIN,
    "/access/groups/": ADMIN,
    "/access/groups/{group}/": ADMIN,
    "/access/groups/{group}/delete/": ADMIN,
    "/access/policies/": ADMIN,
    "/access/policies/count/": ADMIN,
    "/access/policies/{policy}/": ADMIN,
    "/access/policies/{policy}/delete/": ADMIN,
    "/access/explain/": ADMIN,
    "/access/users/{person}/": ADMIN,
    "/access/users/{person}/password/": ADMIN,
    "/access/network/": ADMIN,
    "/audit/": ADMIN,
    "/audit/export/": ADMIN,
}
"""Pages that ask before they change something."""
CHANGE = {
    "/models/{model}/preview/": (VIEWER, {}),
    "/models/{model}/edit/": (EDITOR, {"version": "1", "threads": "3"}),
    "/models/{model}/edit/preview/": (VIEWER, {}),
    "/access/groups/": (ADMIN, {"name": "new"}),
    "/access/groups/{group}/": (ADMIN, {"name": "renamed"}),
    "/access/groups/{group}/delete/": (ADMIN, {}),
    "/access/policies/": (ADMIN, {"subject": "everyone", "model": "*new*", "level": "1"}),
    "/access/policies/{policy}/": (ADMIN, {"subject": "everyone", "model": "*new*", "level": "1", "version": "1"}),
    "/access/policies/{policy}/delete/": (ADMIN, {"version": "1"}),
    "/models/bulk/": (EDITOR, {"rows": "0:0", "key-1": "threads", "value-1": "3", "intent": "apply"}),
    "/models/{model}/reset/": (EDITOR, {"version": "1"}),
    "/models/{model}/adopt/": (EDITOR, {"version": "1", "ub": "1024"}),
    "/models/{model}/launch/": (ADMIN, {"version": "1", "customArgs": "-t 3", "apply": "1"}),
    "/models/{model}/launch/preview/": (VIEWER, {}),
    "/models/{model}/variants/": (EDITOR, {"name": "new"}),
    "/models/{model}/variants/{variant}/": (EDITOR, {"version": "1", "threads": "3"}),
    "/models/{model}/variants/{variant}/preview/": (VIEWER, {}),
    "/models/{model}/variants/{variant}/rename/": (EDITOR, {"name": "new"}),
    "/models/{model}/variants/{variant}/delete/": (EDITOR, {"version": "1"}),
    "/models/{model}/history/{change}/restore/": (EDITOR, {"version": "1"}),
    "/fleet-variants/local/": (EDITOR, {"name": "new"}),
    "/fleet-variants/local/all/": (EDITOR, {"version": "1", "threads": "3"}),
    "/fleet-variants/local/all/delete/": (EDITOR, {"version": "1"}),
    "/hosts/local/rules/": (EDITOR, {"match": "*new*"}),
    "/hosts/local/rules/{rule}/": (EDITOR, {"version": "1", "match": "*model-3*", "threads": "3"}),
    "/hosts/local/rules/{rule}/move/": (EDITOR, {"beside": "701"}),
    "/hosts/local/rules/{rule}/delete/": (EDITOR, {"version": "1"}),
    "/hosts/local/history/{shared}/restore/": (EDITOR, {"version": "1"}),
    "/models/{model}/files/read/": (OPERATOR, {}),
    "/models/{model}/test/": (OPERATOR, {}),
    "/models/{model}/check/": (OPERATOR, {}),
    "/models/{model}/check/look/": (OPERATOR, {}),
    "/models/{model}/forget/": (EDITOR, {}),
    "/components/{component}/pin/": (EDITOR, {"version": "0"}),
    "/issues/{finding}/acknowledge/": (OPERATOR, {}),
    "/hosts/local/scan/": (OPERATOR, {}),
    "/hosts/local/probe/": (OPERATOR, {}),
    "/hosts/local/plan/": (OPERATOR, {}),
    "/hosts/local/settings/memory/": (EDITOR, {"version": "0", "ttlSec": "60"}),
    "/hosts/local/settings/gpu/": (EDITOR, {"version": "0", "minGpuVramGB": "1"}),
    "/hosts/local/settings/checks/": (EDITOR, {"version": "0"}),
    "/hosts/local/settings/kv/": (EDITOR, {"version": "0", "kvQuant": "q8_0"}),
    "/hosts/local/settings/sampling/": (EDITOR, {"version": "0", "dryDefault": "on"}),
    "/hosts/local/settings/advanced/": (EDITOR, {"version": "0", "threads": "3"}),
    "/hosts/local/settings/groups/": (ADMIN, {"version": "0", "name-1": "small", "match-1": "*4b*"}),
    "/hosts/local/settings/guards/": (ADMIN, {"version": "0", "oomGuardGraceSec": "60"}),
    "/hosts/local/folders/add/": (ADMIN, {"path": "/more"}),
    "/hosts/local/folders/browse/?for=folder&back=/hosts/": (ADMIN, {"for": "folder", "back": "/hosts/", "path": "/"}),
    "/hosts/local/folders/watching/": (ADMIN, {"version": "0", "pollSec": "60"}),
    "/hosts/local/folders/{root}/remove/": (ADMIN, {"confirm": "1"}),
    "/machines/add/": (ADMIN, {"slug": "gpu-a"}),
    "/hosts/local/machine/code/": (ADMIN, {}),
    "/hosts/local/machine/pause/": (ADMIN, {"paused": "1"}),
    "/hosts/local/machine/remove/": (ADMIN, {"slug": "local"}),
    "/hosts/local/backends/": (ADMIN, {"kind": "llama", "path": "/opt/more/llama-server"}),
    "/hosts/local/backends/probe/": (ADMIN, {}),
    "/hosts/local/backends/search/": (ADMIN, {}),
    "/hosts/local/backends/{backend}/": (ADMIN, {"kind": "llama", "path": "/opt/b/llama-server", "edition": "1"}),
    "/hosts/local/backends/{backend}/star/": (ADMIN, {}),
    "/hosts/local/backends/{backend}/remove/": (ADMIN, {}),
    "/hosts/local/by-hand/": (EDITOR, {"version": "0", "loraDir": "/loras"}),
    "/hosts/local/by-hand/enhancer/": (EDITOR, {"version": "1", "model": "new"}),
    "/hosts/local/by-hand/enhancer/remove/?of=pe": (EDITOR, {"version": "1"}),
    "/config/local/render/": (OPERATOR, {}),
    "/config/local/target/": (ADMIN, {"path": "/srv/other.yaml", "dialect": "llama-swap"}),
    "/config/local/{revision}/write/": (OPERATOR, {}),
    "/config/local/{revision}/submit/": (OPERATOR, {}),
    "/config/local/{revision}/refuse/": (OPERATOR, {}),
    "/config/local/{revision}/rollback/": (OPERATOR, {}),
    "/config/local/{revision}/settings/": (EDITOR, {}),
    "/config/local/unpin/": (OPERATOR, {}),
    "/config/local/look/": (OPERATOR, {}),
    "/config/local/adopt/": (OPERATOR, {"sha256": "0" * 64}),
    "/keys/new/": (ADMIN, {"name": "new", "hosts": "local", "scope": "all", "expires": "never"}),
    "/keys/{key}/": (ADMIN, {"name": "new", "hosts": "local", "scope": "all", "expires": "never", "version": "1"}),
    "/keys/{key}/rotate/": (ADMIN, {"days": "0"}),
    "/keys/{key}/revoke/": (ADMIN, {}),
    "/keys/hosts/local/": (ADMIN, {"required": "1"}),
    "/config/local/drift/choose/": (OPERATOR, {"choice": "hand"}),
    "/router/local/": (ADMIN, {"version": "0", "url": "http://127.0.0.1:8080"}),
    "/router/local/action/": (OPERATOR, {"action": "unload", "model": "*"}),
    "/voices/local/new/": (EDITOR, {"name": "new", "wav": Recording()}),
    "/voices/local/{voice}/delete/": (EDITOR, {}),
    "/voices/local/{voice}/send/": (OPERATOR, {"model": str(TALKER)}),
    "/voices/local/servers/{talker}/ask/": (OPERATOR, {}),
    "/voices/local/servers/{talker}/drop/": (EDITOR, {"name": "guest"}),
    "/voices/local/servers/{talker}/audition/": (OPERATOR, {"input": "Hello."}),
    "/voices/local/servers/{talker}/address/": (ADMIN, {"url": "http://127.0.0.1:8081"}),
    "/config/local/keeping/": (ADMIN, {"revisions": "50", "backups": "3"}),
    "/config/local/policy/": (ADMIN, {"policy": "auto"}),
    "/import/on/local/": (EDITOR, {"kind": "auto", "file": Config(b"models: {}")}),
    "/import/{batch}/apply/": (EDITOR, {"section": "top", "item": "0"}),
    "/import/{applied}/undo/": (EDITOR, {}),
    "/jobs/{job}/retry/": (OPERATOR, {}),
    "/jobs/{job}/cancel/": (OPERATOR, {}),
    "/account/": (VIEWER, {"theme": "dark"}),
    "/account/sessions/end/": (VIEWER, {"session": "others"}),
    "/account/tokens/": (VIEWER, {"name": "script", "days": "30"}),
    "/access/network/": (ADMIN, {"version": "0", "network-1": "192.0.2.7", "who-1": "everyone"}),
    "/access/users/": (ADMIN, {"username": "new", "role": "viewer"}),
    "/access/users/{person}/": (ADMIN, {"role": "editor", "active": "on"}),
    "/access/users/{person}/password/": (ADMIN, {}),
    "/access/users/{person}/sessions/{session}/end/": (ADMIN, {}),
}
OWN = ["/account/tokens/{token}/revoke/", "/import/on/local/fetch/{job}/"]
"""What belongs to one person, whatever their role: tests/access/test_api.py; to one job: tests/views/test_import.py."""
HTMX = {"HX-Request": "true", "HX-Current-URL": "http://testserver/models/"}


@pytest.fixture
def client_of(make_user, installation):
    make_user("admin", "the-first")

    def client(role):
        found = Client()
        if role:
            found.force_login(make_user(role))
        return found

    return client


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("path", READ)
def test_every_role_may_read(client_of, installation, path, role):
    response = client_of(role).get(path.format(**installation), follow=True)
    assert response.status_code == 200
    if "html" in response["Content-Type"]:
        assert b"<h1" in response.content or "/row/" in path or "/card/" in path or "/panel/" in path


@pytest.mark.parametrize("path", READ)
def test_as_a_fragment_too(client_of, installation, path):
    response = client_of(VIEWER).get(path.format(**installation), headers=HTMX)
    assert response.status_code in (200, 286), response.headers
    assert b'name="password"' not in response.content


@pytest.mark.parametrize("path", [*READ, *ASK])
def test_nobody_is_sent_to_sign_in(client_of, installation, path):
    response = client_of("").get(path.format(**installation))
    assert response.status_code == 302
    assert response["Location"].startswith("/login/?next=")


@pytest.mark.parametrize("path", READ)
def test_nobody_gets_no_fragment(client_of, installation, path):
    response = client_of("").get(path.format(**installation), headers=HTMX)
    assert (response.status_code, response.content) == (200, b"")
    assert response["HX-Redirect"].startswith("/login/")


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("path", ASK)
def test_questions_are_for_those_who_may_answer(client_of, installation, path, role):
    expected = 200 if ROLES.index(role) >= ROLES.index(ASK[path]) else 403
    assert client_of(role).get(path.format(**installation)).status_code == expected


def prepare(path):
    """The state in which a change makes sense."""
    if path.endswith("/forget/"):
        Row.objects.update(state=Row.State.MISSING)
    if path.endswith(("/submit/", "/refuse/")):
        Publishing.objects.create(host=Host.objects.get(), policy="approval")
    if path.endswith("/refuse/"):
        Revision.objects.update(state="awaiting")
    if "machine" in path:  # as if another machine were behind the host
        Agent.objects.create(host=Host.objects.get(), enrolment="e")
    if path.startswith("/router/local/action"):
        Router.objects.create(host=Host.objects.get(slug="local"), url="http://127.0.0.1:8080")
    if path.startswith("/config/") and path.endswith("/settings/"):
        RevisionDetails.objects.create(revision=Revision.objects.get(), inputs={"version": "1", "last_change": 99999})
    if path.endswith("/adopt/") and path.startswith("/config/"):
        host = Host.objects.get()
        TargetWatch.objects.create(host=host, path=host.publish_path, sha256="0" * 64)
    if path.endswith("/rollback/"):
        Revision.objects.update(written_at=timezone.now())


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("path", CHANGE)
def test_changes_need_their_role(client_of, installation, monkeypatch, path, role):
    needed, data = CHANGE[path]
    monkeypatch.setattr("gpus_app.enrolment.why_no_machines", lambda *_: "")
    if path.endswith("/cancel/") and role in (OPERATOR, EDITOR):
        pytest.skip("their own jobs only: tests/jobs/test_cancel_and_retry.py")
    prepare(path)
    before = AuditEntry.objects.exclude(action__startswith="sign-").count()
    response = client_of(role).post(path.format(**installation), data)
    if ROLES.index(role) >= ROLES.index(needed):
        assert response.status_code in (200, 302), response.content
    else:
        assert response.status_code == 403
        assert b"administrator can give it" in response.content
        assert AuditEntry.objects.exclude(action__startswith="sign-").count() == before
        assert Job.objects.count() == 1


@pytest.mark.parametrize("path", CHANGE)
def test_nobody_changes_anything(client_of, installation, path):
    response = client_of("").post(path.format(**installation), CHANGE[path][1])
    assert response.status_code == 302
    assert Job.objects.count() == 1


@pytest.mark.parametrize("path", [path for path in CHANGE if path not in {*READ, *ASK}])
def test_a_get_changes_nothing(client_of, installation, path):
    assert client_of(ADMIN).get(path.format(**installation)).status_code == 405


@pytest.mark.parametrize("path", CHANGE)
def test_a_change_needs_its_token(client_of, installation, make_user, path):
    client = Client(enforce_csrf_checks=True)
    client.force_login(make_user(ADMIN))
    assert client.post(path.format(**installation), CHANGE[path][1]).status_code == 403


@pytest.mark.parametrize(
    "path", ["/models/999/", "/jobs/999/", "/hosts/nowhere/", "/config/nowhere/", "/config/local/999/download/", "/x/"]
)
def test_what_is_not_there(client_of, path):
    response = client_of(VIEWER).get(path)
    assert response.status_code == 404
    assert b"<h1" in response.content
    assert client_of(ADMIN).get(path, headers=HTMX).status_code == 404


def test_no_page_of_ours_is_forgotten():
    """Every address of the product is in the tables above, but the wizard's, allauth's own, and the API's."""

    def addresses(patterns, prefix=""):
        for pattern in patterns:
            here = prefix + str(pattern.pattern)
            if isinstance(pattern, URLResolver):
                yield from addresses(pattern.url_patterns, here)
            elif isinstance(pattern, URLPattern):
                yield "/" + here, pattern.callback

    known = {re.sub(r"\{\w+\}", "", path).partition("?")[0] for path in [*READ, *ASK, *CHANGE, *OWN]}
    for address, callback in addresses(get_resolver().url_patterns):
        if getattr(callback, "func", callback).__module__.startswith(
            ("models_app.views.setup", "allauth", "django", "quartermaster_site.health", "ninja")
        ):
            continue
        address = re.sub(r"<int:\w+>", "", address.replace("<slug:slug>", "local").replace("<str:name>", "all"))
        address = address.replace("<str:kind>", "enhancer").replace("/export/local/all", "/export/local/overrides.csv")
        assert address in known, f"{address} ({callback.__module__}) is in no table of this test"
