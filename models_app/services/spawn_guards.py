"""Where hosts have their spawn guard: they say so with each scan."""

from __future__ import annotations

from typing import Any

from gpus_app.models import Host, OsFamily
from gpus_app.services import is_absolute
from models_app.models import SpawnGuard
from quartermaster_site.jobs import untrusted


def note_place(*, host: Host, value: Any) -> bool:
    """Keep what a host says; whether that is something else than before. A host of an older version says nothing."""
    if value is None:
        return False
    facts = untrusted.mapping(value, "the spawn guard")
    found = {name: _path(facts.get(name, ""), name, host.os_family) for name in ("program", "header_cache")}
    row = SpawnGuard.objects.filter(host=host).first() or SpawnGuard(host=host)
    if row.pk and all(getattr(row, name) == path for name, path in found.items()):
        return False
    row.program, row.header_cache = found["program"], found["header_cache"]
    row.save()
    return True


def _path(value: Any, name: str, os_family: str) -> str:
    """A path that can stand in a command; anything else counts as none."""
    path = untrusted.path(value, name)
    usable = path.isprintable() and "${" not in path and is_absolute(path, os_family)
    return path if usable and os_family != OsFamily.WINDOWS else ""
