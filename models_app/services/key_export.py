"""API keys on their way into a host's file: which of them it takes, and their secrets at the last moment."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence

from django.utils import timezone

from gpus_app.models import Host
from models_app.core.export.key_blocks import SECRET_PLACEHOLDER
from models_app.core.export.keys import (
    ExportKey,
    numbers_in,
    placeholder_of,
    reference_to,
    resolved,
    with_variables,
)
from models_app.core.export.stamp import sha256_of
from models_app.models import ApiKey, KeyPolicy, RevisionDetails
from models_app.selectors.own_keys import OwnersReach
from quartermaster_site.errors import Refused
from quartermaster_site.sealing import Unsealable, unseal

log = logging.getLogger(__name__)

Companions = Sequence[Mapping[str, str]]


def export_keys(host: Host, dialect: str = "") -> list[ExportKey]:
    """The keys that a text of this host holds now, in its own dialect or another: that of its worker first, where keys
    are required.
    """
    now, dialect = timezone.now(), dialect or host.publish_dialect
    policy = policy_of(host)
    by_name = policy.names_variables(dialect)
    rows = list(ApiKey.objects.filter(hosts=host).exclude(sealed="").order_by("-is_service", "pk"))
    reach = OwnersReach(rows)
    return [
        reach.exported(row, host, placeholder_of(row.pk, by_name=by_name))
        for row in rows
        if not row.is_over(now)
        and (policy.required or not row.is_service)
        and not policy.waits_for_variable(row, dialect)
        and not reach.problem(row, host, policy)
    ]


def policy_of(host: Host) -> KeyPolicy:
    """How a host holds keys; the defaults, not stored, before the first key."""
    return KeyPolicy.objects.filter(host=host).first() or KeyPolicy(host=host)


def keys_required(host: Host) -> bool:
    return KeyPolicy.objects.filter(host=host, required=True).exists()


def secrets_of(texts: Iterable[str]) -> dict[str, str]:
    """Placeholder -> secret for every key that these texts hold the secret of. Raises Refused, or Unsealable."""
    texts = list(texts)
    numbers = set().union(*(numbers_in(text) for text in texts))
    found = (
        dict(ApiKey.objects.filter(pk__in=numbers).exclude(sealed="").values_list("pk", "sealed")) if numbers else {}
    )
    if len(found) < len(numbers):
        raise Refused("This text holds an API key that is over: plan again, the next text is without it.")
    held = set().union(*(SECRET_PLACEHOLDER.findall(text) for text in texts))
    return {
        placeholder: unseal(sealed)
        for number, sealed in found.items()
        if (placeholder := placeholder_of(number)) in held
    }


def text_to_write(text: str) -> str:
    """The bytes that a host writes for a text. Raises Refused, or Unsealable."""
    return resolved(with_variables(text), secrets_of([text]))


def sha256_to_write(text: str) -> str:
    """Of the bytes that a host writes for a text."""
    return sha256_of(text_to_write(text))


def companions_of(details: RevisionDetails | None) -> list[dict[str, str]]:
    """Files beside a text: [{"name", "text"}], with placeholders."""
    found: list[dict[str, str]] = details.companions if details else []
    return found


def numbers_held(text: str, companions: Companions) -> list[int]:
    """The keys of a text and of the files beside it, as its revision keeps them among its inputs."""
    return sorted(numbers_in(text).union(*(numbers_in(item["text"]) for item in companions)))


def known_secrets(host: Host) -> dict[str, str]:
    """Secret -> placeholder of every key of a host that is still known: they must not be stored in clear. The names of
    their variables become placeholders as well, as they are in our own texts.
    """
    rows = ApiKey.objects.filter(hosts=host).exclude(sealed="").values_list("pk", "sealed")
    found = {_unsealed(sealed): placeholder_of(number) for number, sealed in rows}
    found.pop("", None)
    if policy_of(host).names_variables(host.publish_dialect):
        found |= {reference_to(number): placeholder_of(number, by_name=True) for number, _ in rows}
    return found


def service_secret(host: Host) -> str:
    """The key of the host's own worker, "" where it has none."""
    row = ApiKey.objects.filter(hosts=host, is_service=True, revoked_at=None).exclude(sealed="").first()
    return _unsealed(row.sealed) if row and keys_required(host) else ""


def _unsealed(sealed: str) -> str:
    """The secret, "" where it cannot be read any more: looks at a host go on without it."""
    try:
        return unseal(sealed)
    except Unsealable as error:
        log.warning("%s", error)
        return ""
