"""Limits of sign-in: what reaches the password hasher, who is stopped, for how long, and what is written down."""

from __future__ import annotations

import re
import time
from html import unescape

import pytest
from django.conf import settings
from django.contrib.auth.hashers import MD5PasswordHasher
from django.core.cache import cache
from django.test import Client

from quartermaster_site.access import throttling
from quartermaster_site.access.models import AuditEntry
from quartermaster_site.access.networks import parse_network
from quartermaster_site.access.services import set_password
from quartermaster_site.access.tally import Tally

PASSWORD = "correct horse battery"
ELSEWHERE = "203.0.113.9"


@pytest.fixture(autouse=True)
def _fresh_limits(db, make_user):
    cache.clear()
    throttling.THROTTLED.clear()
    make_user("admin")


@pytest.fixture
def hashed(monkeypatch):
    """Every password that was hashed."""
    seen = []
    encode = MD5PasswordHasher.encode

    def counting(self, password, salt):
        seen.append(password)
        return encode(self, password, salt)

    monkeypatch.setattr(MD5PasswordHasher, "encode", counting)
    return seen


def attempt(name="admin", password="wrong", address=ELSEWHERE, host="localhost", **headers):
    client = Client(REMOTE_ADDR=address)
    return client.post("/login/", {"login": name, "password": password}, headers={"Host": host, **headers})


def test_the_documented_limits_are_those_of_the_settings():
    from pathlib import Path

    page = (Path(__file__).parents[2] / "docs/users.md").read_text(encoding="utf-8")
    limits = ", ".join(settings.ACCOUNT_RATE_LIMITS.values()).replace(", ", ",").split(",")
    for amount, per in (limit.split("/")[:2] for limit in limits):
        minutes = int(per.removesuffix("m") or 1)
        assert f"{amount} in {minutes} minute" in page


def test_five_wrong_passwords_are_checked_and_no_more(hashed):
    answers = [attempt() for _ in range(12)]
    assert [answer.status_code for answer in answers] == [200] * 5 + [429] * 7
    assert len(hashed) == 5 * 2  # each of the two backends looks once


def test_the_page_says_how_long(hashed):
    for _ in range(5):
        attempt()
    answer = attempt(password=PASSWORD)
    assert answer.status_code == 429
    assert 240 < int(answer["Retry-After"]) <= 300
    assert "Nothing was checked. Try again in 5 minutes." in unescape(answer.content.decode())
    assert PASSWORD not in hashed


def test_the_wait_is_long_enough_and_no_longer(monkeypatch):
    for _ in range(5):
        attempt()
    wait = int(attempt()["Retry-After"])
    now = time.time()
    monkeypatch.setattr("time.time", lambda: now + wait - 2)
    assert attempt(password=PASSWORD).status_code == 429
    monkeypatch.setattr("time.time", lambda: now + wait + 1)
    assert attempt(password=PASSWORD).status_code == 302


def test_others_and_the_same_person_elsewhere_sign_in(make_user):
    make_user("viewer")
    for _ in range(20):
        attempt()
    assert attempt(password=PASSWORD, address="198.51.100.1").status_code == 302
    assert attempt(name="viewer", password=PASSWORD, address="198.51.100.1").status_code == 302
    assert attempt(name="viewer", password=PASSWORD).status_code == 429  # 10 failures a minute from an address


@pytest.mark.parametrize(
    "spelling",
    [
        lambda n: {"name": ["admin", "ADMIN", "Admin", "aDmIn"][n % 4]},
        lambda n: {"name": ["adm\u0131n", "ADMIN", " admin ", "admin\t", "Adm\u0131n"][n % 5]},
        lambda n: {"host": f"localhost:{n + 1}"},
        lambda n: {"X-Forwarded-For": f"198.51.100.{n}"},
        lambda n: {"X-Real-IP": f"198.51.100.{n}", "Forwarded": f"for=198.51.100.{n}"},
        lambda n: {"User-Agent": f"browser {n}", "HX-Request": "true"},
        lambda n: {"address": f"::ffff:{ELSEWHERE}" if n % 2 else ELSEWHERE},
        lambda n: {"address": f"2001:db8::{n:x}"},
    ],
    ids=["case", "letters", "host", "forwarded", "other headers", "browser", "mapped", "one network"],
)
def test_no_way_around(hashed, spelling):
    answers = [attempt(**spelling(n)).status_code for n in range(12)]
    assert answers == [200] * 5 + [429] * 7
    assert len(hashed) == 10


def test_a_proxy_that_is_trusted_tells_its_clients_apart(settings):
    settings.TRUSTED_PROXIES = [parse_network("10.0.0.2")]
    for n in range(8):
        attempt(address="10.0.0.2", **{"X-Forwarded-For": f"192.0.2.{n}, {ELSEWHERE}"})
    blocked = attempt(password=PASSWORD, address="10.0.0.2", **{"X-Forwarded-For": f"192.0.2.77, {ELSEWHERE}"})
    assert blocked.status_code == 429
    free = attempt(password=PASSWORD, address="10.0.0.2", **{"X-Forwarded-For": f"{ELSEWHERE}, 192.0.2.77"})
    assert free.status_code == 302


def test_many_names_from_one_address_are_stopped_by_the_address(hashed):
    answers = [attempt(name=f"name-{n}").status_code for n in range(14)]
    assert answers == [200] * 10 + [429] * 4
    assert len(hashed) == 20


@pytest.fixture
def six_anywhere(settings):
    """Fewer than the fifty of the product, to spare time."""
    settings.ACCOUNT_RATE_LIMITS = settings.ACCOUNT_RATE_LIMITS | {"sign_in_anywhere": "6/15m/key"}


def test_many_addresses_for_one_name_are_stopped_by_the_name(hashed, six_anywhere):
    answers = [attempt(address=f"192.0.2.{n}").status_code for n in range(9)]
    assert answers == [200] * 6 + [429] * 3
    assert len(hashed) == 12
    stopped = attempt(address="198.51.100.1", password=PASSWORD)
    assert 800 < int(stopped["Retry-After"]) <= 900
    assert attempt(address="198.51.100.1", name="nobody").status_code == 200


def test_one_address_cannot_lock_a_name_for_others(monkeypatch):
    """Not even one that goes on for a quarter of an hour."""
    start, checked = time.time(), 0
    for minute in (0, 3, 6, 9, 12, 14):
        monkeypatch.setattr("time.time", lambda minute=minute: start + 60 * minute)
        checked += [attempt().status_code for _ in range(6)].count(200)
    assert checked == 15
    assert attempt(password=PASSWORD, address="198.51.100.1").status_code == 302


def test_right_passwords_are_no_failures():
    assert [attempt(password=PASSWORD).status_code for _ in range(11)] == [302] * 11


def test_a_new_password_opens_the_door_everywhere(django_user_model, six_anywhere):
    for n in range(7):
        attempt(address=f"192.0.2.{n}")
    for _ in range(6):
        attempt(address="198.51.100.1")
    word = set_password(user=django_user_model.objects.get(), password=None)
    assert attempt(password=word, address="198.51.100.1").status_code == 302


def test_names_that_nobody_has_cost_the_same(hashed, make_user):
    """So that the time of an answer does not tell which names there are."""
    gone = make_user("viewer", "gone")
    gone.is_active = False
    gone.save()
    counts = {}
    for name in ("admin", "nobody", "ADMIN", "gone", "x" * 140):
        hashed.clear()
        assert attempt(name=name).status_code == 200
        counts[name] = len(hashed)
    assert set(counts.values()) == {2}, counts


def test_names_that_nobody_has_are_stopped_just_the_same():
    def shown(name, address):
        answers = [attempt(name=name, address=address) for _ in range(6)]
        return [(answer.status_code, re.sub(r'name="csrf.*?>|value="[^"]*"|x-csrf[^\']*', "", answer.content.decode()))
                for answer in answers]  # fmt: skip

    assert shown("admin", "192.0.2.1") == shown("nobody", "192.0.2.2")


def test_the_audit_log_hears_of_it_once_a_minute():
    for _ in range(30):
        attempt()
    refused = AuditEntry.objects.filter(action="sign-in", result="refused")
    assert refused.filter(reason="").count() == 5
    entry = refused.exclude(reason="").get()
    assert entry.reason.startswith("throttled")
    assert (entry.address, entry.object_label, entry.actor) == (ELSEWHERE, "admin", "anonymous")


def test_attempts_that_are_not_written_down_are_in_the_next_note():
    now = [0.0]
    tally = Tally("test", clock=lambda: now[0])
    assert [tally.count("a") for _ in range(5)] == [1, 0, 0, 0, 0]
    assert tally.count("b") == 1
    assert tally.pending() == {"a": 4}
    now[0] = 61.0
    cache.clear()
    assert tally.count("a") == 5
    assert tally.pending() == {}


def test_what_goes_on_for_hours_is_written_down_less_and_less():
    now = [0.0]
    tally = Tally("test", clock=lambda: now[0])
    notes = []
    for second in range(0, 24 * 3600, 10):
        now[0] = float(second)
        cache.clear()
        if tally.count("a"):
            notes.append(second)
    assert len(notes) < 40
    assert min(later - before for before, later in zip(notes, notes[1:], strict=False)) >= 60
    now[0] += 3 * 3600
    cache.clear()
    assert tally.count("a")


def test_of_two_processes_one_writes():
    first, second = Tally("test"), Tally("test")
    assert first.count("a") == 1
    assert second.count("a") == 0
    assert second.pending() == {"a": 1}


def test_counters_are_not_pushed_out_by_names():
    """The cache in the database holds 300 entries unless told otherwise."""
    for _ in range(5):
        attempt()
    for n in range(1000):
        cache.set(f"name-{n}", 1, 300)
    assert attempt(password=PASSWORD).status_code == 429
