"""Whether a person sees the whole of a host: some texts can only be shown whole, or not at all (web.md 7.3)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from gpus_app.models import Host
from quartermaster_site.access.grants import grants_of
from quartermaster_site.access.permissions import Level, may, require
from quartermaster_site.access.rules import Rule
from quartermaster_site.errors import NotAllowed

H = TypeVar("H", bound=Host)

IN_PARTS = "This names models that you may not see, so it is not shown."
"""What stands in place of a text about a whole host."""


def sees_all(user: Any, host: Host) -> bool:
    """Whether nothing of a host can be hidden from a person, whatever lies on it or once lay on it.

    It asks the policies and no rows: texts may name models that are gone, and the answer must not tell which exist.
    """
    grants = grants_of(user)
    if not grants.hide_something:
        return True
    about = [rule for rule in grants.rules if rule.host in (None, host.pk)]
    return may(user, Level.VIEW, host) and not any(_hides(rule, about[:index]) for index, rule in enumerate(about))


def _hides(rule: Rule, before: Sequence[Rule]) -> bool:
    """Whether it hides models of a host that is visible itself; `before` are those that are asked earlier."""
    if rule.level >= Level.VIEW or rule.is_host_wide:
        return False
    pattern = rule.model.casefold()
    return not any(other.level >= Level.VIEW and other.model.casefold() == pattern for other in before)


def require_whole(user: Any, host: Host) -> None:
    """Raise NotAllowed for those from whom something on a host may be hidden; NotFound where all of it is."""
    require(user, Level.VIEW, host)
    if not sees_all(user, host):
        raise NotAllowed(
            "This names models that you may not see. Ask somebody who sees all of this host, or an administrator."
        )


def visible(user: Any, hosts: Iterable[H]) -> list[H]:
    """The hosts that a person may see."""
    return [host for host in hosts if may(user, Level.VIEW, host)]
