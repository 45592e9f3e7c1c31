"""API keys as pages show them: what each reaches, and whether it is good on each host."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from models_app.models import ApiKey
from models_app.selectors.api_keys import KeyLine, KeyPlace, Place
from quartermaster_site.figures import counted

PLACES = {
    Place.LIVE: ("ok", "live", "ok"),
    Place.PENDING: ("act", "pending", "wait"),
    Place.WITHHELD: ("warn", "withheld", "warn"),
    Place.LEAVING: ("bad", "still valid", "bad"),
    Place.GONE: ("", "gone", "dash"),
}
"""Place -> tone, word, icon."""
MOST_NAMED = 3


@dataclass(frozen=True, slots=True)
class PlaceView:
    host: str
    tone: str
    word: str
    shape: str
    reason: str


@dataclass(frozen=True, slots=True)
class KeyView:
    pk: int
    name: str
    prefix: str
    note: str
    owner: str
    is_own: bool
    reach: str
    reach_details: str
    unserved: str
    expires: str
    is_over: bool
    over_word: str
    places: tuple[PlaceView, ...]


def key_views(lines: Sequence[KeyLine]) -> list[KeyView]:
    return [key_view(line) for line in lines]


def key_view(line: KeyLine) -> KeyView:
    key = line.key
    return KeyView(
        pk=key.pk,
        name=key.name,
        prefix=f"{key.prefix}…",
        note=key.note,
        owner=key.owner.get_username() if key.owner else "",
        is_own=key.is_own,
        reach="all models" if key.everything else counted(len(key.files) + len(key.ids), "choice"),
        reach_details=_names([*(path.rpartition("/")[2] for path in key.files), *key.ids]),
        unserved=f"not served now: {_names(list(line.unserved))}" if line.unserved else "",
        expires=_expires(key),
        is_over=line.is_over,
        over_word="" if not line.is_over else "revoked" if key.revoked_at else "ended",
        places=tuple(_place(place) for place in line.places),
    )


def _names(names: Sequence[str]) -> str:
    shown = ", ".join(names[:MOST_NAMED])
    return f"{shown} and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else shown


def _expires(key: ApiKey) -> str:
    return f"{key.expires_at:%Y-%m-%d %H:%M}" if key.expires_at else "never"


def _place(place: KeyPlace) -> PlaceView:
    tone, word, shape = PLACES[place.state]
    return PlaceView(place.host.name, tone, word, shape, place.reason)
