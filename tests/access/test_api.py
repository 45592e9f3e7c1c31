"""The JSON API: by token, with the rights of its person, the refusals of the pages, and a description of itself."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from models_app.api import acting
from models_app.api.app import api
from models_app.models import Revision, Row
from quartermaster_site.access.audit import Actor
from quartermaster_site.access.models import ApiToken, AuditEntry
from quartermaster_site.access.tokens import create_token
from quartermaster_site.errors import Refused
from quartermaster_site.jobs.models import Job
from quartermaster_site.rate import RateLimit
from tests.access.conftest import add_model

BASE = "/api/v1"
VIEWER, OPERATOR, EDITOR, ADMIN = ROLES = ("viewer", "operator", "editor", "admin")
ENDPOINTS = {
    ("get", "/hosts/"): VIEWER,
    ("get", "/hosts/{slug}/"): VIEWER,
    ("get", "/hosts/{slug}/revisions/"): VIEWER,
    ("get", "/hosts/{slug}/revisions/{number}/"): VIEWER,
    ("get", "/models/"): VIEWER,
    ("get", "/models/{number}/"): VIEWER,
    ("get", "/models/{number}/plans/"): VIEWER,
    ("get", "/jobs/"): VIEWER,
    ("get", "/jobs/{number}/"): VIEWER,
    ("post", "/models/{number}/preview/"): VIEWER,
    ("post", "/hosts/{slug}/scan/"): OPERATOR,
    ("post", "/hosts/{slug}/plan/"): OPERATOR,
    ("post", "/hosts/{slug}/publish/"): OPERATOR,
}
"""Every endpoint with the least role; one that is not here fails the test below."""
BODIES = {"/models/{number}/preview/": {"values": {"ub": 256}}, "/hosts/{slug}/publish/": {"revision": 1}}


@pytest.fixture
def script(make_user):
    """A client with a token of a person of some role; "" is one without."""

    def call(role):
        if not role:
            return Client()
        _, secret = create_token(name="script", days=30, actor=Actor(user=make_user(role)))
        return Client(headers={"authorization": f"Bearer {secret}"})

    return call


def ask(client, method, path, installation):
    body = BODIES.get(path, {})
    number = {"/jobs/{number}/": "job", "/hosts/{slug}/revisions/{number}/": "revision"}.get(path, "model")
    address = BASE + path.format(slug="local", number=installation[number])
    return client.get(address) if method == "get" else client.post(address, body, content_type="application/json")


def test_the_url_table_of_the_api_is_whole():
    described = api.get_openapi_schema(path_prefix="")["paths"]
    assert {(method, path) for path, methods in described.items() for method in methods} == set(ENDPOINTS)


@pytest.mark.parametrize("role", ["", *ROLES])
@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=" ".join)
def test_every_endpoint_with_every_role(script, installation, endpoint, role):
    response = ask(script(role), *endpoint, installation)
    if not role:
        assert response.status_code == 401
        assert response.json()["error"]["title"] == "Sign-in needed"
    elif ROLES.index(role) < ROLES.index(ENDPOINTS[endpoint]):
        assert response.status_code == 403
        assert "role operator" in response.json()["error"]["message"]
    else:
        assert response.status_code in (200, 202), response.content
        assert "no-store" in response["Cache-Control"]


@pytest.mark.parametrize("role", [EDITOR, ADMIN])
def test_secrets_in_a_text_are_for_administrators(script, installation, role):
    Revision.objects.update(text="peers:\n  far:\n    apiKey: sk-peer-in-clear\n")
    answer = ask(script(role), "get", "/hosts/{slug}/revisions/{number}/", installation).json()
    assert ("sk-peer-in-clear" in answer["text"]) == (role == ADMIN)


@pytest.mark.parametrize("header", ["Bearer qmt-unknown", "Bearer ", "Basic YTpi", "Bearer \x00", "qmt-x"])
def test_what_is_no_token(installation, header):
    assert Client(headers={"authorization": header}).get(f"{BASE}/models/").status_code == 401


def test_a_session_is_no_token(installation, make_user, client):
    client.force_login(make_user("admin"))
    assert client.get(f"{BASE}/models/").status_code == 401
    assert client.post(f"{BASE}/hosts/local/scan/").status_code == 401


class TestTokens:
    def test_only_a_hash_is_stored(self, make_user):
        row, secret = create_token(name="x", days=0, actor=Actor(user=make_user("viewer")))
        assert secret.startswith(row.prefix)
        stored = json.dumps([*ApiToken.objects.values(), *AuditEntry.objects.values()], default=str)
        assert secret not in stored
        assert secret[-12:] not in stored

    def test_it_ends_with_its_time(self, script, installation):
        client = script(VIEWER)
        assert client.get(f"{BASE}/hosts/").status_code == 200
        ApiToken.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
        assert client.get(f"{BASE}/hosts/").status_code == 401

    @pytest.mark.parametrize("field", ["is_active", "must_change_password"])
    def test_it_is_worth_what_its_person_is(self, script, installation, field):
        client = script(VIEWER)
        person = ApiToken.objects.get().user
        if field == "is_active":
            person.is_active = False
            person.save()
        else:
            person.account.must_change_password = True
            person.account.save()
        assert client.get(f"{BASE}/hosts/").status_code == 401

    def test_its_last_use_is_kept_without_a_write_each_time(self, script, installation):
        client = script(VIEWER)
        client.get(f"{BASE}/hosts/")
        used = ApiToken.objects.get().last_used_at
        assert used is not None
        client.get(f"{BASE}/hosts/")
        assert ApiToken.objects.get().last_used_at == used

    def test_the_account_page_makes_and_revokes(self, make_user, client, host):
        make_user("admin", "ada")
        client.force_login(make_user("viewer"))
        answer = client.post("/account/tokens/", {"name": "backup", "days": "30"})
        secret = answer.context["secret"]
        assert secret in answer.content.decode()
        assert secret not in client.get("/account/").content.decode()
        script = Client(headers={"authorization": f"Bearer {secret}"})
        assert script.get(f"{BASE}/hosts/").status_code == 200
        client.post(f"/account/tokens/{ApiToken.objects.get().pk}/revoke/")
        assert script.get(f"{BASE}/hosts/").status_code == 401
        assert set(AuditEntry.objects.filter(action__startswith="token").values_list("action", flat=True)) == {
            "token.create",
            "token.revoke",
        }

    def test_nobody_revokes_those_of_others(self, make_user, client, host):
        make_user("admin", "ada")
        row, _ = create_token(name="x", days=0, actor=Actor(user=make_user("editor")))
        client.force_login(make_user("viewer"))
        assert client.post(f"/account/tokens/{row.pk}/revoke/").status_code == 404
        assert ApiToken.objects.exists()

    @pytest.mark.parametrize(
        ("name", "days"), [("", 30), ("x" * 65, 30), ("a\nb", 30), ("x", 7), ("x", -1), ("again", 30)]
    )
    def test_bad_values(self, make_user, name, days):
        actor = Actor(user=make_user("viewer"))
        create_token(name="again", days=0, actor=actor)
        with pytest.raises(Refused) as caught:
            create_token(name=name, days=days, actor=actor)
        assert caught.value.fields


class TestAnswers:
    def test_models_with_their_plans(self, script, installation):
        page = script(VIEWER).get(f"{BASE}/models/?q=model-1&host=local").json()
        assert page["total"] == 1
        [model] = page["items"]
        assert (model["host"], model["served_id"], model["quant"]) == ("local", "model-1-q4_0", "Q4_0")
        assert model["plans"][0]["verdict"] == "fits"
        assert script("editor").get(f"{BASE}/models/?q=nothing").json()["items"] == []

    def test_pages_of_models_take_a_fixed_number_of_queries(self, script, installation, host, root):
        client = script(VIEWER)

        def count(address):
            with CaptureQueriesContext(connection) as seen:
                assert client.get(f"{BASE}{address}").status_code == 200
            return len(seen)

        client.get(f"{BASE}/hosts/")
        few = count("/models/")
        for number in range(2, 30):
            add_model(host, root, number)
        assert count("/models/") == few <= 12
        page = client.get(f"{BASE}/models/?limit=10&offset=25").json()
        assert page["total"] == Row.objects.count()
        assert len(page["items"]) == page["total"] - 25

    @pytest.mark.parametrize("query", ["limit=-5&offset=-9", "limit=99999999999999&offset=99999999999999999999"])
    def test_absurd_pages(self, script, installation, query):
        assert script(VIEWER).get(f"{BASE}/models/?{query}").status_code == 200

    def test_a_preview_is_the_plan_of_the_page_and_stores_nothing(self, script, installation):
        client, path = script(VIEWER), f"{BASE}/models/{installation['model']}"
        before = client.get(f"{path}/plans/").json()
        now = before[0]
        tried = client.post(f"{path}/preview/", {"values": {"ub": 256}}, content_type="application/json").json()[0]
        assert tried["placement"]["ubatch"] == 256 != now["placement"]["ubatch"]
        assert tried["argv"][tried["argv"].index("-ub") + 1] == "256"
        assert client.get(f"{path}/plans/").json() == before

    @pytest.mark.parametrize(
        ("values", "key"),
        [({"ctx": "many"}, "ctx"), ({"ctx": 10**30}, "ctx"), ({"nonsense": 1}, "nonsense"), ({"ub": "1e309"}, "ub")],
    )
    def test_bad_values_are_named(self, script, installation, values, key):
        path = f"{BASE}/models/{installation['model']}/preview/"
        answer = script(VIEWER).post(path, {"values": values}, content_type="application/json")
        assert answer.status_code == 422
        assert key in answer.json()["error"]["fields"]

    @pytest.mark.parametrize("body", ["", "[1]", "{", '{"values": 3}', '{"values": {"ctx": {"a": 1}}}', "\x00"])
    def test_bodies_that_are_none(self, script, installation, body):
        path = f"{BASE}/models/{installation['model']}/preview/"
        assert script(VIEWER).post(path, body, content_type="application/json").status_code in (400, 422)

    def test_too_many_previews(self, script, installation, monkeypatch):
        monkeypatch.setattr(acting, "PREVIEWS", RateLimit(per_second=0.01, burst=1))
        client, path = script(VIEWER), f"{BASE}/models/{installation['model']}/preview/"
        assert client.post(path, {"values": {}}, content_type="application/json").status_code == 200
        answer = client.post(path, {"values": {}}, content_type="application/json")
        assert answer.status_code == 429
        assert int(answer["Retry-After"]) > 0

    def test_a_scan_is_a_job_that_can_be_followed(self, script, installation):
        client = script(OPERATOR)
        job = client.post(f"{BASE}/hosts/local/scan/").json()
        assert client.get(f"{BASE}/jobs/{job['id']}/").json()["kind"] == "scan"
        assert Job.objects.get(pk=job["id"]).started_by.username == "operator"
        assert AuditEntry.objects.filter(action="scan.start", actor="operator").exists()
        assert job["id"] in [item["id"] for item in client.get(f"{BASE}/jobs/?state=unfinished").json()["items"]]

    def test_publishing_refuses_what_the_page_refuses(self, script, installation):
        client, path = script(OPERATOR), f"{BASE}/hosts/local/publish/"
        moved = client.post(path, {"revision": 1, "path": "/elsewhere"}, content_type="application/json")
        assert moved.status_code == 409
        unknown = client.post(path, {"revision": 999}, content_type="application/json")
        assert unknown.status_code == 404
        assert client.post(path, {"revision": 0}, content_type="application/json").status_code == 422

    @pytest.mark.parametrize(
        "path", ["/models/0/", f"/models/{10**25}/", "/models/x/", "/jobs/999/", "/hosts/nowhere/", "/nothing/"]
    )
    def test_what_is_not_there(self, script, installation, path):
        assert script(VIEWER).get(f"{BASE}{path}").status_code in (404, 422)

    def test_the_description_is_for_people_and_names_every_endpoint(self, script, make_user):
        found = Client().get(f"{BASE}/openapi.json")
        assert (found.status_code, found.json()["error"]["title"]) == (401, "Sign-in needed")
        wrong = Client(headers={"authorization": "Bearer qmt-wrong"}).get(f"{BASE}/openapi.json")
        assert (wrong.status_code, b"paths" in wrong.content) == (401, False)
        client = Client()
        client.force_login(make_user("viewer", "somebody"))
        assert client.get(f"{BASE}/openapi.json").json()["paths"]
        found = script(VIEWER).get(f"{BASE}/openapi.json")
        assert found.status_code == 200
        assert "/api/v1/models/{number}/preview/" in found.json()["paths"]
