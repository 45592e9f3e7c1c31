"""What lies beside a model on its host, from the component files that scans have stored."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from gpus_app.models import Host
from models_app import convert
from models_app.core.catalog import Header
from models_app.core.plans.engines.request import Surroundings
from models_app.core.plans.engines.surroundings import surroundings_of
from models_app.models import Component, Root

SurroundingsOf = Callable[[Callable[[str], Header | None]], Surroundings]


def nothing_known(header_of: Callable[[str], Header | None]) -> Surroundings:
    return Surroundings(header_of=header_of)


def host_surroundings(host: Host) -> SurroundingsOf:
    """The component files of a host, read once and only when a model asks for them."""

    @cache
    def stored() -> tuple[list[Component], list[Root]]:
        return list(Component.objects.filter(host=host)), list(Root.objects.filter(host=host))

    def around(header_of: Callable[[str], Header | None]) -> Surroundings:
        files, roots = stored()
        entries = [convert.core_component(file) for file in files]
        is_gone = convert.gone_on(host, files, roots)
        return surroundings_of(entries, host.os_family, header_of=header_of, is_gone=is_gone)

    return around
