"""What is set for a host, as the generate file and the sidecar that would say the same (web.md 12.6)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from gpus_app import device_settings, watch_settings
from gpus_app.models import Host
from gpus_app.selectors import section
from models_app import convert
from models_app.core.discovery.roots import path_key
from models_app.core.export.dialects import BY_SLUG
from models_app.core.export.keys import ExportKey, Served, expanded
from models_app.core.fields import PATCH_FIELDS
from models_app.core.settings import ApiKey as CoreKey
from models_app.core.settings import AppSettings, Override, SlotCache, record_from_mapping
from models_app.core.settings_files.archive import zip_of
from models_app.core.settings_files.files import GENERATE_FILE_NAME, FolderSpec, GenerateFile, OwnSettings
from models_app.core.settings_files.table import overrides_table
from models_app.core.settings_files.writing import generate_text, sidecar_text
from models_app.core.state.edits import put_backends
from models_app.core.state.globs import is_glob
from models_app.core.state.rules import row_reach
from models_app.core.state.sidecar import FILE_NAME, Sidecar, sidecar_from_mapping
from models_app.models import ApiKey, Fragment, Revision, Row, StoredPlan
from models_app.models import Override as StoredOverride
from models_app.selectors.fleet import latest_candidate
from models_app.services.drift import storable_text
from models_app.services.key_export import text_to_write
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
    stored = section(host, device_settings.SECTION).values
    reserve, preference = (stored.get(key, {}) for key in (device_settings.RESERVE, device_settings.PREFERENCE))
    several = len({category for _, category in roots}) < len(roots)
    return OwnSettings(
        folders=tuple(FolderSpec(path, category) for path, category in roots) if several else (),
        device_reserve_gb={str(index): float(size) for index, size in sorted(reserve.items())},
        device_preference={str(index): str(word) for index, word in sorted(preference.items())},
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


class Export:
    """Everything that can be exported of a host, each text made when it is asked for.

    Nothing in the texts depends on when they are made. The router's file is the newest text; there is none before the
    first planning.
    """

    def __init__(self, host: Host, *, with_secrets: bool = False) -> None:
        self.host, self.with_secrets = host, with_secrets
        self._makers: dict[str, Callable[[], str]] = {
            **{BY_SLUG[slug].file_name: self._router_text for slug in self._dialects()},
            GENERATE_FILE_NAME: lambda: generate_text(self._shown.generate, self._about),
            FILE_NAME: lambda: sidecar_text(self._shown.sidecar, self._about),
            TABLE_NAME: lambda: overrides_table(self._shown.rows, _models_of(self.host, self._files.rows)),
        }

    @property
    def names(self) -> list[str]:
        """The names of the files, in the order of the page."""
        return list(self._makers)

    def text(self, name: str) -> str:
        return self._makers[name]()

    def texts(self) -> dict[str, str]:
        return {name: self.text(name) for name in self.names}

    def archive(self) -> bytes:
        """All of it as one zip file with a folder named like the host."""
        return zip_of({f"{self.host.slug}/{name}": text for name, text in self.texts().items()})

    def _dialects(self) -> list[str]:
        newest = Revision.objects.filter(host=self.host).order_by("-number")
        return list(newest.values_list("dialect", flat=True)[:1])

    def _router_text(self) -> str:
        revision = latest_candidate(self.host)
        text = revision.text if revision else ""
        if not self.with_secrets:
            return storable_text(self.host, text)
        try:
            return text_to_write(text)
        except Refused:  # a key that is over keeps its placeholder until the next planning
            return text

    @cached_property
    def _files(self) -> HostFiles:
        return host_files(self.host, with_secrets=self.with_secrets)

    @cached_property
    def _shown(self) -> HostFiles:
        return self._files if self.with_secrets else masked(self._files)

    @property
    def _about(self) -> list[str]:
        about = [f"Settings of {self.host.slug}, exported by Quartermaster"]
        if not self.with_secrets and (self._shown != self._files or self._files.sidecar.api_keys):
            about.append("Secrets in launch texts and keys are masked; an import keeps those that are set")
        return about


def export_texts(host: Host, *, with_secrets: bool = False) -> dict[str, str]:
    """File name -> text of the whole export."""
    return Export(host, with_secrets=with_secrets).texts()


def export_archive(host: Host, *, with_secrets: bool = False) -> bytes:
    """The same as one zip file."""
    return Export(host, with_secrets=with_secrets).archive()


def _models_of(host: Host, rows: tuple[Override, ...]) -> Callable[[Override], Iterable[str]]:
    """Served ids of the models for which each row counts."""
    models = Row.objects.filter(host=host).exclude(state=Row.State.MISSING).order_by("served_id", "path")
    known = list(models.values_list("path", "quant", "served_id"))
    reach = row_reach(rows, [(path, quant) for path, quant, _ in known], lambda path: path_key(path, host.os_family))
    ids = {
        (row.match, row.quant): [known[model][2] for model in found.won(place)]
        for place, (row, found) in enumerate(zip(rows, reach, strict=True))
    }
    return lambda row: ids.get((row.match, row.quant), ())
