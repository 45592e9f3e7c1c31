"""The people of an installation: making, changing, deactivating them. Administrators only, and one always remains."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.db import transaction

from quartermaster_site.access.audit import Actor, record
from quartermaster_site.access.models import Account, Role
from quartermaster_site.access.permissions import Level, require
from quartermaster_site.access.selectors import get_person
from quartermaster_site.access.throttling import forget_failures
from quartermaster_site.errors import EditConflict, Refused

MOST_PEOPLE = 1000
_LAST = "This is the last active administrator. Give somebody else the role admin first."


@dataclass(frozen=True, slots=True)
class PersonValues:
    """What an administrator sets about a person."""

    role: str
    email: str = ""
    custom_args: bool = False
    active: bool = True

    def as_shown(self) -> dict[str, Any]:
        return {"role": self.role, "email": self.email, "custom_args": self.custom_args, "active": self.active}


def values_of(person: Any) -> PersonValues:
    """What is stored about a person."""
    account: Account = person.account
    return PersonValues(account.role, person.email, account.custom_args, person.is_active)


def create_person(*, username: str, values: PersonValues, actor: Actor) -> tuple[Any, str]:
    """A new person with a password that works until they choose their own: the person and that password.

    Raises Refused with a message per field.
    """
    require(actor.user, Level.MANAGE)
    person = get_user_model()(username=username.strip(), email=values.email)
    _check(person, values)
    word = one_time_password()
    person.set_password(word)
    with transaction.atomic():
        if get_user_model().objects.count() >= MOST_PEOPLE:
            raise Refused(f"An installation has at most {MOST_PEOPLE} people.")
        person.save()
        account = Account(user=person, role=values.role, custom_args=values.custom_args, must_change_password=True)
        account.save()
        after = {"role": values.role, "email": values.email, "custom_args": values.custom_args}
        record(actor, "user.create", subject=person, changes={key: [None, value] for key, value in after.items()})
    return person, word


def change_person(*, person: Any, values: PersonValues, seen: Mapping[str, Any], actor: Actor) -> Any:
    """Set role, rights and state. `seen` is what stood on the page: whoever overtakes an unseen change is asked.

    A person who is made inactive is signed out with the next request. Raises Refused, EditConflict.
    """
    require(actor.user, Level.MANAGE)
    with transaction.atomic():
        held = _locked(person)
        before, after = values_of(held).as_shown(), values.as_shown()
        if before == after:
            return held
        if any(after[key] != before[key] != seen.get(key, before[key]) for key in after):
            raise EditConflict(
                "Somebody changed this person meanwhile. Look again, then save.", saved=before, version=0
            )
        held.email, held.is_active = values.email, values.active
        _check(held, values)
        if before["role"] == Role.ADMIN and before["active"] and not (values.role == Role.ADMIN and values.active):
            _require_another_administrator(held)
        held.save(update_fields=["email", "is_active"])
        held.account.role, held.account.custom_args = values.role, values.custom_args
        held.account.save(update_fields=["role", "custom_args"])
        changed = {key: [before[key], after[key]] for key in after if before[key] != after[key]}
        record(actor, "user.change", subject=held, changes=changed)
    return held


def reset_password(*, person: Any, actor: Actor) -> str:
    """A password for once; the open sessions of the person end, and failed sign-ins count no more."""
    require(actor.user, Level.MANAGE)
    word = one_time_password()
    with transaction.atomic():
        held = _locked(person)
        held.set_password(word)
        held.save(update_fields=["password"])
        held.account.must_change_password = True
        held.account.save(update_fields=["must_change_password"])
        record(actor, "user.password", subject=held, reason="reset by an administrator")
    forget_failures(held.get_username())
    return word


def one_time_password() -> str:
    """16 characters from 12 random bytes."""
    return secrets.token_urlsafe(12)


def _locked(person: Any) -> Any:
    """The person as stored now, with all administrators held, so that two cannot remove each other."""
    list(Account.objects.select_for_update().filter(role=Role.ADMIN).values_list("pk", flat=True))
    return get_person(person.pk)


def _require_another_administrator(person: Any) -> None:
    others = Account.objects.filter(role=Role.ADMIN, user__is_active=True).exclude(user=person)
    if not others.exists():
        raise Refused(_LAST, fields={"role": _LAST})


def _check(person: Any, values: PersonValues) -> None:
    """Raises Refused with a message per field."""
    problems: dict[str, str] = {}
    try:
        person.full_clean(exclude=["password"])
    except ValidationError as error:
        problems.update({name: " ".join(messages) for name, messages in error.message_dict.items()})
    if values.role not in Role.values:
        problems["role"] = f"One of {', '.join(Role.values)}."
    if problems:
        raise Refused("This person cannot be stored like this.", fields=problems)
