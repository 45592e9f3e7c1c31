"""What `up --serve` needs of the database: a target that llama-server's router reads, and where that router listens."""

from __future__ import annotations

import shutil
from collections.abc import Iterable

from django.db import transaction

from gpus_app.models import Backend, Dialect, Host
from models_app.core.launch.backends import kind_of
from models_app.models import Publishing, Router
from models_app.services.routers import router_of
from quartermaster_site.access.audit import Actor, record
from quartermaster_site.errors import Refused

SERVER = "llama-server"
_ACTOR = Actor(name="quartermaster up --serve")
_LOOPBACK = "http://127.0.0.1:"


def candidates(host: Host) -> list[str]:
    """Servers of this host that may know router mode: registered ones, the starred first, then that on the path."""
    rows: Iterable[Backend] = host.backends.order_by("-starred", "pk")
    registered = [row.path for row in rows if (kind := kind_of(row.kind)) is not None and kind.name == "llama"]
    found = shutil.which(SERVER)
    return list(dict.fromkeys([*registered, *([found] if found else [])]))


def prepare_serving(host: Host, *, path: str, url: str) -> str:
    """The presets file to serve. A host without a target gets `path`, written by itself; `url` is told to the host.

    Raises Refused where the host's file is for another router.
    """
    with transaction.atomic():
        host = Host.objects.select_for_update().get(pk=host.pk)
        if not host.publish_path:
            _take_target(host, path)
        elif host.publish_dialect != Dialect.LLAMA_SERVER:
            label = Dialect(host.publish_dialect).label
            raise Refused(
                f"the file of this host, {host.publish_path}, is for {label}: choose"
                f" {Dialect.LLAMA_SERVER.label} on the Config page to serve it."
            )
        _tell(host, url)
    return host.publish_path


def _take_target(host: Host, path: str) -> None:
    changes = {"publish_path": ["", path], "publish_dialect": [host.publish_dialect, Dialect.LLAMA_SERVER.value]}
    host.publish_path, host.publish_dialect = path, Dialect.LLAMA_SERVER
    host.save(update_fields=["publish_path", "publish_dialect"])
    Publishing.objects.get_or_create(host=host, defaults={"policy": Publishing.Policy.AUTOMATIC})
    record(_ACTOR, "host.target", subject=host, host_slug=host.slug, changes=changes)


def _tell(host: Host, url: str) -> None:
    """The address, unless a person set one on another machine."""
    row: Router = router_of(host)
    if row.url == url or (row.url and not row.url.startswith(_LOOPBACK)):
        return
    changes = {"url": [row.url, url]}
    row.url, row.key, row.version = url, "", row.version + 1
    row.save()
    record(_ACTOR, "router.settings", subject=host, host_slug=host.slug, changes=changes)
