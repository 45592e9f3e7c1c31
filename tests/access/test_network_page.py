"""The Network page: rows typed and corrected, being shut out asks first, two who save, the tester, what is recorded."""

from __future__ import annotations

from html import unescape

import pytest
from django.core.cache import cache
from django.test import Client

from quartermaster_site.access import allow_list, gate
from quartermaster_site.access.audit import Actor
from quartermaster_site.access.models import AuditEntry, NetworkList
from quartermaster_site.access.networks import NetworkRule, parse_network
from quartermaster_site.errors import NotAllowed, Refused

PATH = "/access/network/"
HERE = "203.0.113.9"
WIDE = parse_network("10.0.0.0/8")


@pytest.fixture
def admin(make_user):
    cache.clear()
    gate.REFUSED.clear()
    client = Client(REMOTE_ADDR=HERE)
    client.post("/login/", {"login": make_user("admin").username, "password": "correct horse battery"})
    return client


def post(client, *rows, version=None, **more):
    """Rows are (network, who, note), each but the first may be left out."""
    data = {"version": allow_list.stored().version if version is None else version, **more}
    for number, row in enumerate(rows, 1):
        network, who, note = (*row, "everyone", "")[:3] if len(row) == 1 else (*row, "")[:3]
        data |= {f"network-{number}": network, f"who-{number}": who, f"note-{number}": note}
    return client.post(PATH, data)


def shown(answer):
    return unescape(answer.content.decode())


def rules():
    return list(map(str, allow_list.rules_of(allow_list.stored())))


def test_rows_are_stored_and_shown(admin):
    answer = post(admin, (HERE, "everyone", "me & <you>"), ("", "admin"), ("10.0.0.0/8", "everyone", "lab"))
    assert answer.status_code == 302
    assert rules() == [f"{HERE} everyone (me & <you>)", "10.0.0.0/8 everyone (lab)"]
    html = admin.get(PATH).content.decode()
    assert 'value="me &amp; &lt;you&gt;"' in html
    entry = AuditEntry.objects.get(action="network.change")
    assert entry.changes == {"added": [None, [f"{HERE} everyone (me & <you>)", "10.0.0.0/8 everyone (lab)"]]}
    assert entry.actor == "admin"


def test_saving_the_same_again_changes_nothing(admin):
    post(admin, (HERE,))
    post(admin, (HERE,))
    assert NetworkList.objects.get().version == 1
    assert AuditEntry.objects.filter(action="network.change").count() == 1


@pytest.mark.parametrize(
    ("typed", "notice"),
    [
        ("203.0.113.9/24", "203.0.113.9/24 is stored as 203.0.113.0/24"),
        ("::ffff:203.0.113.9", "::ffff:203.0.113.9 is stored as 203.0.113.9"),
        ("fe80::1%eth0", "fe80::1%eth0 is stored as fe80::1"),
        ("203.0.113.9/32", ""),
        ("2001:DB8::/32", ""),
    ],
)
def test_corrections_are_said(admin, typed, notice):
    post(admin, (HERE,), (typed, "admin"), confirm=HERE)
    html = shown(admin.get("/account/"))
    assert ("is stored as" in html) == bool(notice)
    assert notice in html


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        ([("nonsense",)], "Write an address or a network, such as 192.0.2.7"),
        ([("１０.0.0.0/8",)], "Write an address or a network"),
        ([("10.0.0.0/8\r\nSet-Cookie: x",)], "Write an address or a network"),
        ([("10.0.0.1/8",), ("10.0.0.2/8",)], "The same as row 1."),
        ([("10.0.0.0/8", "owner")], "Choose everyone or admin only."),
        ([("10.0.0.0/8", "everyone", "a\nb")], "A note is one line"),
        ([("10.0.0.0/8", "everyone", "x" * 101)], "at most 100 characters"),
        ([("9" * 5000,)], "Write an address or a network"),
    ],
)
def test_what_cannot_be_stored_stays_in_the_form(admin, rows, text):
    answer = post(admin, *rows)
    assert answer.status_code == 422
    assert text in shown(answer)
    assert rows[0][0][:20] in shown(answer)
    assert rules() == []


def test_the_same_network_may_stand_for_both(admin):
    assert post(admin, (f"{HERE}/24",), (f"{HERE}/24", "admin")).status_code == 302
    assert len(rules()) == 2


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        ([("10.0.0.0/8",)], "203.0.113.9 is not on this list: once it is stored, you are refused from there."),
        ([("::/0",)], "203.0.113.9 is not on this list"),
        ([("10.0.0.0/8", "admin")], "203.0.113.9 is in no row for admins"),
        ([(HERE,), ("10.0.0.0/8", "admin")], "203.0.113.9 is in no row for admins"),
    ],
)
def test_shutting_oneself_out_asks_first(admin, rows, text):
    for confirm in ("", "1", "10.0.0.1", "127.0.0.1"):
        answer = post(admin, *rows, confirm=confirm)
        assert answer.status_code == 422
        assert text in shown(answer)
    assert f'name="confirm" value="{HERE}"' in shown(answer)
    assert post(admin, *rows, confirm=HERE).status_code == 302
    assert text in AuditEntry.objects.get(action="network.change").reason
    assert admin.get(PATH).status_code == 403


@pytest.mark.parametrize("rows", [[(HERE,)], [("0.0.0.0/0",)], [("203.0.113.0/24", "admin")], []])
def test_a_list_with_oneself_on_it_asks_nothing(admin, rows):
    assert post(admin, *rows).status_code == 302
    assert admin.get(PATH).status_code == 200


def test_from_the_machine_itself_nobody_is_shut_out(admin):
    admin.defaults["REMOTE_ADDR"] = "127.0.0.1"
    assert post(admin, ("10.0.0.0/8",)).status_code == 302


def test_of_two_who_save_the_second_is_asked(admin):
    post(admin, (HERE, "everyone", "first"))
    was = f"{HERE} everyone (first)"
    post(admin, (HERE, "everyone", "first"), ("10.0.0.0/8", "everyone", "theirs"), version=1)
    answer = post(admin, (HERE, "everyone", "first"), ("192.0.2.0/24", "everyone", "mine"), version=1, was=was)
    html = shown(answer)
    assert answer.status_code == 409
    assert "admin saved the list" in html
    assert 'name="version" value="2"' in html
    assert 'value="192.0.2.0/24"' in html
    for text in ("10.0.0.0/8 everyone (theirs)", "192.0.2.0/24 everyone (mine)"):
        assert f'class="q-break">{text}</th>' in html
    assert f'class="q-break">{was}</th>' not in html
    assert post(admin, (HERE, "everyone", "first"), ("192.0.2.0/24", "everyone", "mine"), version=2).status_code == 302


@pytest.mark.parametrize("version", ["", "-1", "x", "9" * 40, "²"])
def test_a_version_that_is_none_is_a_conflict(admin, version):
    assert post(admin, (HERE,), version=version).status_code == 409


def test_five_hundred_rows_and_not_one_more(admin):
    many = [(f"10.{n // 250}.{n % 250}.0/24", "everyone", f"row {n}") for n in range(499)]
    assert post(admin, (HERE,), *many).status_code == 302
    answer = admin.get(PATH)
    assert answer.status_code == 200
    assert "500 rows" in shown(answer)
    answer = post(admin, (HERE,), *many, ("192.0.2.1",))
    assert answer.status_code == 422
    assert "at most 500 rows" in shown(answer)


@pytest.mark.parametrize(
    ("address", "text"),
    [
        ("10.1.2.3", "Everyone may sign in from there; admins have the rights of viewers. Rows: 10.0.0.0/8 everyone."),
        ("192.0.2.7", "Admins have all their rights there; others are refused. Rows: 192.0.2.7 admin only."),
        ("::ffff:192.0.2.7", "Admins have all their rights there"),
        (HERE, "Everyone may sign in from there, admins with all their rights."),
        ("198.51.100.1", "would not match"),
        ("2001:db8::1", "would not match"),
        ("127.0.0.1", "always passes"),
        ("::1", "always passes"),
        ("10.0.0.0/8", "Write a single address"),
        ("<script>alert(1)</script>", "Write a single address"),
        ("\x00", "Write a single address"),
    ],
)
def test_the_tester(admin, address, text):
    post(admin, ("10.0.0.0/8",), ("192.0.2.7", "admin"), (HERE,), (HERE, "admin"))
    answer = admin.get(PATH, {"address": address})
    assert answer.status_code == 200
    assert text in shown(answer)
    assert "<script>alert" not in answer.content.decode()


def test_the_page_says_where_one_is_and_what_it_does_not_protect(admin, settings):
    html = shown(admin.get(PATH))
    assert f'<span class="q-n">{HERE}</span>' in html
    assert "The other end of the connection." in html
    assert "It protects Quartermaster only" in html
    assert "no supported router enforces them" in html
    forwarded = {"X-Forwarded-For": "192.0.2.1"}
    assert "is no trusted proxy" in shown(admin.get(PATH, headers=forwarded))
    admin.defaults["REMOTE_ADDR"] = "127.0.0.1"
    assert "this list protects nothing there" in shown(admin.get(PATH, headers=forwarded))
    settings.TRUSTED_PROXIES = [parse_network("127.0.0.1")]
    html = shown(admin.get(PATH, headers=forwarded))
    assert "Told by the proxy 127.0.0.1" in html
    assert '<span class="q-n">192.0.2.1</span>' in html


def test_refusals_are_counted_to_the_last(admin):
    post(admin, (HERE,))
    for n in range(7):
        Client(REMOTE_ADDR="198.51.100.1").get(f"/{n}/")
        Client(REMOTE_ADDR=f"2001:db8::{n}").get("/")
    html = shown(admin.get(PATH))
    for address in ("198.51.100.1", "2001:db8::/64"):
        assert f'<span class="q-n q-break">{address}</span></th><td role="cell" class="r" data-l="Requests">7<' in html


def test_administrators_only(make_user):
    viewer = make_user("viewer")
    with pytest.raises(NotAllowed):
        allow_list.save_list(rules=[], version=0, here=None, confirmed=True, actor=Actor(user=viewer))


@pytest.mark.parametrize(
    "bad",
    [[NetworkRule(WIDE)] * 2, [NetworkRule(WIDE, note="a\nb")], [NetworkRule(WIDE, note=f"{n}") for n in range(501)]],
)
def test_the_service_checks_for_itself(make_user, bad):
    with pytest.raises(Refused):
        allow_list.save_list(rules=bad, version=0, here=None, confirmed=True, actor=Actor(user=make_user("admin")))
