"""What the Network page says: about the address of whoever looks at it, about any address, and who was refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.http import HttpRequest

from quartermaster_site.access.gate import ACTION, REFUSED, UNKNOWN
from quartermaster_site.access.models import AuditEntry
from quartermaster_site.access.networks import (
    Address,
    AllowList,
    NetworkRule,
    Standing,
    group_of,
    lies_in,
    parse_address,
    written,
)
from quartermaster_site.http import client_of_request

_SPAN = timedelta(days=1)
_MOST_ENTRIES = 2000
_MOST_SHOWN = 20

WORDS = {
    Standing.FULL: ("ok", "would match", "Everyone may sign in from there, admins with all their rights."),
    Standing.AS_VIEWER: ("warn", "would match", "Everyone may sign in from there; admins have the rights of viewers."),
    Standing.ADMINS: ("warn", "would match for admins", "Admins have all their rights there; others are refused."),
    Standing.NONE: ("bad", "would not match", "Whoever asks from there is refused."),
}
"""Standing -> tone, word, sentence."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an address gives. `rules` are the rows that it lies in."""

    address: str
    tone: str
    word: str
    text: str
    rules: Sequence[NetworkRule] = ()


def verdict(allowed: AllowList, address: Address) -> Verdict:
    if address.is_loopback:
        return Verdict(str(address), "ok", "passes", "The machine that Quartermaster runs on always passes.")
    if not allowed.rules:
        return Verdict(str(address), "ok", "passes", "The list is empty: every address does.")
    return Verdict(str(address), *WORDS[allowed.standing(address)], allowed.matching(address))


def tested(allowed: AllowList, typed: str) -> Verdict | None:
    """The verdict on an address that somebody typed; None where nothing was."""
    typed = typed.strip()[:100]
    if not typed:
        return None
    address = parse_address(typed)
    if address is None:
        return Verdict(typed, "bad", "no address", "Write a single address, such as 192.0.2.7 or 2001:db8::1.")
    return verdict(allowed, address)


@dataclass(frozen=True, slots=True)
class Here:
    """Where a request comes from, and how that is known."""

    address: str
    source: str
    warning: str = ""


def here_of(request: HttpRequest) -> Here:
    peer, address = parse_address(request.META.get("REMOTE_ADDR", "")), client_of_request(request)
    forwarded = "HTTP_X_FORWARDED_FOR" in request.META
    if address is None:
        return Here(UNKNOWN, "Neither the connection nor X-Forwarded-For gives an address.")
    if address != peer:
        return Here(str(address), f"Told by the proxy {peer} in X-Forwarded-For.")
    trusted = peer is not None and lies_in(peer, settings.TRUSTED_PROXIES)
    source = "The other end of the connection."
    if not forwarded or trusted:
        return Here(str(address), source)
    loopback = " Loopback always passes: this list protects nothing there." if address.is_loopback else ""
    return Here(
        str(address),
        source,
        f"Something at {address} sends X-Forwarded-For and is no trusted proxy, so all its clients count as {address}."
        f"{loopback} If it is your proxy, name it in QM_TRUSTED_PROXIES.",
    )


def trusted_proxies() -> list[str]:
    return [written(network) for network in settings.TRUSTED_PROXIES]


@dataclass(frozen=True, slots=True)
class Refusal:
    """An address, or a /64 of IPv6, that was refused; how often, and when that was noted last."""

    address: str
    requests: int
    last: datetime | None


def refusals(now: datetime) -> list[Refusal]:
    """Of the last 24 hours, the newest first: what the audit log holds, and what this process did not note yet."""
    found: dict[str, Refusal] = {}
    entries = AuditEntry.objects.filter(action=ACTION, at__gte=now - _SPAN).values_list("address", "changes", "at")
    for address, changes, at in entries[:_MOST_ENTRIES]:
        group = group_of(parse_address(address))
        before = found.get(group) or Refusal(group, 0, at)
        found[group] = Refusal(group, before.requests + changes["requests"][1], before.last)
    for group, number in REFUSED.pending().items():
        before = found.get(group) or Refusal(group, 0, None)
        found[group] = Refusal(group, before.requests + number, before.last)
    return list(found.values())[:_MOST_SHOWN]


@dataclass(frozen=True, slots=True)
class Difference:
    """A row that is not in all three lists."""

    text: str
    yours: bool
    saved: bool
    original: bool


def differences(yours: Sequence[str], saved: Sequence[str], original: Sequence[str]) -> list[Difference]:
    """The rows in which two people differ, or one of them from what both began with."""
    lists = (yours, saved, original)
    every = dict.fromkeys(text for items in lists for text in items)
    places = ((text, [text in items for items in lists]) for text in every)
    return [Difference(text, *there) for text, there in places if not all(there)]
