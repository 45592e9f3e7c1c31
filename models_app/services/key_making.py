"""What a key is made of: the values that people give, its secret and its digest."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Any

from django.utils import timezone

from gpus_app.models import Host
from models_app.key_rows import PREFIX_CHARACTERS
from models_app.models import ApiKey
from quartermaster_site.sealing import seal


@dataclass(frozen=True, slots=True)
class KeyValues:
    """What a person says of a key. Without `everything`, `files` and `ids` name what it reaches."""

    name: str
    hosts: Sequence[Host]
    everything: bool
    files: Sequence[str] = ()
    ids: Sequence[str] = ()
    expires_at: datetime | None = None
    note: str = ""


def digest_of(secret: str) -> str:
    """By which a secret is known where it turns up."""
    return sha256(secret.encode()).hexdigest()


def new_key(
    values: KeyValues, *, owner: Any = None, form_token: str = "", secret: str = "", is_own: bool = False
) -> tuple[ApiKey, str]:
    """A stored key of these values, and its secret: a new one where none is given."""
    secret = secret or f"qm-{secrets.token_hex(24)}"
    key = ApiKey(
        prefix=secret[:PREFIX_CHARACTERS],
        sealed=seal(secret),
        digest=digest_of(secret),
        owner=owner,
        is_own=is_own,
        form_token=form_token,
    )
    fill(key, values)
    key.save()
    key.hosts.set(values.hosts)
    return key, secret


def fill(key: ApiKey, values: KeyValues) -> None:
    """Put values into a key that is not saved here."""
    key.name, key.everything, key.expires_at, key.note = values.name, values.everything, values.expires_at, values.note
    key.files, key.ids = ([], []) if values.everything else (sorted(set(values.files)), sorted(set(values.ids)))
    if key.expires_at is not None and key.expires_at > timezone.now():
        key.expiry_noted = False
