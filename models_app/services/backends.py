"""The executables of a host: adding, editing, starring and removing them. Administrators only."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from django.db import transaction
from django.db.models import F

from gpus_app.models import Backend, Host
from gpus_app.services import is_absolute, request_plan
from models_app.core.launch.backends import KINDS, kind_classes, kind_of
from models_app.services.backend_probes import probe_new
from quartermaster_site import env
from quartermaster_site.access.audit import Actor, record
from quartermaster_site.access.permissions import Level, require
from quartermaster_site.errors import EditConflict, Refused

MOST_BACKENDS = 64
_VARIANT = re.compile(r"[a-z0-9.-]{0,32}")


@dataclass(frozen=True, slots=True)
class BackendValues:
    """What a person says of a backend. The other facts are what the program says of itself."""

    kind: str
    path: str
    name: str = ""
    variant: str = ""


def add_backend(*, host: Host, values: BackendValues, slug: str = "", actor: Actor) -> Backend:
    """A new row, at the end of the list. Without an id it gets one after its kind. Twice the same is once.

    It never takes a class that is served already: it stands behind the others, without a star.
    """
    require(actor.user, Level.MANAGE)
    with transaction.atomic():
        Host.objects.select_for_update().get(pk=host.pk)
        wanted = _checked(host, values)
        same = host.backends.filter(kind=wanted.kind, path=wanted.path).first()
        if same is not None:
            return same
        slug = _checked_slug(host, slug, wanted.kind)
        row = Backend.objects.create(host=host, slug=slug, **_columns(wanted))
        record(actor, "backend.add", subject=row, host_slug=host.slug, changes=_changes({}, _shown(row)))
        request_plan(host=host, actor=actor)
        probe_new(backend=row, actor=actor)
    return row


def save_backend(*, backend: Backend, values: BackendValues, edition: int, actor: Actor) -> Backend:
    """Change a row if nobody did since `edition`; raises EditConflict with what is stored. Its id stays."""
    require(actor.user, Level.MANAGE)
    with transaction.atomic():
        row = _locked(backend)
        wanted = _checked(row.host, values, row)
        before = _shown(row)
        for name, value in _columns(wanted).items():
            setattr(row, name, value)
        after = _shown(row)
        if after == before:
            return row
        if row.edition != edition:
            message = "Somebody changed this backend meanwhile. Save once more to store yours instead."
            raise EditConflict(message, saved=before, version=row.edition, by="Somebody", at=None)
        if after["path"] != before["path"]:
            _forget_probe(row)
        if after["kind"] != before["kind"] and row.starred:
            _take_stars(row)
        row.edition += 1
        row.save()
        record(actor, "backend.change", subject=row, host_slug=row.host.slug, changes=_changes(before, after))
        request_plan(host=row.host, actor=actor)
        if after["path"] != before["path"]:
            probe_new(backend=row, actor=actor)
    return row


def star_backend(*, backend: Backend, starred: bool, actor: Actor) -> Backend:
    """Make a row the default of its classes, or no longer; the rows of these classes lose theirs."""
    require(actor.user, Level.MANAGE)
    with transaction.atomic():
        row = _locked(backend)
        if row.starred == starred:
            return row
        if starred:
            _take_stars(row)
        row.starred = starred
        row.edition += 1
        row.save(update_fields=["starred", "edition"])
        record(actor, "backend.star", subject=row, host_slug=row.host.slug, changes={"star": [not starred, starred]})
        request_plan(host=row.host, actor=actor)
    return row


def remove_backend(*, backend: Backend, actor: Actor) -> None:
    """Forget a row. Nothing on the host is touched; pins that name it fall through to what serves the class."""
    require(actor.user, Level.MANAGE)
    with transaction.atomic():
        row = Backend.objects.select_for_update().select_related("host").filter(pk=backend.pk).first()
        if row is None:
            return
        record(actor, "backend.remove", subject=row, host_slug=row.host.slug, changes=_changes(_shown(row), {}))
        row.delete()
        request_plan(host=row.host, actor=actor)


def _locked(backend: Backend) -> Backend:
    """The row as it is now, with its host held so that stars of one class change one after another."""
    Host.objects.select_for_update().get(pk=backend.host_id)
    return Backend.objects.select_related("host").get(pk=backend.pk)


def _take_stars(row: Backend) -> None:
    classes = set(kind_classes(row.kind))
    others = row.host.backends.filter(starred=True).exclude(pk=row.pk)
    taken = [other.pk for other in others if classes.intersection(kind_classes(other.kind))]
    Backend.objects.filter(pk__in=taken).update(starred=False, edition=F("edition") + 1)


def _forget_probe(row: Backend) -> None:
    """What another file said of itself counts no more."""
    row.probe, row.banner_sha256, row.probed_at = {}, "", None
    row.version = row.build = ""


def _checked(host: Host, values: BackendValues, own: Backend | None = None) -> BackendValues:
    """The values in canonical spelling. Raises Refused with a message per field."""
    problems: dict[str, str] = {}
    kind, path, name = kind_of(values.kind), values.path.strip(), values.name.strip()
    variant = values.variant.strip().lower()
    if kind is None:
        problems["kind"] = f"One of {', '.join(known.name for known in KINDS)}."
    if not is_absolute(path, host.os_family):
        problems["path"] = "Write the whole path of the executable, from the root on."
    elif len(path) > 1024 or not path.isprintable() or path.endswith(("/", "\\")):
        problems["path"] = "This names no executable."
    if len(name) > 100 or not name.isprintable():
        problems["name"] = "At most 100 characters, on one line."
    if not _VARIANT.fullmatch(variant):
        problems["variant"] = "A short word such as cuda, vulkan, metal, rocm or cpu."
    others = host.backends.exclude(pk=own.pk) if own else host.backends.all()
    if own is None and others.count() >= MOST_BACKENDS:
        problems["path"] = f"A host has at most {MOST_BACKENDS} backends."
    if own is not None and kind is not None and others.filter(kind=kind.name, path=path).exists():
        problems["path"] = "This executable is registered already, as the same kind."
    if problems or kind is None:
        raise Refused("The backend cannot be used.", fields=problems)
    return BackendValues(kind.name, path, name, variant)


def _checked_slug(host: Host, slug: str, kind: str) -> str:
    taken = set(host.backends.values_list("slug", flat=True))
    slug = slug.strip().lower()
    if slug in taken:
        text = f"The id {slug} is taken on this host: the first of two would win silently."
        raise Refused("The backend cannot be used.", fields={"slug": text})
    if slug and not env.SLUG.fullmatch(slug):
        text = "Lower-case letters, digits and dashes, at most 40, such as llama-vulkan."
        raise Refused("The backend cannot be used.", fields={"slug": text})
    numbered = (kind if number == 1 else f"{kind}-{number}" for number in range(1, MOST_BACKENDS + 2))
    return slug or next(name for name in numbered if name not in taken)


def _columns(values: BackendValues) -> dict[str, str]:
    return {"kind": values.kind, "path": values.path, "name": values.name, "variant": values.variant}


def _shown(row: Backend) -> dict[str, object]:
    return {"id": row.slug, "kind": row.kind, "path": row.path, "name": row.name, "variant": row.variant}


def _changes(before: Mapping[str, object], after: Mapping[str, object]) -> dict[str, list[object]]:
    keys = [key for key in (after or before) if before.get(key, "") != after.get(key, "")]
    return {key: [before.get(key), after.get(key)] for key in keys}
