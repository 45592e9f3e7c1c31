"""Sign-on at somebody else's OpenID Connect server: what is configured, and which role its groups give. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

PROVIDER = "openid_connect"
PROVIDER_ID = "sso"
RANKS = ("viewer", "operator", "editor", "admin")
EVERYBODY = "*"
MOST_GROUPS = 1000
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class SignOn:
    """One server. `roles`: group at the server -> role here; `*` is everybody who can sign in there."""

    server_url: str
    client_id: str
    secret: str = field(repr=False)
    name: str = "Single sign-on"
    claim: str = "groups"
    roles: Mapping[str, str] = field(default_factory=dict)

    def providers(self) -> dict[str, Any]:
        """For allauth's SOCIALACCOUNT_PROVIDERS."""
        app = {
            "provider_id": PROVIDER_ID,
            "name": self.name,
            "client_id": self.client_id,
            "secret": self.secret,
            "settings": {"server_url": self.server_url},
        }
        return {PROVIDER: {"OAUTH_PKCE_ENABLED": True, "APPS": [app]}}

    def role_of(self, claims: Mapping[str, Any]) -> str:
        """The highest role that the groups of somebody give; empty where they may not sign in here."""
        groups = {EVERYBODY, *groups_in(claims, self.claim)}
        given = {role for group, role in self.roles.items() if group in groups}
        return max(given, key=RANKS.index, default="")


def groups_in(claims: Mapping[str, Any], claim: str) -> list[str]:
    """The groups that a server states: a list or one text, under a name or a path such as `realm_access.roles`."""
    found: Any = claims.get(claim)
    if found is None:
        found = claims
        for part in claim.split("."):
            found = found.get(part) if isinstance(found, Mapping) else None
    if isinstance(found, str):
        return [found]
    return [item for item in found[:MOST_GROUPS] if isinstance(item, str)] if isinstance(found, list) else []


def parsed_roles(text: str) -> dict[str, str]:
    """`staff=viewer, ml team=editor`. Raises ValueError with a sentence."""
    roles = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        group, sign, role = (piece.strip() for piece in part.rpartition("="))
        if not sign or not group or role not in RANKS:
            raise ValueError(f"{part!r}: write GROUP=ROLE with one of {', '.join(RANKS)}.")
        roles[group] = role
    if not roles:
        raise ValueError("no group has a role, so nobody could sign in: write GROUP=ROLE, or *=viewer for everybody.")
    return roles


def checked_server(url: str) -> str:
    """An address that secrets may be sent to. Raises ValueError with a sentence."""
    try:
        parts = urlsplit(url)
        name = parts.hostname or ""
    except ValueError as error:
        raise ValueError(f"{url!r} is no address: {error}.") from error
    if (parts.scheme == "https" and name) or (parts.scheme == "http" and name in _LOOPBACK):
        return url.rstrip("/")
    raise ValueError(f"{url!r}: an address that starts with https:// (http:// only on this machine).")
