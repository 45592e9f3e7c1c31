"""What is set for a host, as the generate file and the sidecar that would say the same (web.md 12.6)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from gpus_app import device_settings, watch_settings
from gpus_app.models import Host
from gpus_app.selectors import section
from models_app import convert
from models_app.core.discovery.roots import path_key
from models_app.core.export.dialects import BY_SLUG
from models_app.core.export.keys import ExportKey, Served, expanded, resolved
from models_app.core.fields import PATCH_FIELDS
from models_app.core.settings import ApiKey as CoreKey
from models_app.core.settings import AppSettings, Override, SlotCache, record_from_mapping
from models_app.core.settings_files.archive import zip_of
from models_app.core.settings_files.files import GENERATE_FILE_NAME, FolderSpec, GenerateFile, OwnSettings
from models_app.core.settings_files.table import overrides_table
from models_app.core.settings_files.writing import generate_text, sidecar_text
from models_app.core.state.edits import put_backends
from models_app.core.state.globs import is_glob
from models_app.core.state.overrides import resolve_index
from models_app.core.state.sidecar import FILE_NAME, Sidecar, sidecar_from_mapping
from models_app.models import ApiKey, Fragment, Row, StoredPlan
from models_app.models import Override as StoredOverride
from models_app.selectors.fleet import latest_candidate
from models_app.services.drift import storable_text
from models_app.services.key_export import secrets_of
from quartermaster_site.access.redaction import mask, redact
from quartermaster_site.errors import Refused
from quartermaster_site.sealing import unseal

TABLE_NAME = "overrides.csv"
IN_GENERATE_FILE = ("groups", "encoders")
"""Settings that a sidecar cannot hold."""
BESIDE_PATCH = ("defaultVariants", "promptEnhancers", "displayNames", "extraImageModels")
"""Settings that have a key of their own at the top of a sidecar."""
_LAUNCH_TEXTS = ("custom_args", "extra_args")


@dataclass(frozen=True, slots=True)
class HostFiles:
    """The two files. Together they mean what is set for the host."""

    generate: GenerateFile
    sidecar: Sidecar

    @property
    def rows(self) -> tuple[Override, ...]:
        """All overrides in the order in which they are tried."""
        return (*self.sidecar.overrides, *self.generate.overrides)


def host_files(host: Host, *, with_secrets: bool = False) -> HostFiles:
    """What people set, and nothing else: what is automatic on this host is automatic wherever the files go.

    The secrets of keys are unsealed only where they are asked for.

    Patterns stand in the generate file as people write them. A row for one file stands in the sidecar; it is complete,
    since it shadows every pattern.
    """
    values = _settings(host)
    stored = StoredOverride.objects.filter(host=host).prefetch_related("variants")
    rows = [convert.core_override(row) for row in stored]
    roots = list(host.roots.order_by("id").values_list("path", "category"))
    generate = GenerateFile(
        settings=_folders(roots) | {key: values[key] for key in IN_GENERATE_FILE if values.get(key)},
        own=_own(host, roots),
        overrides=tuple(row for row in rows if is_glob(row.match)),
    )
    patch = {field.key: values[field.key] for field in PATCH_FIELDS if field.key in values}
    beside = {key: values[key] for key in BESIDE_PATCH if values.get(key)}
    sidecar = replace(
        sidecar_from_mapping({"settings": patch or None, **beside}),
        # A block of a sidecar has no defaults of its own: it is written whole.
        slot_cache=record_from_mapping(SlotCache, values["slotCache"]) if values.get("slotCache") else None,
        overrides=tuple(row for row in rows if not is_glob(row.match)),
        app=_app(host),
        api_keys=_keys(host, with_secrets) or None,
    )
    return HostFiles(generate, put_backends(sidecar, map(convert.core_backend, host.backends.all())))


def _keys(host: Host, with_secrets: bool) -> tuple[CoreKey, ...]:
    """The keys of clients. One that is limited to models of which none is served would open all, so it is left out."""
    served = [
        Served(profile_id, path)
        for path, profile_id in StoredPlan.objects.filter(row__host=host).values_list("row__path", "profile_id")
    ]
    found = []
    for row in ApiKey.objects.filter(hosts=host, is_service=False, revoked_at=None).exclude(sealed="").order_by("pk"):
        limited = ExportKey(row.placeholder, row.everything, frozenset(row.files), frozenset(row.ids))
        models = () if row.everything else tuple(sorted({*row.ids, *expanded(limited, served)}))
        if row.everything or models:
            found.append(CoreKey(row.name, unseal(row.sealed) if with_secrets else mask(row.prefix), models))
    return tuple(found)


def _settings(host: Host) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name in convert.SETTING_SECTIONS:
        values.update(section(host, name).values)
    return values | {"encoders": convert.encoder_pins(host)}


def _folders(roots: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """The first folder of each category, which is all that these keys can say."""
    first: dict[str, str] = {}
    for path, category in roots:
        first.setdefault(category, path)
    main, others = first.pop("", ""), dict(sorted(first.items()))
    return ({"modelsRoot": main} if main else {}) | ({"categoryRoots": others} if others else {})


def _own(host: Host, roots: list[tuple[str, str]]) -> OwnSettings:
    reserve = section(host, device_settings.SECTION).values.get(device_settings.RESERVE, {})
    several = len({category for _, category in roots}) < len(roots)
    return OwnSettings(
        folders=tuple(FolderSpec(path, category) for path, category in roots) if several else (),
        device_reserve_gb={str(index): float(size) for index, size in sorted(reserve.items())},
        fragments=_fragments(host, Fragment.Form.YAML),
        preset_fragments=_fragments(host, Fragment.Form.PRESETS),
    )


def _fragments(host: Host, form: str) -> dict[str, dict[str, Any]]:
    return {row.served_id: row.fields for row in Fragment.objects.filter(host=host, form=form)}


def _app(host: Host) -> AppSettings | None:
    seconds = section(host, watch_settings.SECTION).values.get(watch_settings.KEY)
    if seconds is None:
        return None
    return AppSettings(watch_models_interval_sec=seconds) if seconds else AppSettings(watch_models=False)


def masked(files: HostFiles) -> HostFiles:
    """The same without secrets: what looks like one in a launch text keeps its first characters."""
    sidecar = files.sidecar
    own = files.generate.own
    shown = replace(own, fragments=redact(own.fragments), preset_fragments=redact(own.preset_fragments))
    return HostFiles(
        replace(files.generate, own=shown, overrides=tuple(map(_masked_row, files.generate.overrides))),
        replace(
            sidecar,
            overrides=tuple(map(_masked_row, sidecar.overrides)),
            default_variants=_each(_masked, sidecar.default_variants),
            extra_image_models=tuple(map(_masked, sidecar.extra_image_models)),
        ),
    )


def _each(change: Callable[[Any], Any], items: tuple[Any, ...] | None) -> tuple[Any, ...] | None:
    return None if items is None else tuple(map(change, items))


def _masked_row(row: Override) -> Override:
    shown: Override = _masked(row)
    return replace(shown, variants=tuple(map(_masked, row.variants)))


def _masked(pinned: Any) -> Any:
    return replace(pinned, **{name: redact(getattr(pinned, name)) for name in _LAUNCH_TEXTS})


def export_texts(host: Host, *, with_secrets: bool = False) -> dict[str, str]:
    """File name -> text of everything that can be exported of a host, in the order of the page.

    The router's file is its newest text; there is none before the first planning. Nothing in the texts depends on when
    they are made.
    """
    files = host_files(host, with_secrets=with_secrets)
    shown = files if with_secrets else masked(files)
    about = [f"Settings of {host.slug}, exported by Quartermaster"]
    if not with_secrets and (shown != files or files.sidecar.api_keys):
        about.append("Secrets in launch texts and keys are masked; an import keeps those that are set")
    revision = latest_candidate(host)
    texts: dict[str, str] = {}
    if revision is not None:
        text = _with_secrets(revision.text) if with_secrets else storable_text(host, revision.text)
        texts[BY_SLUG[revision.dialect].file_name] = text
    return texts | {
        GENERATE_FILE_NAME: generate_text(shown.generate, about),
        FILE_NAME: sidecar_text(shown.sidecar, about),
        TABLE_NAME: overrides_table(shown.rows, _models_of(host, files.rows)),
    }


def _with_secrets(text: str) -> str:
    """As a host would write it; a key that is over meanwhile keeps its placeholder."""
    try:
        return resolved(text, secrets_of([text]))
    except Refused:
        return text


def export_archive(host: Host, *, with_secrets: bool = False) -> bytes:
    """The same as one zip file with a folder named like the host."""
    texts = export_texts(host, with_secrets=with_secrets)
    return zip_of({f"{host.slug}/{name}": text for name, text in texts.items()})


def _models_of(host: Host, rows: tuple[Override, ...]) -> Callable[[Override], Iterable[str]]:
    """Served ids of the models for which each row counts."""

    def same_path(match: str, path: str) -> bool:
        return path_key(match, host.os_family) == path_key(path, host.os_family)

    ids: dict[tuple[str, str], list[str]] = {}
    models = Row.objects.filter(host=host).exclude(state=Row.State.MISSING).order_by("served_id", "path")
    for path, quant, served_id in models.values_list("path", "quant", "served_id"):
        index = resolve_index(rows, path, quant, same_path)
        if index is not None:
            ids.setdefault((rows[index].match, rows[index].quant), []).append(served_id)
    return lambda row: ids.get((row.match, row.quant), ())
