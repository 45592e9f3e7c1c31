"""Folders, executables, keys, shared variants and rules of an import: what is here, taking over, taking back."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from zlib import crc32

from gpus_app.models import Backend, Host
from models_app.core.imports.report import Item, Kind, Target
from models_app.core.launch.backends import kind_classes
from models_app.models import ApiKey, Root
from models_app.models import Override as StoredOverride
from models_app.services.api_keys import KeyValues, drop_imported_key, import_key
from models_app.services.backends import BackendValues, add_backend, remove_backend, star_backend
from models_app.services.editing import EDITABLE
from models_app.services.fleet_variants import (
    KEY,
    add_fleet_variant,
    delete_fleet_variant,
    fleet_section,
    save_fleet_variant,
)
from models_app.services.rules import add_rule, delete_rule, save_rule, stored_rules
from models_app.services.scanning import add_root, remove_root
from models_app.services.variants import EDITABLE_ON_VARIANT, check_variant_values
from quartermaster_site import env
from quartermaster_site.access.audit import Actor
from quartermaster_site.sealing import unseal

VARIANTS = "variants"
Record = dict[str, Any]
"""{"version", "before"} of a write, for taking it back."""


@dataclass(frozen=True, slots=True)
class Taker:
    """How things of one kind are taken over. A version is any number that changes with every change."""

    current: Callable[[Host, Target], Any]
    write: Callable[[Host, Target, Iterable[Item], Actor], Record | None]
    """None where nothing changed."""
    version: Callable[[Host, Target], int | None]
    undo: Callable[[Host, Target, Any, Actor], None]
    """Bring back what was before; None where there was nothing."""


def _rule(host: Host, target: Target) -> StoredOverride | None:
    return stored_rules(host).filter(match=target.subject, quant=target.variant).prefetch_related("variants").first()


def _rule_value(host: Host, target: Target) -> Any:
    rule = _rule(host, target)
    if rule is None:
        return None
    variants = [{"name": item.name, **item.fields} for item in rule.variants.all()]
    return {**rule.fields, **({VARIANTS: variants} if variants else {})}


def _write_rule(host: Host, target: Target, items: Iterable[Item], actor: Actor) -> Record | None:
    value = next(iter(items)).value
    before = _rule_value(host, target)
    if value == before:
        return None
    version = _put_rule(host, target, value, actor)
    return {"version": version, "before": before}


def _put_rule(host: Host, target: Target, value: Mapping[str, Any], actor: Actor) -> int:
    """The rule with exactly this value; its version."""
    fields = {key: item for key, item in value.items() if key != VARIANTS}
    rule = _rule(host, target)
    if rule is None:
        rule = add_rule(host=host, match=target.subject, quant=target.variant, values=fields, actor=actor)
    else:
        whole = {key: fields.get(key, field.absent) for key, field in EDITABLE.items()}
        rule = save_rule(rule=rule, values=whole, version=rule.version, actor=actor, action="import")
    wanted = {item["name"]: _variant_fields(item) for item in value.get(VARIANTS, ())}
    held = {item.name: item.fields for item in rule.variants.all()}
    if wanted != held:
        rule.variants.all().delete()
        for name, own in wanted.items():
            rule.variants.create(name=name, fields=own, version=1)
        rule.version += 1
        rule.save(update_fields=["version"])
    return rule.version


def _variant_fields(document: Mapping[str, Any]) -> dict[str, Any]:
    fields = {key: value for key, value in document.items() if key != "name"}
    check_variant_values(fields)
    return fields


def _rule_version(host: Host, target: Target) -> int | None:
    rule = _rule(host, target)
    return rule.version if rule else None


def _undo_rule(host: Host, target: Target, before: Any, actor: Actor) -> None:
    rule = _rule(host, target)
    if rule is None:
        return
    if before is None:
        delete_rule(rule=rule, version=rule.version, actor=actor)
    else:
        _put_rule(host, target, before, actor)


def _fleet_variant(host: Host, target: Target) -> dict[str, Any] | None:
    listed = fleet_section(host).values.get(KEY, [])
    found = next((item for item in listed if item["name"].lower() == target.variant.lower()), None)
    return None if found is None else {key: value for key, value in found.items() if key != "name"}


def _fleet_value(host: Host, target: Target) -> Any:
    fields = _fleet_variant(host, target)
    if not target.field:
        return None if fields is None else True
    return (fields or {}).get(target.field)


def _write_fleet_variant(host: Host, target: Target, items: Iterable[Item], actor: Actor) -> Record | None:
    values = {item.target.field: item.value for item in items if item.target.field}
    before = _fleet_variant(host, target)
    if before is None:
        add_fleet_variant(host=host, name=target.variant, actor=actor)
    wanted = {**(before or {}), **values}
    _save_fleet_variant(host, target.variant, wanted, actor)
    if _fleet_variant(host, target) == before:
        return None
    return {"version": _fleet_version(host, target), "before": before}


def _save_fleet_variant(host: Host, name: str, fields: Mapping[str, Any], actor: Actor) -> None:
    whole = {key: fields.get(key, field.absent) for key, field in EDITABLE_ON_VARIANT.items()}
    save_fleet_variant(host=host, name=name, values=whole, version=fleet_section(host).version, actor=actor)


def _fleet_version(host: Host, target: Target) -> int | None:
    fields = _fleet_variant(host, target)
    return None if fields is None else crc32(json.dumps(fields, sort_keys=True).encode())


def _undo_fleet_variant(host: Host, target: Target, before: Any, actor: Actor) -> None:
    if before is None:
        delete_fleet_variant(host=host, name=target.variant, actor=actor)
    else:
        _save_fleet_variant(host, target.variant, before, actor)


def _root(host: Host, target: Target) -> Root | None:
    return Root.objects.filter(host=host, path=target.subject).first()


def _root_value(host: Host, target: Target) -> Any:
    root = _root(host, target)
    return None if root is None else root.category


def _write_root(host: Host, target: Target, items: Iterable[Item], actor: Actor) -> Record | None:
    known = _root(host, target)
    root = add_root(host=host, path=target.subject, category=next(iter(items)).value, actor=actor)
    return None if known else {"version": root.pk, "before": None}


def _root_version(host: Host, target: Target) -> int | None:
    root = _root(host, target)
    return root.pk if root else None


def _undo_root(host: Host, target: Target, before: Any, actor: Actor) -> None:
    if root := _root(host, target):
        remove_root(root=root, actor=actor)


def _backend(host: Host, target: Target) -> Backend | None:
    return host.backends.filter(path=target.subject).order_by("id").first()


def _backend_value(host: Host, target: Target) -> Any:
    row = _backend(host, target)
    return None if row is None else {"kind": row.kind, "path": row.path, "id": row.slug}


def _write_backend(host: Host, target: Target, items: Iterable[Item], actor: Actor) -> Record | None:
    """A registered executable stays as it is. A star is taken over only where its class has none yet."""
    if _backend(host, target) is not None:
        return None
    value = next(iter(items)).value
    values = BackendValues(
        kind=value["kind"], path=target.subject, name=value.get("name", ""), variant=value.get("variant", "")
    )
    row = add_backend(host=host, values=values, slug=_free_slug(host, value.get("id", "")), actor=actor)
    classes = set(kind_classes(row.kind))
    taken = [other for other in host.backends.filter(starred=True) if classes & set(kind_classes(other.kind))]
    if value.get("default") and not taken:
        row = star_backend(backend=row, starred=True, actor=actor)
    return {"version": row.edition, "before": None}


def _free_slug(host: Host, wanted: str) -> str:
    """The id that pins of the file name, where it can be had; else one is made."""
    slug = wanted.strip().lower()
    usable = bool(env.SLUG.fullmatch(slug)) and not host.backends.filter(slug=slug).exists()
    return slug if usable else ""


def _backend_version(host: Host, target: Target) -> int | None:
    row = _backend(host, target)
    return row.edition if row else None


def _undo_backend(host: Host, target: Target, before: Any, actor: Actor) -> None:
    if row := _backend(host, target):
        remove_backend(backend=row, actor=actor)


def _key(host: Host, target: Target) -> ApiKey | None:
    """By the digest of its secret, which is what `variant` holds."""
    return ApiKey.objects.filter(hosts=host, digest=target.variant, revoked_at=None).first()


def _key_value(host: Host, target: Target) -> Any:
    key = _key(host, target)
    return None if key is None else {"name": key.name}


def _write_key(host: Host, target: Target, items: Iterable[Item], actor: Actor) -> Record | None:
    """Names of models are served ids; a key without any opens all, as its file says."""
    if _key(host, target) is not None:
        return None
    value = next(iter(items)).value
    models = value.get("models") or []
    values = KeyValues(value["name"], [host], everything=not models, ids=models)
    key = import_key(values=values, secret=unseal(value["sealed"]), actor=actor)
    return {"version": key.version, "before": None}


def _key_version(host: Host, target: Target) -> int | None:
    key = _key(host, target)
    return key.version if key else None


def _undo_key(host: Host, target: Target, before: Any, actor: Actor) -> None:
    if key := _key(host, target):
        drop_imported_key(key=key, host=host, actor=actor)


TAKERS: Mapping[str, Taker] = {
    Kind.API_KEY: Taker(_key_value, _write_key, _key_version, _undo_key),
    Kind.BACKEND: Taker(_backend_value, _write_backend, _backend_version, _undo_backend),
    Kind.ROOT: Taker(_root_value, _write_root, _root_version, _undo_root),
    Kind.FLEET_VARIANT: Taker(_fleet_value, _write_fleet_variant, _fleet_version, _undo_fleet_variant),
    Kind.RULE: Taker(_rule_value, _write_rule, _rule_version, _undo_rule),
}
"""Kinds of which a whole thing is taken over at once."""
