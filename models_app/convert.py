"""Between rows of the database and the value types of the core: the only module that sees both."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import fields
from datetime import datetime
from functools import lru_cache
from typing import Any

from django.db.models import Prefetch, Q

from gpus_app.models import Backend, Host
from gpus_app.selectors import ram_limit_gib, section, target_vram_gib
from models_app import models, records
from models_app.core import catalog
from models_app.core.components.pool import Pool, PoolEntry
from models_app.core.discovery.families import family_key, model_base_key
from models_app.core.discovery.roots import path_key
from models_app.core.errors import HeaderError, RecordError
from models_app.core.launch.backends import with_registry
from models_app.core.launch.program_text import ProgramDevice
from models_app.core.plans.engines.request import window_tokens
from models_app.core.readers.record import header_from_json
from models_app.core.settings import (
    BackendEntry,
    Encoders,
    Override,
    Settings,
    Variant,
    override_from_mapping,
    record_from_mapping,
    record_to_mapping,
    settings_from_mapping,
    variant_from_mapping,
)
from models_app.core.state.overrides import merge_overrides
from models_app.fleet_sections import FLEET_SECTIONS

VARIANT_SECTION = "variants"
SETTING_SECTIONS = ("memory", "gpu", VARIANT_SECTION, *FLEET_SECTIONS)
ENCODER_SECTION = "encoders"
"""The host's pins of component files, by the keys of discovery.md 11.7."""


def core_row(row: models.Row) -> catalog.Row:
    """The row as discovery found it."""
    return records.row_from_json(row.found)


def row_columns(found: catalog.Row) -> dict[str, Any]:
    """What the database keeps of a row, beside its links and state."""
    return {
        "path": found.full_path,
        "served_id": found.id,
        "base_id": found.base_id or found.id,
        "quant": found.quant,
        "publisher": found.publisher,
        "repo": found.repo,
        "file_name": found.file_name,
        "size_bytes": found.size_bytes,
        "mtime_ns": found.mtime_ns,
        "category": found.category or "llm",
        "model_class": found.model_class,
        "class_reason": found.class_reason,
        "found": records.row_to_json(found),
    }


def header_columns(header: catalog.Header | None, base_id: str) -> dict[str, str]:
    """What the database keeps of a header beside the row: the file's own identity first, then the id rule."""
    return {
        "architecture": header.architecture[:64] if header else "",
        "quant_label": header.quant_label[:40] if header else "",
        "model_key": ((header.model_key if header else "") or model_base_key(base_id))[:300],
        "family_key": ((header.family_key if header else "") or family_key(base_id))[:300],
    }


def core_header(facts: models.HeaderFacts) -> catalog.Header:
    """The stored header; raises HeaderError where it could not be read."""
    if facts.facts is None:
        raise HeaderError(
            facts.error_code or "unreadable", facts.error, offset=facts.error_offset or 0, path=facts.path
        )
    return header_from_json(facts.facts)


@lru_cache(maxsize=256)
def _header_by_version(pk: int, read_at: datetime) -> catalog.Header:
    return core_header(models.HeaderFacts.objects.get(pk=pk))


def header_lookup(host: Host, paths: Collection[str] | None = None) -> Callable[[str], catalog.Header | None]:
    """Path -> header, None where there is none; for some paths of a host, or all. One query, then this process' cache.

    A header is kept under the time at which it was read, so a changed file is never taken for the old one.
    """
    stored = models.HeaderFacts.objects.filter(host=host, facts__isnull=False)
    if paths is not None:
        stored = stored.filter(path__in=[path for path in paths if path])
    known = {path: (pk, read_at) for pk, path, read_at in stored.values_list("pk", "path", "read_at")}

    def lookup(path: str) -> catalog.Header | None:
        if path not in known:
            return None
        try:
            return _header_by_version(*known[path])
        except (HeaderError, RecordError, models.HeaderFacts.DoesNotExist):
            return None

    return lookup


def headers_at_once(host: Host, paths: Collection[str]) -> Callable[[str], catalog.Header | None]:
    """As `header_lookup`, for many files whose headers are wanted once: one query, and nothing is kept."""
    wanted = [path for path in paths if path]
    rows = models.HeaderFacts.objects.filter(host=host, path__in=wanted, facts__isnull=False)
    stored = dict(rows.values_list("path", "facts"))

    def lookup(path: str) -> catalog.Header | None:
        if path not in stored:
            return None
        try:
            return header_from_json(stored[path])
        except RecordError:
            return None

    return lookup


def core_settings(host: Host) -> Settings:
    """The settings of a host as planning takes them: what people set, and the budget in force."""
    document: dict[str, Any] = {}
    for name in SETTING_SECTIONS:
        document.update(section(host, name).values)
    document["encoders"] = section(host, ENCODER_SECTION).values
    document["targetVramGB"] = target_vram_gib(host)
    document["maxRamGB"] = ram_limit_gib(host)
    return with_registry(settings_from_mapping(document), core_backends(host))


def core_backends(host: Host) -> tuple[BackendEntry, ...]:
    """The backends that planning may choose from: all but those that say of themselves that they are another kind."""
    return tuple(core_backend(row) for row in host.backends.all() if not is_refused(row))


def is_refused(row: Backend) -> bool:
    """Whether the program is known to be of another kind than it is registered as: it would not run our commands."""
    return row.probe.get("kind", "") not in ("", row.kind)


def backend_devices(row: Backend) -> tuple[ProgramDevice, ...] | None:
    """What the program lists as its devices; None where it was not asked or cannot say."""
    listed = row.probe.get("devices")
    return None if listed is None else tuple(ProgramDevice(**device) for device in listed)


def backend_flags(row: Backend) -> frozenset[str] | None:
    """The flags that its help names; None where that is not known."""
    return frozenset(row.probe.get("flags") or ()) or None


def core_backend(row: Backend) -> BackendEntry:
    return BackendEntry(
        id=row.slug,
        kind=row.kind,
        name=row.name,
        path=row.path,
        default=row.starred,
        version=row.version,
        variant=row.variant,
        build=row.build,
    )


def core_override(row: models.Override | None) -> Override:
    """What people pinned, variants included; an empty override where nobody did."""
    if row is None:
        return Override()
    variants = [{**variant.fields, "name": variant.name} for variant in row.variants.all()]
    return override_from_mapping({**row.fields, "match": row.match, "quant": row.quant, "variants": variants})


def core_variant(row: models.Variant) -> Variant:
    return variant_from_mapping({**row.fields, "name": row.name})


def override_fields(override: Override) -> dict[str, Any]:
    """The set fields of an override as a row keeps them: without its match and its variants, which are rows."""
    document = record_to_mapping(override)
    return {key: value for key, value in document.items() if key not in ("match", "quant", "variants")}


def variant_fields(variant: Variant) -> dict[str, Any]:
    """The set fields of a variant as a row keeps them."""
    return {key: value for key, value in record_to_mapping(variant).items() if key != "name"}


def core_encoders(host: Host) -> Encoders:
    """The component files that are pinned on a host."""
    return record_from_mapping(Encoders, section(host, ENCODER_SECTION).values)


def encoder_pins(host: Host) -> dict[str, str]:
    """The same by key; only those that are set."""
    return {key: str(path) for key, path in record_to_mapping(core_encoders(host)).items()}


def core_component(row: models.Component) -> PoolEntry:
    return PoolEntry(**{item.name: getattr(row, item.name) for item in fields(PoolEntry)})


def gone_on(host: Host, files: Iterable[models.Component], roots: Iterable[models.Root]) -> Callable[[str], bool]:
    """Is a path known to be gone? Only a folder that was read completely can say so of a file that it does not list."""
    listed = {path_key(file.path, host.os_family) for file in files}
    below = tuple(
        path_key(root.path, host.os_family).rstrip("/") + "/" for root in roots if root.state == models.Root.State.OK
    )

    def is_gone(path: str) -> bool:
        wanted = path_key(path, host.os_family)
        return wanted.startswith(below) and wanted not in listed

    return is_gone


def core_pool(rows: Iterable[models.Component], host: Host) -> Pool:
    """What the image and video models of a host choose from."""
    return Pool((entry for row in rows if (entry := core_component(row)).is_offered), host.os_family)


def core_finding(row: models.Finding) -> catalog.Finding:
    return catalog.Finding(row.kind, row.path, row.text, row.level, row.code, row.offset)


def core_overrides(host: Host, path: str = "", *, variants: bool = True) -> tuple[Override, ...]:
    """All that people pinned on a host in the order in which matches are tried; with a path, what may cover it."""
    kept = models.Variant.objects.all() if variants else models.Variant.objects.none()  # none() costs no query
    rows = models.Override.objects.filter(host=host).prefetch_related(Prefetch("variants", kept))
    if path:
        rows = rows.filter(Q(match__iexact=path) | Q(match__contains="*") | Q(match__contains="?"))
    return merge_overrides((core_override(row) for row in rows), ())


def plan_columns(plan: catalog.Plan) -> dict[str, Any]:
    """What lists show of a plan."""
    return {
        "profile_id": plan.profile_id[:340],
        "profile": plan.profile,
        "verdict": plan.verdict,
        "ctx_tokens": window_tokens(plan),
        "est_vram_bytes": plan.est_vram_bytes,
        "est_ram_bytes": plan.est_ram_bytes,
        "warning_count": min(len(plan.warnings), 999),
        "skip_reason": plan.skip_reason[:500],
    }
