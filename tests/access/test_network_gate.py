"""The network list at work: who is refused, who is a viewer where they are, what leaks, and what is written down."""

from __future__ import annotations

import logging

import pytest
from django.core.cache import cache
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from quartermaster_site.access import allow_list, gate
from quartermaster_site.access.audit import Actor
from quartermaster_site.access.models import AuditEntry
from quartermaster_site.access.networks import NetworkRule, parse_network
from quartermaster_site.access.permissions import Level, level_of, may_write_arguments
from quartermaster_site.access.tokens import create_token

PASSWORD = "correct horse battery"
OFFICE, DESK, ELSEWHERE = "10.1.0.9", "10.2.0.7", "203.0.113.9"
EVERYONE = NetworkRule(parse_network("10.1.0.0/16"))
ADMINS = NetworkRule(parse_network("10.2.0.7"), admins_only=True)


@pytest.fixture(autouse=True)
def admin(make_user):
    cache.clear()
    gate.REFUSED.clear()
    return make_user("admin")


@pytest.fixture
def rules(admin):
    def store(*wanted):
        allow_list.save_list(
            rules=wanted, version=allow_list.stored().version, here=None, confirmed=True, actor=Actor(user=admin)
        )

    return store


def sign_in(address, name="admin"):
    client = Client(REMOTE_ADDR=address)
    answer = client.post("/login/", {"login": name, "password": PASSWORD})
    return client, answer.status_code


GUARDED = ["/", "/login/", "/healthz", "/nowhere/", "/api/v1/models/", "/api/v1/openapi.json", "/setup/", "/account/"]


@pytest.mark.parametrize("path", GUARDED)
@pytest.mark.parametrize("headers", [{}, {"HX-Request": "true"}, {"Host": "evil.example"}])
def test_who_is_not_on_the_list_learns_nothing(rules, host, path, headers):
    rules(EVERYONE, ADMINS)
    for method in ("get", "post", "head", "options"):
        answer = getattr(Client(REMOTE_ADDR=ELSEWHERE), method)(path, headers=headers)
        assert answer.status_code == 403
        assert answer.content in (b"Forbidden\n", b"")
        assert not answer.cookies
        assert answer["Cache-Control"] == "no-store"
        assert "Content-Security-Policy" in answer


@pytest.mark.parametrize("address", ["127.0.0.1", "127.8.9.10", "::1", "::ffff:127.0.0.1"])
def test_loopback_always_passes_without_a_query(rules, host, address):
    rules(EVERYONE)
    assert sign_in(address)[1] == 302
    with CaptureQueriesContext(connection) as seen:
        assert Client(REMOTE_ADDR=address).get("/healthz").status_code == 200
    assert not [query for query in seen.captured_queries if "networklist" in query["sql"]]


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_saying_loopback_does_not_help(rules, host, settings, address):
    rules(EVERYONE)
    for headers in ({"X-Forwarded-For": address}, {"X-Real-IP": address}, {"Forwarded": f"for={address}"}):
        assert Client(REMOTE_ADDR=ELSEWHERE).get("/login/", headers=headers).status_code == 403
    settings.TRUSTED_PROXIES = [parse_network("127.0.0.1"), parse_network("10.1.0.0/16")]
    for forwarded in (f"{address}, {ELSEWHERE}", "unknown", f"{address}, nonsense", ELSEWHERE):
        for proxy in ("127.0.0.1", OFFICE):
            answer = Client(REMOTE_ADDR=proxy).get("/login/", headers={"X-Forwarded-For": forwarded})
            assert answer.status_code == 403, (proxy, forwarded)


def test_an_empty_list_lets_everybody_reach_the_sign_in_page(host):
    assert Client(REMOTE_ADDR=ELSEWHERE).get("/login/").status_code == 200
    assert sign_in(ELSEWHERE)[1] == 302
    assert Client(REMOTE_ADDR="not an address").get("/login/").status_code == 200


def test_an_address_that_is_not_known_is_on_no_list(rules, host):
    rules(NetworkRule(parse_network("0.0.0.0/0")), NetworkRule(parse_network("::/0")))
    assert Client(REMOTE_ADDR="").get("/login/").status_code == 403
    assert Client(REMOTE_ADDR=ELSEWHERE).get("/login/").status_code == 200
    assert Client(REMOTE_ADDR="2001:db8::1").get("/login/").status_code == 200


@pytest.mark.parametrize(
    ("row", "address", "status"),
    [
        ("0.0.0.0/0", "2001:db8::1", 403),
        ("::/0", "203.0.113.9", 403),
        ("::/0", "::ffff:203.0.113.9", 403),
        ("::ffff:203.0.113.9", "203.0.113.9", 200),
        ("203.0.113.9", "::ffff:203.0.113.9", 200),
        ("fe80::1%eth0", "fe80::1%eth1", 200),
        ("2001:db8::/32", "2001:DB8:0:0::1", 200),
        ("203.0.113.8/31", "203.0.113.10", 403),
    ],
)
def test_families_and_spellings(rules, host, row, address, status):
    rules(NetworkRule(parse_network(row)))
    assert Client(REMOTE_ADDR=address).get("/login/").status_code == status


class TestAdministratorsElsewhere:
    def test_have_the_rights_of_viewers_and_are_told(self, rules, host):
        rules(ADMINS)
        client, status = sign_in(ELSEWHERE)
        assert status == 302
        page = client.get("/account/").content.decode()
        assert f"{ELSEWHERE} is no address of admins" in page
        assert "viewer" in page
        assert "/access/users/" not in page
        assert client.get("/access/users/").status_code == 403
        assert client.post("/hosts/local/scan/").status_code == 403
        assert AuditEntry.objects.get(action="sign-in").reason.startswith("with the rights of a viewer")
        at_desk, _ = sign_in(DESK)
        assert at_desk.get("/access/users/").status_code == 200
        assert "is no address of admins" not in at_desk.get("/account/").content.decode()

    def test_a_session_keeps_what_its_sign_in_gave(self, rules, host):
        rules(EVERYONE, ADMINS)
        client, _ = sign_in(OFFICE)
        assert client.get("/access/users/").status_code == 403
        client.defaults["REMOTE_ADDR"] = DESK
        assert client.get("/access/users/").status_code == 403
        again, _ = sign_in(DESK)
        assert again.get("/access/users/").status_code == 200
        again.defaults["REMOTE_ADDR"] = OFFICE
        assert again.get("/access/users/").status_code == 403

    def test_a_session_of_before_the_list_counts_where_it_was_opened(self, rules, host):
        client, _ = sign_in(ELSEWHERE)
        assert client.get("/access/users/").status_code == 200
        rules(ADMINS)
        assert client.get("/access/users/").status_code == 403
        rules(EVERYONE, ADMINS)
        assert client.get("/login/").status_code == 403
        rules()
        assert client.get("/access/users/").status_code == 200

    def test_a_network_may_be_for_everyone_and_for_admins(self, rules, host):
        rules(EVERYONE, NetworkRule(EVERYONE.network, admins_only=True))
        client, _ = sign_in(OFFICE)
        assert client.get("/access/users/").status_code == 200

    def test_nothing_changes_for_other_roles(self, rules, host, make_user):
        rules(EVERYONE, ADMINS)
        make_user("operator")
        client, status = sign_in(OFFICE, "operator")
        assert status == 302
        assert "is no address of admins" not in client.get("/account/").content.decode()

    def test_others_may_not_use_rows_of_admins(self, rules, host, make_user):
        rules(EVERYONE, ADMINS)
        make_user("editor")
        client, status = sign_in(DESK, "editor")
        assert status == 302
        for path in ("/", "/models/", "/account/"):
            answer = client.get(path)
            assert (answer.status_code, answer.content) == (403, b"Forbidden\n")
        assert AuditEntry.objects.get(action="network.refused").actor == "editor"
        assert client.post("/logout/").status_code == 302
        assert client.get("/login/").status_code == 200

    def test_the_mark_is_all_that_counts(self, admin):
        admin.account.custom_args = True
        admin.restricted_to_viewer = True
        assert level_of(admin) is Level.VIEW
        assert not may_write_arguments(admin)


class TestTokens:
    @pytest.fixture
    def script(self, make_user, admin):
        def make(role, address):
            person = admin if role == "admin" else make_user(role)
            _, secret = create_token(name=f"from {address}", days=30, actor=Actor(user=person))
            return Client(REMOTE_ADDR=address, headers={"authorization": f"Bearer {secret}"})

        return make

    def test_of_an_admin_from_elsewhere_it_is_a_viewers(self, rules, host, script):
        rules(ADMINS)
        client = script("admin", ELSEWHERE)
        assert client.get("/api/v1/hosts/").status_code == 200
        answer = client.post("/api/v1/hosts/local/scan/")
        assert answer.status_code == 403
        assert answer.json()["error"]["title"] == "Not allowed"
        client.defaults["REMOTE_ADDR"] = DESK
        assert client.post("/api/v1/hosts/local/scan/").status_code == 422  # allowed, but there is no folder yet

    def test_of_others_it_works_where_they_may_be(self, rules, host, script):
        rules(EVERYONE, ADMINS)
        assert script("operator", OFFICE).get("/api/v1/hosts/").status_code == 200
        assert script("viewer", DESK).get("/api/v1/hosts/").status_code == 403
        assert script("editor", ELSEWHERE).get("/api/v1/hosts/").content == b"Forbidden\n"


class TestWhatIsWrittenDown:
    def test_once_a_minute_with_the_number(self, rules, host, caplog, monkeypatch):
        rules(EVERYONE)
        now = [1000.0]
        monkeypatch.setattr(gate.REFUSED, "_clock", lambda: now[0])
        with caplog.at_level(logging.INFO):
            for _ in range(30):
                Client(REMOTE_ADDR=ELSEWHERE).get("/login/?password=hidden")
        entry = AuditEntry.objects.get(action="network.refused")
        assert (entry.address, entry.result, entry.changes) == (ELSEWHERE, "refused", {"requests": [None, 1]})
        assert "hidden" not in entry.reason
        assert len([line for line in caplog.records if ELSEWHERE in line.getMessage()]) == 1
        assert len(caplog.records) == 1
        now[0] += 61
        cache.clear()
        Client(REMOTE_ADDR=ELSEWHERE).get("/login/")
        assert AuditEntry.objects.filter(action="network.refused").first().changes == {"requests": [None, 30]}

    def test_lines_stay_lines(self, rules, host, caplog):
        rules(EVERYONE)
        Client(REMOTE_ADDR=ELSEWHERE).get("/x%0aERROR forged%1b[31m/" + "y" * 5000)
        [line] = [record.getMessage() for record in caplog.records]
        assert line.isprintable()
        assert len(line) < 400

    def test_a_full_disk_lets_nobody_in(self, rules, host, monkeypatch):
        from django.db import OperationalError

        rules(EVERYONE)

        def full(*args, **kwargs):
            raise OperationalError("disk is full")

        monkeypatch.setattr(gate, "record", full)
        assert Client(REMOTE_ADDR=ELSEWHERE).get("/login/").status_code == 403


def test_a_list_that_cannot_be_read_lets_nobody_in(rules, host, monkeypatch):
    from django.db import OperationalError

    rules(EVERYONE)

    def locked():
        raise OperationalError("database is locked")

    monkeypatch.setattr(gate, "current", locked)
    client = Client(REMOTE_ADDR=OFFICE, raise_request_exception=False)
    assert client.get("/login/").status_code == 503


def test_five_hundred_rows_take_one_query_and_no_time(rules, host):
    rules(*(NetworkRule(parse_network(f"10.{n // 250}.{n % 250}.0/24")) for n in range(500)))
    Client(REMOTE_ADDR=OFFICE).get("/healthz")
    with CaptureQueriesContext(connection) as seen:
        assert Client(REMOTE_ADDR=OFFICE).get("/healthz").status_code == 200
    assert len([query for query in seen.captured_queries if "networklist" in query["sql"]]) == 1
    assert Client(REMOTE_ADDR=ELSEWHERE).get("/healthz").status_code == 403


def test_the_command_lets_everybody_in_again(rules, host, capsys):
    rules(EVERYONE, ADMINS)
    assert Client(REMOTE_ADDR=ELSEWHERE).get("/login/").status_code == 403
    call_command("clear_network_list")
    assert "10.1.0.0/16 everyone\n10.2.0.7 admin only\n2 rows are gone" in capsys.readouterr().out
    assert Client(REMOTE_ADDR=ELSEWHERE).get("/login/").status_code == 200
    entry = AuditEntry.objects.get(action="network.clear")
    assert (entry.actor, entry.changes["removed"][0]) == ("system", ["10.1.0.0/16 everyone", "10.2.0.7 admin only"])
    call_command("clear_network_list")
    assert "empty already" in capsys.readouterr().out
