"""Addresses of clients and the networks that they lie in (web.md 9). Pure: no request, no database, no clock."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_MOST_CHARACTERS = 100
_MOST_HOPS = 20
_PORT = re.compile(r":[0-9]{1,5}", re.ASCII)
_MAPPED = IPv6Network("::ffff:0:0/96")
_EXAMPLES = "Write an address or a network, such as 192.0.2.7, 10.1.0.0/16 or 2001:db8::/32."


def parse_address(text: str) -> Address | None:
    """An address without its zone, IPv4 where it is mapped into IPv6; None where the text is none."""
    if ":" in text:
        text = text.partition("%")[0]
    if len(text) > _MOST_CHARACTERS:
        return None
    try:
        found = ip_address(text)
    except ValueError:
        return None
    return (isinstance(found, IPv6Address) and found.ipv4_mapped) or found


def parse_network(text: str) -> Network:
    """A network, or an address as the network of it alone. Host bits and zones are dropped, mapped IPv4 is IPv4.

    Raises ValueError with a sentence.
    """
    host, slash, length = text.strip().partition("/")
    if ":" in host:
        host = host.partition("%")[0]
    # A mask such as 255.255.0.0 is refused: 0.0.255.255 would be read as one too.
    if len(text) > _MOST_CHARACTERS or (slash and not (length.isascii() and length.isdigit())):
        raise ValueError(_EXAMPLES)
    try:
        found = ip_network(f"{host}{slash}{length}", strict=False)
    except ValueError:
        raise ValueError(_EXAMPLES) from None
    if isinstance(found, IPv6Network) and found.subnet_of(_MAPPED):
        return IPv4Network((int(found.network_address) & 0xFFFFFFFF, found.prefixlen - 96))
    return found


def written(network: Network) -> str:
    """As people write it: an address of its own without a length."""
    return str(network.network_address) if network.prefixlen == network.max_prefixlen else str(network)


def client_of(peer: str, forwarded: str, trusted: Sequence[Network]) -> Address | None:
    """Who asks: the peer of the socket or, where that is a trusted proxy, the right-most entry that is not.

    `forwarded` is X-Forwarded-For, several headers joined by commas. None where it cannot be told. Loopback in the
    header is this machine only where everything to the right of it is, else the machine that reported it.
    """
    here = parse_address(peer)
    if here is None or not lies_in(here, trusted):
        return here
    for text in reversed(forwarded.rsplit(",", _MOST_HOPS)):
        if not text.strip():
            continue
        entry = _entry(text.strip())
        if entry is None:
            return None
        if not entry.is_loopback or here.is_loopback:
            here = entry
        if not lies_in(entry, trusted):
            break
    return here


def group_of(address: Address | None) -> str:
    """What limits count together: an IPv4 address, the /64 that one client of IPv6 has, or whatever is unknown."""
    if isinstance(address, IPv6Address):
        return str(IPv6Network((int(address) >> 64 << 64, 64)))
    return str(address or "unknown")


def lies_in(address: Address, networks: Iterable[Network]) -> bool:
    return any(address in network for network in networks)


def _entry(text: str) -> Address | None:
    """One entry of a forwarded header: with or without quotes, brackets and a port."""
    if len(text) > 1 and text[0] == text[-1] == '"':
        text = text[1:-1]
    if text.startswith("["):
        text, bracket, port = text[1:].partition("]")
        whole = bool(bracket) and ":" in text
    else:
        colon = text.find(":") if text.count(":") == 1 else len(text)
        text, port, whole = text[:colon], text[colon:], True
    return parse_address(text) if whole and (not port or _PORT.fullmatch(port)) else None


class Standing(Enum):
    """What an address gives."""

    FULL = "full"
    AS_VIEWER = "viewer"
    """Everybody may sign in; administrators have the rights of viewers."""
    ADMINS = "administrators"
    """Administrators alone may do more than sign in."""
    NONE = "none"


@dataclass(frozen=True, slots=True)
class NetworkRule:
    """One row of the list: who may come from there."""

    network: Network
    admins_only: bool = False
    note: str = ""

    def __str__(self) -> str:
        who = "admin only" if self.admins_only else "everyone"
        return f"{written(self.network)} {who}{f' ({self.note})' if self.note else ''}"


@dataclass(frozen=True)
class AllowList:
    """All rows. Without any, every address has full standing; without one for everyone, each may sign in."""

    rules: tuple[NetworkRule, ...] = ()

    @cached_property
    def everyone(self) -> tuple[Network, ...]:
        return tuple(rule.network for rule in self.rules if not rule.admins_only)

    @cached_property
    def administrators(self) -> tuple[Network, ...]:
        return tuple(rule.network for rule in self.rules if rule.admins_only)

    def standing(self, address: Address | None) -> Standing:
        """`address` is None where it is not known: then it lies in no network."""
        if not self.rules or (address is not None and address.is_loopback):
            return Standing.FULL
        for_admins = address is not None and lies_in(address, self.administrators)
        if self.everyone and not (address is not None and lies_in(address, self.everyone)):
            return Standing.ADMINS if for_admins else Standing.NONE
        return Standing.FULL if for_admins or not self.administrators else Standing.AS_VIEWER

    def matching(self, address: Address) -> list[NetworkRule]:
        return [rule for rule in self.rules if address in rule.network]
