"""Who may do what: what a role gives, what policies make of it on an object, and the decorator that views carry."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol

from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import AnonymousUser
from django.http.response import HttpResponseBase

from quartermaster_site.access.grants import ROLE_LEVELS as ROLE_LEVELS
from quartermaster_site.access.grants import grants_of, role_level
from quartermaster_site.access.models import Account
from quartermaster_site.access.rules import Level as Level
from quartermaster_site.access.rules import Scope
from quartermaster_site.errors import NotAllowed, NotFound

P = ParamSpec("P")
Person = AbstractBaseUser | AnonymousUser


_NEEDED = {
    Level.VIEW: "a sign-in",
    Level.OPERATE: "the role operator",
    Level.EDIT: "the role editor",
    Level.MANAGE: "the role admin",
}


class Scoped(Protocol):
    """Something that policies speak about: a host, a model."""

    def policy_scope(self) -> Scope: ...


def level_of(user: Person, on: Scoped | None = None) -> Level:
    """The level of a person's role, or with `on` what policies and role give them there."""
    return grants_of(user).on(on.policy_scope()) if on is not None else role_level(user)


def may(user: Person, level: Level, on: Scoped | None = None) -> bool:
    return level_of(user, on) >= level


def may_write_arguments(user: Person, on: Scoped | None = None) -> bool:
    """Custom launch arguments: admins, and editors to whom it was granted."""
    if not may(user, Level.EDIT, on):
        return False
    account: Account | None = getattr(user, "account", None)
    return may(user, Level.MANAGE) or bool(account and account.custom_args)


def require_arguments(user: Person, on: Scoped | None = None) -> None:
    """Raise NotAllowed for those who may not write custom launch arguments."""
    if not may_write_arguments(user, on):
        raise NotAllowed(
            "Custom launch arguments need the role admin, or a grant to an editor. An administrator can give it to you."
        )


def require(user: Person, level: Level, on: Scoped | None = None) -> None:
    """Raise NotAllowed with a sentence that says what is missing and who can give it.

    What is hidden from a person does not exist for them: NotFound.
    """
    verdict = grants_of(user).verdict(on.policy_scope()) if on is not None else None
    held = verdict.level if verdict else role_level(user)
    if held >= level:
        return
    if verdict and held < Level.VIEW <= role_level(user):
        raise NotFound("There is no such page, or no such object any more.")
    if verdict and verdict.winner:
        raise NotAllowed(
            f"A policy lets you {held.name.lower()} here; this needs {level.name.lower()}."
            " An administrator can change that under Policies."
        )
    raise NotAllowed(f"This needs {_NEEDED[level]}. An administrator can give it to you under Users.")


def needs(
    level: Level,
) -> Callable[[Callable[Concatenate[Any, P], HttpResponseBase]], Callable[Concatenate[Any, P], HttpResponseBase]]:
    """A view decorator: `@needs(Level.OPERATE)`."""

    def decorate(
        view: Callable[Concatenate[Any, P], HttpResponseBase],
    ) -> Callable[Concatenate[Any, P], HttpResponseBase]:
        @wraps(view)
        def checked(request: Any, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
            require(request.user, level)
            return view(request, *args, **kwargs)

        return checked

    return decorate
