"""What lies beside a model on its host, from the component files that scans have stored."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from gpus_app.models import Host
from models_app import convert
from models_app.core.catalog import Header
from models_app.core.discovery.roots import path_key
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
        return list(Component.objects.filter(host=host)), list(Root.objects.filter(host=host, state=Root.State.OK))

    def is_gone(path: str) -> bool:
        """Only a folder that was read completely can say that a file is not there."""
        files, roots = stored()
        wanted = path_key(path, host.os_family)
        inside = any(wanted.startswith(path_key(root.path, host.os_family).rstrip("/") + "/") for root in roots)
        return inside and not any(path_key(file.path, host.os_family) == wanted for file in files)

    def around(header_of: Callable[[str], Header | None]) -> Surroundings:
        entries = [convert.core_component(file) for file in stored()[0]]
        return surroundings_of(entries, host.os_family, header_of=header_of, is_gone=is_gone)

    return around
