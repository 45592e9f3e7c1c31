"""Whose address counts: the peer's, or behind a trusted proxy the right-most of the header that is not one."""

from __future__ import annotations

import pytest
from django.http import HttpRequest

from quartermaster_site import env, http
from quartermaster_site.access.networks import client_of, parse_address, parse_network, written

PROXIES = tuple(map(parse_network, ["10.0.0.2", "10.0.1.0/24", "2001:db8:1::/64"]))
LOCAL = (parse_network("127.0.0.1"), *PROXIES)


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        ("203.0.113.9", "", "203.0.113.9"),
        ("203.0.113.9", "198.51.100.1", "203.0.113.9"),  # nobody's word counts but a proxy's
        ("203.0.113.9", "127.0.0.1", "203.0.113.9"),
        ("10.0.0.2", "", "10.0.0.2"),
        ("10.0.0.2", "198.51.100.1", "198.51.100.1"),
        ("10.0.0.2", "127.0.0.1, 198.51.100.1", "198.51.100.1"),  # what the client sent stands to the left
        ("10.0.0.2", "198.51.100.1, 10.0.1.9", "198.51.100.1"),
        ("10.0.0.2", "192.0.2.1,198.51.100.1,\t10.0.1.9 ", "198.51.100.1"),
        ("10.0.0.2", "10.0.1.7, 10.0.1.9", "10.0.1.7"),
        ("::ffff:10.0.0.2", "::ffff:198.51.100.1", "198.51.100.1"),
        ("2001:db8:1::5", "2001:db8:9::1", "2001:db8:9::1"),
        ("10.0.0.2", "198.51.100.1:4711", "198.51.100.1"),
        ("10.0.0.2", "[2001:db8::1]:4711", "2001:db8::1"),
        ("10.0.0.2", "[2001:db8::1]", "2001:db8::1"),
        ("10.0.0.2", '"[2001:db8::1]:4711"', "2001:db8::1"),
        ("10.0.0.2", "fe80::1%eth0", "fe80::1"),
        ("10.0.0.2", "[fe80::1%25eth0]:80", "fe80::1"),
        ("10.0.0.2", "198.51.100.1, ,", "198.51.100.1"),
        ("", "198.51.100.1", None),  # a Unix socket has no address that could be trusted
        ("", "", None),
    ],
)
def test_the_right_most_entry_that_is_no_proxy(peer, forwarded, client):
    assert str(client_of(peer, forwarded, PROXIES)) == str(client)


@pytest.mark.parametrize(
    "entry",
    [
        *("unknown", "_hidden", "198.51.100.1:", "198.51.100.1:80:80", "198.51.100.1:999999", "198.51.100", "0x7f.1"),
        *("[198.51.100.1]", "[2001:db8::1", "2001:db8::1]", "[]", "[2001:db8::1]x", "[2001:db8::1]:", '"', "127.1"),
        *("١٢٧.0.0.1", "127.0.0.１", "::１", "0177.0.0.1", "127.0.0.1/8", "127.0.0.1 127.0.0.1", "for=127.0.0.1"),
        *("1" * 5000, ":" * 5000, "127.0.0.1\r\nX: y", "\x00", "-1", "2130706433"),
    ],
)
def test_an_entry_that_is_no_address_is_nobody(entry):
    assert client_of("10.0.0.2", entry, PROXIES) is None
    assert client_of("10.0.0.2", f"127.0.0.1, {entry}", PROXIES) is None
    assert client_of("127.0.0.1", f"127.0.0.1, {entry}", LOCAL) is None


def test_more_hops_than_anybody_has_are_nobody():
    assert client_of("10.0.0.2", ", ".join(["198.51.100.1", *["10.0.0.2"] * 50_000]), PROXIES) is None
    assert str(client_of("10.0.0.2", ", ".join(["198.51.100.1"] * 50_000), PROXIES)) == "198.51.100.1"


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        ("10.0.0.2", "127.0.0.1", "10.0.0.2"),  # somebody on the proxy's machine, not on ours
        ("10.0.0.2", "::1", "10.0.0.2"),
        ("10.0.0.2", "::ffff:127.0.0.1", "10.0.0.2"),
        ("127.0.0.1", "127.0.0.1, 10.0.0.2", "10.0.0.2"),
        ("127.0.0.1", "127.0.0.1", "127.0.0.1"),
        ("127.0.0.1", "198.51.100.1, 127.0.0.1", "198.51.100.1"),  # two proxies here, one behind the other
        ("127.0.0.1", "", "127.0.0.1"),
    ],
)
def test_nobody_becomes_loopback_by_a_header(peer, forwarded, client):
    assert str(client_of(peer, forwarded, LOCAL)) == client


@pytest.mark.parametrize(
    ("typed", "network"),
    [
        ("192.0.2.7", "192.0.2.7"),
        (" 192.0.2.7/24 ", "192.0.2.0/24"),
        ("0.0.0.0/0", "0.0.0.0/0"),
        ("::/0", "::/0"),
        ("::ffff:1.2.3.4", "1.2.3.4"),
        ("::ffff:1.2.3.4/104", "1.0.0.0/8"),
        ("::ffff:0:0/96", "0.0.0.0/0"),
        ("2001:DB8::1", "2001:db8::1"),
        ("2001:db8::1/32", "2001:db8::/32"),
        ("fe80::1%eth0", "fe80::1"),
        ("fe80::1%eth0/64", "fe80::/64"),
    ],
)
def test_networks_are_written_one_way(typed, network):
    assert written(parse_network(typed)) == network
    assert written(parse_network(network)) == network


@pytest.mark.parametrize(
    "typed",
    [
        *("", "/", "/24", "10", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/2４", "10.0.0.0/255.0.0.0"),
        *("１0.0.0.0/8", "10.0.0.0/8/8", "example.org", "*", "10.0.0.*", "::/129", "fe80::1/64%eth0", "1.2.3.4%eth0"),
        *("10.0.0.0/0.0.0.255", "10.0.0.0/8\nx", "[::1]", "9" * 400, "10.0.0.0/+8", "\x00"),
    ],
)
def test_what_is_no_network(typed):
    with pytest.raises(ValueError, match="such as 192"):
        parse_network(typed)


def test_addresses_are_compared_as_numbers():
    assert parse_address("2001:DB8:0::1") == parse_address("2001:db8::1")
    assert parse_address("::ffff:7f00:1") == parse_address("127.0.0.1")


def test_the_variable(monkeypatch):
    assert env.trusted_proxies() == ()
    monkeypatch.setenv("QM_TRUSTED_PROXIES", "127.0.0.1, ::1 10.1.2.3/16")
    assert list(map(str, env.trusted_proxies())) == ["127.0.0.1/32", "::1/128", "10.1.0.0/16"]
    monkeypatch.setenv("QM_TRUSTED_PROXIES", "proxy.example")
    with pytest.raises(env.ConfigurationError, match="QM_TRUSTED_PROXIES: 'proxy.example'"):
        env.trusted_proxies()


def test_a_request_is_judged_by_the_setting(settings):
    request = HttpRequest()
    request.META = {"REMOTE_ADDR": "10.0.0.2", "HTTP_X_FORWARDED_FOR": "198.51.100.1"}
    assert http.client_address(request) == "10.0.0.2"
    settings.TRUSTED_PROXIES = PROXIES
    assert http.client_address(request) == "198.51.100.1"
    request.META["HTTP_X_FORWARDED_FOR"] = "nonsense"
    assert http.client_address(request) == ""
