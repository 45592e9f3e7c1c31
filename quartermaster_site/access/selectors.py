"""Questions about people, their sessions, what was done, and how far the installation is."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from allauth.usersessions.models import UserSession
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.db.models import Prefetch, Q, QuerySet

from quartermaster_site.access.models import Account, AuditEntry, Installation, Role
from quartermaster_site.errors import NotFound


def administrator_exists() -> bool:
    """Whether somebody active has the role admin."""
    return Account.objects.filter(role=Role.ADMIN, user__is_active=True).exists()


def setup_finished_at() -> datetime | None:
    """When the wizard was finished; None while it still runs."""
    row = Installation.objects.filter(pk=1).first()
    return row.setup_finished_at if row else None


def people() -> QuerySet[Any]:
    """Everybody with their account and groups, those who may still sign in first."""
    everybody = get_user_model().objects.select_related("account")
    return everybody.prefetch_related(Prefetch("groups", Group.objects.order_by("name"))).order_by(
        "-is_active", "username"
    )


def get_person(pk: int) -> Any:
    """One person, with an account even where an older installation made none. Raises NotFound."""
    person = get_user_model().objects.filter(pk=pk).first()
    if person is None:
        raise NotFound("There is no such person.")
    Account.objects.get_or_create(user=person)
    return people().get(pk=pk)


def open_sessions(user: Any) -> list[UserSession]:
    """Sessions in which a person is signed in, the last used first; those that ended are forgotten."""
    found: list[UserSession] = UserSession.objects.purge_and_list(user)
    return sorted(found, key=lambda session: session.last_seen_at, reverse=True)


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """What to show of the audit log; empty text means everything."""

    actor: str = ""
    action: str = ""
    object: str = ""
    host: str = ""
    text: str = ""
    since: datetime | None = None
    until: datetime | None = None


def audit_entries(wanted: AuditFilter) -> QuerySet[AuditEntry]:
    """Entries that match all parts, newest first."""
    found = AuditEntry.objects.all()
    if wanted.actor:
        found = found.filter(actor__icontains=wanted.actor)
    if wanted.action:
        # `user` finds `user.create` too: an action is a subject and, behind a dot, what was done with it.
        found = found.filter(Q(action=wanted.action) | Q(action__startswith=f"{wanted.action}."))
    if wanted.object:
        found = found.filter(object_label__icontains=wanted.object)
    if wanted.host:
        found = found.filter(host_slug=wanted.host)
    if wanted.text:
        found = found.filter(
            Q(reason__icontains=wanted.text)
            | Q(object_label__icontains=wanted.text)
            | Q(address__startswith=wanted.text)
            | Q(request_id=wanted.text)
        )
    if wanted.since:
        found = found.filter(at__gte=wanted.since)
    if wanted.until:
        found = found.filter(at__lte=wanted.until)
    return found


def audit_actions() -> list[str]:
    """Every action that was ever recorded."""
    return list(AuditEntry.objects.order_by("action").values_list("action", flat=True).distinct())
