"""Sign-on at an OpenID Connect server that speaks the real protocol on loopback: roles, names, refusals, attacks."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest
from django.contrib.auth import get_user_model
from django.core.cache import cache
from django.test import Client

from quartermaster_site import env
from quartermaster_site.access import signing_on
from quartermaster_site.access.models import Account, AuditEntry
from quartermaster_site.access.sign_on import SignOn, groups_in, parsed_roles

LOGIN, CALLBACK = "/account/oidc/sso/login/", "/account/oidc/sso/login/callback/"
ROLES = {"qm admins": "admin", "qm": "viewer", "ml": "editor"}


class Server(BaseHTTPRequestHandler):
    """Discovery, token and userinfo. A code is the user's name; it works once, with the verifier of its challenge."""

    people: dict = {}
    challenges: dict = {}
    broken = ""

    def do_GET(self):
        base = f"http://127.0.0.1:{self.server.server_port}"
        if self.path.startswith("/.well-known/"):
            ends = {"authorization": "authorize", "token": "token", "userinfo": "userinfo"}
            answer = {f"{name}_endpoint": f"{base}/{path}" for name, path in ends.items()}
            self.say(answer | {"issuer": base, "jwks_uri": f"{base}/jwks"})
        elif self.path == "/userinfo":
            name = self.headers["Authorization"].removeprefix("Bearer token-of-")
            self.say(
                {"sub": f"id-{name}", "preferred_username": name, "email": f"{name}@example.org"} | self.people[name]
            )
        else:
            self.send_error(404)

    def do_POST(self):
        form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        code, verifier = form["code"][0], form.get("code_verifier", [""])[0]
        digest = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        known = form.get("client_secret") == ["s3cret"] or "Authorization" in self.headers
        if self.broken or not known or self.challenges.pop(code, None) != digest:
            self.send_error(400)
        else:
            self.say({"access_token": f"token-of-{code}", "token_type": "Bearer"})

    def say(self, answer):
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


@pytest.fixture(scope="module")
def address():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


@pytest.fixture(autouse=True)
def _configured(settings, address, host, make_user):
    make_user("admin", "first")
    signing_on.FAILED.clear()
    cache.clear()
    settings.SIGN_ON = SignOn(address, "quartermaster", "s3cret", name="Example ID", roles=ROLES)
    settings.SOCIALACCOUNT_PROVIDERS = settings.SIGN_ON.providers()
    Server.people, Server.challenges, Server.broken = {}, {}, ""


def begin(client, query=""):
    """As the browser: to the server, with the state that the site gave it."""
    answer = client.get(LOGIN + query)
    assert answer.status_code == 302, answer.content
    asked = parse_qs(urlsplit(answer["Location"]).query)
    assert asked["redirect_uri"] == [f"http://testserver{CALLBACK}"]
    assert asked["code_challenge_method"] == ["S256"]
    return asked["state"][0], asked["code_challenge"][0]


def sign_on(client, name, query="", **claims):
    state, challenge = begin(client, query)
    Server.people[name] = claims
    Server.challenges[name] = challenge
    return client.get(CALLBACK, {"code": name, "state": state})


def account(name):
    return Account.objects.get(user__username=name)


def test_the_sign_in_page_offers_it(client):
    page = client.get("/login/").content.decode()
    assert "Sign in with Example ID" in page
    assert f'href="{LOGIN}' in page


def test_somebody_new_comes_in_with_the_role_of_their_groups(client):
    answer = sign_on(client, "vera", "?next=/models/", groups=["qm", "ml", "other"])
    assert (answer.status_code, answer["Location"]) == (302, "/models/")
    assert account("vera").role == "editor"
    assert not account("vera").user.has_usable_password()
    assert client.get("/models/").status_code == 200
    actions = set(AuditEntry.objects.filter(actor="vera").values_list("action", flat=True))
    assert actions == {"user.create", "sign-in"}


def test_whoever_has_no_password_here_is_not_led_to_what_asks_for_one(client):
    sign_on(client, "vera", groups=["ml"])
    page = client.get("/account/").content.decode()
    assert "Example ID, which asks for further factors itself" in page
    assert "Two-factor sign-in" not in page


@pytest.mark.parametrize(
    ("said", "reason"), [("access_denied", "the server answers access_denied"), ("<b>x</b>", "unknown")]
)
def test_what_the_server_answers_instead_is_in_the_audit_log(client, said, reason):
    state, _ = begin(client)
    answer = client.get(CALLBACK, {"error": said, "state": state}, follow=True)
    assert "Back to sign-in" in answer.content.decode()
    assert AuditEntry.objects.get(result="failed").reason == f"the sign-on failed: {reason}"
    for _ in range(5):
        client.get(CALLBACK, {"error": said})
    assert AuditEntry.objects.filter(result="failed").count() == 1, "nobody fills the log with it"


def test_the_role_follows_the_groups_at_every_sign_in(client):
    sign_on(client, "vera", groups=["qm admins"])
    assert account("vera").role == "admin"
    sign_on(Client(), "vera", groups=["qm"])
    assert account("vera").role == "viewer"
    entry = AuditEntry.objects.get(action="user.change")
    assert (entry.changes, entry.reason) == ({"role": ["admin", "viewer"]}, "groups of the sign-on")
    gone = sign_on(Client(), "vera", groups=[])
    assert gone.status_code == 403
    assert b"None of your groups" in gone.content


def test_the_last_administrator_stays_one(client):
    sign_on(client, "vera", groups=["qm admins"])
    get_user_model().objects.filter(username="first").delete()
    sign_on(Client(), "vera", groups=["qm"])
    assert account("vera").role == "admin"


@pytest.mark.parametrize(
    "claims", [{}, {"groups": None}, {"groups": "other"}, {"groups": [1, {"qm": 1}]}, {"groups": {}}]
)
def test_nobody_comes_in_without_a_group(client, claims):
    answer = sign_on(client, "eve", **claims)
    assert answer.status_code == 403
    assert not get_user_model().objects.filter(username="eve").exists()
    assert client.get("/models/").status_code == 302
    assert AuditEntry.objects.filter(action="sign-in", result="refused", object_label="eve").exists()


def test_a_name_that_is_taken_is_not_taken_over(client, make_user):
    make_user("admin", "ada")
    answer = sign_on(client, "Ada", groups=["qm"])
    assert answer.status_code == 403
    assert b"account of your name here already" in answer.content
    assert get_user_model().objects.filter(username__iexact="ada").count() == 1


def test_an_address_of_somebody_else_gives_nothing(client, make_user):
    ada = make_user("admin", "ada")
    ada.email = "eve@example.org"
    ada.save()
    sign_on(client, "eve", groups=["qm"])
    assert account("eve").role == "viewer"
    assert client.get("/access/users/").status_code == 403


@pytest.mark.parametrize("name", ["", "two words", "<b>x</b>", "x" * 151])
def test_a_name_that_cannot_be_one_is_refused(client, name):
    answer = sign_on(client, "x", groups=["qm"], preferred_username=name)
    assert answer.status_code == 403
    assert b"<b>" not in answer.content


def test_one_connects_an_account_of_ones_own_and_keeps_the_role(client, make_user):
    ada = make_user("editor", "ada")
    ada.set_password("correct horse battery")
    ada.save()
    client.post("/login/", {"login": "ada", "password": "correct horse battery"})
    sign_on(client, "ada.l", "?process=connect", groups=["qm"])
    assert account("ada").role == "editor"
    other = Client()
    assert sign_on(other, "ada.l", groups=["qm admins"]).status_code == 302
    assert other.get("/account/").context["request"].user == ada
    assert account("ada").role == "admin", "from now on the groups decide"


def test_a_deactivated_person_does_not_come_in(client):
    sign_on(client, "vera", groups=["qm"])
    get_user_model().objects.filter(username="vera").update(is_active=False)
    other = Client()
    sign_on(other, "vera", groups=["qm admins"])
    assert other.get("/models/").status_code == 302


def test_a_forged_state_or_a_foreign_browser_is_refused(client):
    state, challenge = begin(client)
    Server.people["vera"], Server.challenges["vera"] = {"groups": ["qm"]}, challenge
    for browser, sent in ((client, "forged"), (Client(), state)):
        answer = browser.get(CALLBACK, {"code": "vera", "state": sent})
        assert b"vera" not in answer.content
        assert browser.get("/models/").status_code == 302


def test_a_server_that_refuses_is_a_page_and_an_entry(client):
    state, _ = begin(client)
    Server.broken = "yes"
    answer = client.get(CALLBACK, {"code": "vera", "state": state})
    assert answer.status_code == 200 or answer.status_code == 401
    assert b"Traceback" not in answer.content
    assert AuditEntry.objects.filter(action="sign-in", result="failed").exists()


def test_a_server_that_is_away_is_a_page(client, settings):
    settings.SIGN_ON = SignOn("http://127.0.0.1:9", "quartermaster", "s3cret", roles=ROLES)
    settings.SOCIALACCOUNT_PROVIDERS = settings.SIGN_ON.providers()
    answer = client.get(LOGIN)
    assert answer.status_code == 503
    assert b"does not answer" in answer.content


def test_next_leads_nowhere_else(client):
    answer = sign_on(client, "vera", "?next=https://evil.example/", groups=["qm"])
    assert answer["Location"] == "/"


def test_without_a_server_there_is_none(client, settings):
    settings.SIGN_ON, settings.SOCIALACCOUNT_PROVIDERS = None, {}
    assert client.get(LOGIN).status_code == 404
    assert "Sign in with" not in client.get("/login/").content.decode()


@pytest.mark.parametrize(
    ("claims", "claim", "found"),
    [
        ({"groups": ["a"]}, "groups", ["a"]),
        ({"groups": "a"}, "groups", ["a"]),
        ({"realm_access": {"roles": ["a"]}}, "realm_access.roles", ["a"]),
        ({"https://x/roles": ["a"]}, "https://x/roles", ["a"]),
        ({"realm_access": 3}, "realm_access.roles", []),
        ({}, "groups", []),
    ],
)
def test_where_groups_stand(claims, claim, found):
    assert groups_in(claims, claim) == found


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"QM_OIDC_SERVER": "http://id.example"}, "QM_OIDC_SERVER"),
        ({"QM_OIDC_SERVER": "id.example"}, "QM_OIDC_SERVER"),
        ({"QM_OIDC_CLIENT_ID": ""}, "QM_OIDC_CLIENT_ID"),
        ({"QM_OIDC_CLIENT_SECRET": ""}, "QM_OIDC_CLIENT_SECRET"),
        ({"QM_OIDC_ROLES": ""}, "QM_OIDC_ROLES"),
        ({"QM_OIDC_ROLES": "staff=owner"}, "QM_OIDC_ROLES"),
        ({"QM_OIDC_ROLES": "staff"}, "QM_OIDC_ROLES"),
    ],
)
def test_settings_that_cannot_be_used_are_named(monkeypatch, changed, named):
    good = {"SERVER": "https://id.example", "CLIENT_ID": "q", "CLIENT_SECRET": "s", "ROLES": "a=viewer, b=c=admin"}
    for name, value in {f"QM_OIDC_{key}": value for key, value in good.items()}.items():
        monkeypatch.setenv(name, value)
    assert env.sign_on().roles == {"a": "viewer", "b=c": "admin"}
    for name, value in changed.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(env.ConfigurationError, match=named):
        env.sign_on()


def test_everybody_of_a_server_may_have_a_role():
    server = SignOn("https://id.example", "q", "s", roles=parsed_roles("*=viewer, ml=editor"))
    assert server.role_of({}) == "viewer"
    assert server.role_of({"groups": ["ml"]}) == "editor"
