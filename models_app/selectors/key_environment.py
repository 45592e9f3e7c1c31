"""The variables from which a host's router takes its API keys, for the page and the file that set them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils import timezone

from gpus_app.models import Host
from models_app.core.export.dialects import BY_SLUG
from models_app.core.export.keys import reference_to, variable_of
from models_app.models import ApiKey, KeyPolicy


@dataclass(frozen=True, slots=True)
class Variable:
    """One variable of a router's environment, and the key that it holds."""

    name: str
    key: ApiKey
    is_set: bool
    """Somebody said so: what a router has in its environment cannot be seen from here."""

    @property
    def reference(self) -> str:
        """As the host's file names it."""
        return reference_to(self.key.pk)


@dataclass(frozen=True, slots=True)
class Environment:
    host: Host
    policy: KeyPolicy
    variables: Sequence[Variable]
    """Of all keys that the host's file may name, that of its worker first."""

    @property
    def is_readable(self) -> bool:
        """The host's router reads variables at all."""
        return BY_SLUG[self.host.publish_dialect].names_variables

    @property
    def is_on(self) -> bool:
        """The host's file names variables."""
        return self.policy.names_variables(self.host.publish_dialect)

    @property
    def missing(self) -> list[Variable]:
        """Those that nobody said are set."""
        return [item for item in self.variables if not item.is_set]

    @property
    def has_worker_key(self) -> bool:
        return any(item.key.is_service for item in self.variables)


def environment_of(host: Host) -> Environment:
    """One host's variables. Of a host whose file holds secrets none counts as set."""
    return environments([host])[0]


def environments(hosts: Sequence[Host]) -> list[Environment]:
    """The same for several hosts, in two queries."""
    policies = {policy.host_id: policy for policy in KeyPolicy.objects.filter(host__in=hosts)}
    now = timezone.now()
    links = ApiKey.hosts.through.objects.filter(host__in=hosts).exclude(apikey__sealed="").select_related("apikey")
    links = links.order_by("-apikey__is_service", "apikey_id")
    pairs = [(link.host_id, link.apikey) for link in links if not link.apikey.is_over(now)]
    return [
        _environment(host, policies.get(host.pk) or KeyPolicy(host=host), [key for pk, key in pairs if pk == host.pk])
        for host in hosts
    ]


def _environment(host: Host, policy: KeyPolicy, keys: Sequence[ApiKey]) -> Environment:
    """Keys that the router cannot limit are in no file of it, so they need no variable."""
    scopes = BY_SLUG[host.publish_dialect].scopes_keys
    is_on = policy.mode == KeyPolicy.Mode.ENVIRONMENT
    variables = [
        Variable(variable_of(key.pk), key, is_on and key.pk in policy.variables_set)
        for key in keys
        if key.everything or scopes
    ]
    return Environment(host, policy, variables)
