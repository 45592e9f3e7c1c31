"""Keys that people made for themselves: what their owners may use decides whether a file may hold them (web.md 7.2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib.auth import get_user_model
from django.db.models import Q

from gpus_app.models import Host
from models_app.core.export.keys import ExportKey
from models_app.models import ApiKey, KeyPolicy, Row, StoredPlan
from models_app.selectors.sight import Profile, sees_all
from quartermaster_site.access.grants import ROWS, grants_of
from quartermaster_site.access.permissions import Level, may
from quartermaster_site.errors import NotFound

Choices = list[tuple[str, str, list[str]]]


class OwnersReach:
    """Whether the owners of some keys may still use what these reach: two queries and one an owner, none without such
    keys.
    """

    def __init__(self, keys: Sequence[ApiKey]) -> None:
        own = [key for key in keys if key.is_own]
        people = get_user_model().objects.select_related("account")
        self._owners: dict[Any, Any] = people.in_bulk({key.owner_id for key in own if key.owner_id}) if own else {}
        files, ids = {path for key in own for path in key.files}, {name for key in own for name in key.ids}
        named = Q(row__path__in=files) | Q(profile_id__in=ids)
        wanted = ("profile_id", "row__host", "row__path", "row__served_id", "row__base_id")
        plans = StoredPlan.objects.filter(named).select_related("row").only(*wanted) if files or ids else ()
        self._plans = list(plans)
        self._whole: dict[tuple[int, int], bool] = {}

    def problem(self, key: ApiKey, host: Host, policy: KeyPolicy) -> str:
        """Why a key of somebody's own is withheld from a host; "" for one that is not, and for all other keys. It names
        no model: what it says is shown to the owner.
        """
        if not key.is_own:
            return ""
        owner = self._owners.get(key.owner_id)
        if owner is None or not owner.is_active:
            return "the account of its owner is not active"
        if not may(owner, Level.OPERATE):
            return "its owner has no role that may use keys"
        if not policy.self_service or not policy.required:
            return "people make no keys of their own for this host"
        if key.everything:
            return "" if self._uses_all(owner, host) else "its owner may not use all models of this host"
        here = [plan for plan in self._plans if plan.row.host_id == host.pk]
        named = all(may(owner, Level.OPERATE, plan.row) for plan in here if plan.row.path in key.files)
        named = named and all(_may_use(owner, plan) for plan in here if plan.profile_id in key.ids)
        return "" if named else "its owner may not use all of its models"

    def exported(self, key: ApiKey, host: Host, placeholder: str) -> ExportKey:
        """A key as the host's file needs it. Of models that a key of somebody's own names whole it reaches the entries
        that no policy keeps from its owner.
        """
        files, ids = frozenset(key.files), frozenset(key.ids)
        if key.is_own and not key.everything:
            owner = self._owners[key.owner_id]
            whole = (plan for plan in self._plans if plan.row.host_id == host.pk and plan.row.path in key.files)
            files, ids = frozenset(), ids | {plan.profile_id for plan in whole if _may_use(owner, plan)}
        return ExportKey(placeholder, key.everything, files, ids)

    def _uses_all(self, owner: Any, host: Host) -> bool:
        found = self._whole.get((owner.pk, host.pk))
        if found is None:
            found = self._whole[owner.pk, host.pk] = uses_all(owner, host)
        return found


def uses_all(user: Any, host: Host) -> bool:
    """Whether a person may use every model of a host, those to come included as far as policies tell."""
    if not sees_all(user, host) or not may(user, Level.OPERATE, host):
        return False
    grants, here = grants_of(user), Row.objects.filter(host=host)
    if grants.condition(ROWS, Level.OPERATE) is None:
        return True
    plans = StoredPlan.objects.filter(row__host=host)
    usable = grants.seen(plans, ROWS.behind("row"), Level.OPERATE)
    return grants.seen(here, ROWS, Level.OPERATE).count() == here.count() and all(
        _may_use(user, plan) for plan in usable.select_related("row")
    )


def _may_use(user: Any, plan: StoredPlan) -> bool:
    """A model and its entry both: a policy may name the entry alone."""
    return may(user, Level.OPERATE, plan.row) and may(user, Level.OPERATE, Profile(plan.row, plan.profile_id))


def own_keys(user: Any) -> list[ApiKey]:
    """Those that a person made for themselves."""
    return list(ApiKey.objects.filter(owner=user, is_own=True).select_related("owner").prefetch_related("hosts"))


def get_own_key(pk: int, user: Any) -> ApiKey:
    """NotFound for those of others, as for none."""
    key = ApiKey.objects.filter(pk=pk, owner=user, is_own=True).prefetch_related("hosts").first()
    if key is None:
        raise NotFound("There is no such key.")
    return key


def hosts_for_own_keys(user: Any) -> list[Host]:
    """The hosts for which a person makes keys of their own: that let people, and where they may use something."""
    open_hosts = Host.objects.filter(key_policy__self_service=True, key_policy__required=True)
    usable = {host for host, *_ in _usable(user)}
    return [host for host in open_hosts if host.pk in usable or uses_all(user, host)]


def own_scope_choices(user: Any) -> Choices:
    """(path, id of the base, ids of the profiles) of the models that a person may use where keys are self-service."""
    found: dict[str, tuple[str, list[str]]] = {}
    for _, path, served, profile in _usable(user):
        found.setdefault(path, (served, []))[1].append(profile)
    return [(path, served, profiles) for path, (served, profiles) in found.items()]


def _usable(user: Any) -> list[tuple[int, str, str, str]]:
    """(host, path, id of the base, id of the profile) of every entry that a person may use, of hosts that let them."""
    open_hosts = Host.objects.filter(key_policy__self_service=True, key_policy__required=True)
    plans = StoredPlan.objects.filter(skip_reason="", row__host__in=open_hosts)
    plans = grants_of(user).seen(plans, ROWS.behind("row"), Level.OPERATE).order_by("row__served_id", "id")
    wanted = ("profile_id", "row__host", "row__path", "row__served_id", "row__base_id")
    return [
        (plan.row.host_id, plan.row.path, plan.row.served_id, plan.profile_id)
        for plan in plans.select_related("row").only(*wanted)
        if _may_use(user, plan)
    ]
