"""The sessions of a person: ending one, or all but the one in use. allauth keeps the list of them."""

from __future__ import annotations

from typing import Any

from allauth.usersessions.models import UserSession

from quartermaster_site.access.audit import Actor, record
from quartermaster_site.access.permissions import Level, require
from quartermaster_site.errors import NotFound


def end_session(*, user: Any, number: int, actor: Actor) -> None:
    """End one session of `user`; of somebody else only an administrator may."""
    if actor.user is None or actor.user.pk != user.pk:
        require(actor.user, Level.MANAGE)
    session = UserSession.objects.filter(user=user, pk=number).first()
    if session is None:
        raise NotFound("There is no such session any more.")
    address = session.ip
    session.end()
    record(actor, "session.end", subject=user, reason=f"from {address}")


def end_other_sessions(*, user: Any, current_key: str, actor: Actor) -> int:
    """End all sessions of `user` but the one with this key; how many there were."""
    others = list(UserSession.objects.filter(user=user).exclude(session_key=current_key))
    for session in others:
        session.end()
    if others:
        record(actor, "session.end", subject=user, reason=f"{len(others)} others")
    return len(others)
