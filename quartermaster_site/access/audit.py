"""Writing the audit log. Entries are only ever added."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest

from quartermaster_site.access.models import AuditEntry
from quartermaster_site.access.redaction import redact
from quartermaster_site.http import client_address

SYSTEM = "system"


@dataclass(frozen=True, slots=True)
class Actor:
    """Who acts: a person with the request they made, a host's worker, or the system."""

    user: Any = None
    name: str = SYSTEM
    address: str = ""
    request_id: str = ""


def actor_of(request: HttpRequest) -> Actor:
    """The person behind a request."""
    user: AbstractBaseUser | AnonymousUser = request.user
    return Actor(
        user=user if user.is_authenticated else None,
        name=user.get_username() or "anonymous",
        address=client_address(request),
        request_id=getattr(request, "request_id", ""),
    )


def record(
    actor: Actor,
    action: str,
    *,
    subject: Any = None,
    label: str = "",
    host_slug: str = "",
    changes: dict[str, list[Any]] | None = None,
    result: str = AuditEntry.Result.OK,
    reason: str = "",
) -> None:
    """Add one entry; secret-looking values are masked before they are stored."""
    AuditEntry.objects.create(
        user=actor.user,
        actor=actor.name[:150],
        address=actor.address,
        request_id=actor.request_id,
        action=action,
        object_type=type(subject).__name__.lower() if subject is not None else "",
        object_id=str(subject.pk) if subject is not None else "",
        object_label=(label or (str(subject) if subject is not None else ""))[:300],
        host_slug=host_slug,
        changes=redact(changes or {}),
        result=result,
        reason=redact(reason)[:500],
    )
