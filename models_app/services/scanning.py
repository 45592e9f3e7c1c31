"""Roots, and asking a host to look at them."""

from __future__ import annotations

import ntpath
import posixpath
from collections.abc import Sequence
from typing import Any

from django.db import transaction
from django.db.models import Q

from gpus_app.models import Host, OsFamily
from gpus_app.services import is_absolute, request_plan
from models_app import convert
from models_app.browsing import scan_roots
from models_app.core.discovery.hostile_names import unsafe_reason
from models_app.core.discovery.roots import is_category, path_key
from models_app.models import Finding, HeaderFacts, Root, Row
from models_app.services.component_results import forget_components
from models_app.services.listings import doubt_listing, stored_listing
from quartermaster_site import env
from quartermaster_site.access.audit import Actor, record
from quartermaster_site.access.permissions import Level, require
from quartermaster_site.errors import Refused
from quartermaster_site.jobs.services import Started, start_job

MAX_KNOWN = 20_000
"""Above this many files the list of known headers is left out of the task: they are sent again instead."""


def add_root(*, host: Host, path: str, category: str = "", actor: Actor) -> Root:
    """A folder to scan. It need not exist now: it may be a drive that is unplugged. Twice the same is once."""
    require(actor.user, Level.MANAGE)
    root = register_root(host=host, path=path, category=category, actor=actor)
    if root.category != category:
        problem = "This folder is there already, for models of another kind: remove it first to change that."
        raise Refused(problem, fields={"path": problem})
    return root


def register_root(*, host: Host, path: str, category: str = "", actor: Actor) -> Root:
    """The same for the command line, which has no user. An existing root is returned as it is."""
    path = _normal(path.strip(), host.os_family)
    with transaction.atomic():
        # Of two nested folders that are added at once, the second must see the first.
        Host.objects.select_for_update().get(pk=host.pk)
        check_root(host, path, category)
        root, created = Root.objects.get_or_create(host=host, path=path, defaults={"category": category})
        if created:
            record(actor, "root.add", subject=root, host_slug=host.slug, changes={"path": [None, path]})
    return root


def is_outside(host: Host, path: str) -> bool:
    """Whether the host beside the server will not look into this folder, as far as that can be told without its disk.

    What other machines permit is theirs to say: the state of the folder tells it after the next look.
    """
    permitted = scan_roots()
    if not permitted or host.worker_protocol or host.slug != env.host_slug():
        return False
    path, tops = _normal(path, host.os_family), (_normal(top, host.os_family).rstrip("/\\") for top in permitted)
    return not any(path == top or path.startswith((f"{top}/", f"{top}\\")) for top in tops)


def _normal(path: str, os_family: str) -> str:
    module = ntpath if os_family == OsFamily.WINDOWS else posixpath
    return module.normpath(path) if path else ""


def check_root(host: Host, path: str, category: str) -> None:
    """Raises Refused for a folder that cannot be scanned, or lies inside another one that is."""
    problem = ""
    if not path or not is_absolute(path, host.os_family):
        problem = "Write the whole path of the folder, from the root on."
    elif len(path) > 1024 or unsafe_reason(path):
        problem = f"This path cannot be used: {unsafe_reason(path) or 'it is too long'}."
    else:
        problem = _nesting(host, path)
    if problem:
        raise Refused(problem, fields={"path": problem})
    if category and not is_category(category):
        raise Refused("There is no such category.", fields={"category": "There is no such category."})


def _nesting(host: Host, path: str) -> str:
    mine = path_key(path, host.os_family).replace("\\", "/").rstrip("/") + "/"
    for other in host.roots.exclude(path=path):
        theirs = path_key(other.path, host.os_family).replace("\\", "/").rstrip("/") + "/"
        if mine.startswith(theirs):
            return f"This folder lies inside {other.path}, which is scanned already."
        if theirs.startswith(mine):
            return f"{other.path} lies inside this folder: remove that root first."
    return ""


def remove_root(*, root: Root, actor: Actor) -> int:
    """Stop scanning a folder, forget what was found in it, plan without it; returns the number of models.

    Overrides stay.
    """
    require(actor.user, Level.MANAGE)
    with transaction.atomic():
        if not Root.objects.select_for_update().filter(pk=root.pk).exists():
            return 0
        count = root.rows.count()
        changes: dict[str, list[Any]] = {"path": [root.path, None], "models": [count, 0]}
        record(actor, "root.remove", subject=root, host_slug=root.host.slug, changes=changes)
        doubt_listing(root.host)
        root.rows.all().delete()
        below = root.path.rstrip("/\\")
        inside = Q(path=root.path) | Q(path__startswith=f"{below}/") | Q(path__startswith=f"{below}\\")
        Finding.objects.filter(inside, host=root.host).delete()
        forget_components(root)
        root.delete()
        request_plan(host=root.host, actor=actor)
    return count


def forget_row(*, row: Row, actor: Actor) -> None:
    """Forget a model whose files are gone or out of reach. Its overrides stay, as they do for a removed folder."""
    require(actor.user, Level.EDIT, row)
    with transaction.atomic():
        held = Row.objects.select_for_update().select_related("host").get(pk=row.pk)
        if held.state not in (Row.State.MISSING, Row.State.OFFLINE):
            raise Refused("This model is on disk: the next scan would only find it again.")
        record(actor, "model.forget", subject=held, host_slug=held.host.slug, changes={"path": [held.path, None]})
        HeaderFacts.objects.filter(host=held.host, path=held.path).delete()
        held.delete()


def start_scan(
    *, host: Host, actor: Actor, fresh: Sequence[str] = (), label: str = "", on: Row | None = None
) -> Started:
    """Queue a scan of all roots of a host. The files `fresh` are read again even where nothing has changed.

    Whoever may operate the model `on` may have it read again, though not the host. `label` says in lists why the scan
    is made, where that is no person's wish.
    """
    if actor.user is not None:
        require(actor.user, Level.OPERATE, on or host)
    inputs = scan_inputs(host, fresh)
    if not inputs["roots"]:
        raise Refused("This host has no model folders yet: add one first.")
    started = start_job(kind="scan", host=host, inputs=inputs, subject=("", "", label), actor=actor)
    if started.created:
        record(actor, "scan.start", subject=started.job, label=host.name, host_slug=host.slug)
    return started


def scan_inputs(host: Host, fresh: Sequence[str] = ()) -> dict[str, Any]:
    """What a scan of all folders is given, as of now."""
    roots = [[root.path, root.category] for root in host.roots.all()]
    known = {path: stamp for path, stamp in _known(host).items() if path not in fresh}
    seen = "" if fresh else stored_listing(host)
    return {"roots": roots, "known": known, "fresh": list(fresh), "seen": seen}


def start_reread(*, row: Row, actor: Actor) -> Started:
    """Queue a scan that reads the files of one model afresh."""
    shards = [shard.path for shard in convert.core_row(row).shards]
    return start_scan(host=row.host, actor=actor, fresh=shards or [row.path], on=row)


def _known(host: Host) -> dict[str, list[int]]:
    """Path -> [size, time, parser version] of the headers that are stored here and could be read the last time."""
    stored = HeaderFacts.objects.filter(host=host, facts__isnull=False, error_code="")
    if stored.count() > MAX_KNOWN:
        return {}
    return {
        path: list(stamp) for path, *stamp in stored.values_list("path", "size_bytes", "mtime_ns", "parser_version")
    }


def start_browse(*, host: Host, path: str, actor: Actor, purpose: str = "folder") -> Started:
    """List a folder of a host; the finished job's result is the listing. `purpose` is what is looked for."""
    require(actor.user, Level.MANAGE)
    if not is_absolute(path, host.os_family) or len(path) > 1024 or unsafe_reason(path):
        raise Refused("Write the whole path of a folder.", fields={"path": "Write the whole path of a folder."})
    inputs = {"path": path, "for": purpose}
    return start_job(kind="browse", host=host, inputs=inputs, subject=(purpose, "", path[:300]), actor=actor)
