"""Levels, what a role may do by default, and the decorator that views carry."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from functools import wraps
from typing import Any, Concatenate, ParamSpec

from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import AnonymousUser
from django.http.response import HttpResponseBase

from quartermaster_site.access.models import Account, Role
from quartermaster_site.errors import NotAllowed

P = ParamSpec("P")


class Level(IntEnum):
    """How far a person may go with an object."""

    NONE = 0
    VIEW = 1
    OPERATE = 2
    EDIT = 3
    MANAGE = 4


ROLE_LEVELS = {
    Role.VIEWER: Level.VIEW,
    Role.OPERATOR: Level.OPERATE,
    Role.EDITOR: Level.EDIT,
    Role.ADMIN: Level.MANAGE,
}

_NEEDED = {
    Level.VIEW: "a sign-in",
    Level.OPERATE: "the role operator",
    Level.EDIT: "the role editor",
    Level.MANAGE: "the role admin",
}


def level_of(user: AbstractBaseUser | AnonymousUser) -> Level:
    """The level that a person's role gives. The account is read once per request."""
    if not user.is_authenticated or not user.is_active:
        return Level.NONE
    try:
        account: Account = user.account  # type: ignore[attr-defined]
    except Account.DoesNotExist:
        return Level.VIEW
    return ROLE_LEVELS[Role(account.role)]


def may(user: AbstractBaseUser | AnonymousUser, level: Level) -> bool:
    return level_of(user) >= level


def may_write_arguments(user: AbstractBaseUser | AnonymousUser) -> bool:
    """Custom launch arguments: admins, and editors to whom it was granted."""
    if not may(user, Level.EDIT):
        return False
    account: Account | None = getattr(user, "account", None)
    return may(user, Level.MANAGE) or bool(account and account.custom_args)


def require_arguments(user: AbstractBaseUser | AnonymousUser) -> None:
    """Raise NotAllowed for those who may not write custom launch arguments."""
    if not may_write_arguments(user):
        raise NotAllowed(
            "Custom launch arguments need the role admin, or a grant to an editor. An administrator can give it to you."
        )


def require(user: AbstractBaseUser | AnonymousUser, level: Level) -> None:
    """Raise NotAllowed with a sentence that says which role is missing and who can give it."""
    if not may(user, level):
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
