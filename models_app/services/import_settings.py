"""Reading a generate file, a sidecar or both for an import: what they say, and what of it can be taken over here."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from gpus_app.models import Host
from gpus_app.selectors import section
from gpus_app.services import is_absolute
from models_app import convert
from models_app.core.discovery.roots import path_key
from models_app.core.export.fragments import form_of
from models_app.core.imports.report import Item, Kind, Needs, Status, Target, equal_values, item_to_json, judged
from models_app.core.imports.settings_rows import KnownFile
from models_app.core.imports.settings_source import read_files, settings_items
from models_app.core.launch.backends import engine_of
from models_app.core.settings import Override
from models_app.core.state.values import field_problem
from models_app.core.state.variants import VISION
from models_app.models import ApiKey, ImportBatch, Row
from models_app.models import Override as StoredOverride
from models_app.services.api_keys import MOST_NAME, digest_of
from models_app.services.arguments import check_arguments
from models_app.services.editing import EDITABLE, check_values
from models_app.services.import_current import Stored
from models_app.services.planning import HostFacts, host_facts, stored_override
from models_app.services.rules import match_problem
from models_app.services.scanning import check_root
from models_app.services.sections import SECTION_CLEANED, level_for
from models_app.services.variants import EDITABLE_ON_VARIANT, check_variant_values, name_problem
from quartermaster_site.access.permissions import Level
from quartermaster_site.errors import Refused
from quartermaster_site.jobs.control import ControlReporter
from quartermaster_site.sealing import seal

MOST_ITEMS = 50_000
_USABLE_KEY = re.compile(r"[\x21-\x7e]{8,512}")
"""A router takes neither a blank key nor one with spaces; what is shorter can be guessed."""


def read_settings(batch: ImportBatch, data: bytes, report: ControlReporter) -> dict[str, Any]:
    """The report of these files. Raises `LoadError` with the line where one is no YAML map."""
    report.progress("Reading", 0, 2)
    files = read_files(batch.name, data)
    host, facts = batch.host, host_facts(batch.host)
    rows = {row.path: row for row in Row.objects.filter(host=host).select_related("host")}

    found = settings_items(files, _known(host, facts, rows.values()), lambda path: path_key(path, host.os_family))
    if len(found) > MOST_ITEMS:
        raise Refused(f"The files say {len(found):,} things; at most {MOST_ITEMS:,} are looked at in one import.")
    report.progress("Comparing", 1, 2)
    check = _Check(host, facts, rows, found)
    stored = Stored(host, facts, rows, form_of(batch.dialect))
    items = judged(map(_sealed, map(check.checked, found)), stored.value, _same_in(host))
    return {"items": [item_to_json(_shown(item)) for item in items]}


def _known(host: Host, facts: HostFacts, rows: Iterable[Row]) -> list[KnownFile]:
    """The models with what a rule sets for them, as long as they have no settings of their own."""
    own = set(StoredOverride.objects.filter(host=host, quant="").values_list("match", flat=True))
    return [
        KnownFile(row.path, row.quant, {} if row.path in own else convert.override_fields(stored_override(facts, row)))
        for row in rows
    ]


def _shown(item: Item) -> Item:
    """Making something automatic that only a rule sets takes nothing from anybody: it is no conflict."""
    is_clearing = item.target.kind == Kind.OVERRIDE and item.target.field in EDITABLE
    if item.status == Status.CONFLICT and is_clearing and not EDITABLE[item.target.field].is_set(item.value):
        return replace(item, status=Status.NEW)
    return item


def _sealed(item: Item) -> Item:
    """A key is known by its digest, and waits sealed until somebody decides."""
    if item.target.kind != Kind.API_KEY:
        return item
    secret = str(item.value["key"])
    value = {"name": item.target.subject, "sealed": seal(secret), "models": item.value.get("models", [])}
    return replace(item, target=replace(item.target, variant=digest_of(secret)), value=value)


def _same_in(host: Host) -> Callable[[Target, Any, Any], bool]:
    """Whether a file says what is set here. A setting is the same where storing it would change nothing."""

    def same(target: Target, given: Any, ours: Any) -> bool:
        if target.kind == Kind.SETTING:
            held = section(host, target.subject).values
            return SECTION_CLEANED[target.subject]({**held, target.field: given}) == dict(held)
        if target.kind == Kind.BACKEND:
            return bool(given["kind"] == ours["kind"])
        if target.kind == Kind.API_KEY:
            return True
        return equal_values(target, given, ours)

    return same


class _Check:
    """Looks at each item before it is offered: what a form would refuse goes nowhere, with the form's words."""

    def __init__(self, host: Host, facts: HostFacts, rows: Mapping[str, Row], items: Iterable[Item]) -> None:
        self.host, self.settings, self.rows = host, facts.settings, rows
        named = [item for item in items if item.target.kind == Kind.BACKEND]
        registered = host.backends.values_list("slug", flat=True)
        self.backends = {*registered, *(str(item.value.get("id", "")).strip().lower() for item in named)}
        self.projectors = {
            item.target.subject
            for item in items
            if item.target.kind == Kind.OVERRIDE and item.target.field == "mmprojFile"
        }

    def checked(self, item: Item) -> Item:
        try:
            problem = self._problem(item)
        except Refused as refusal:
            problem = " ".join(dict.fromkeys(refusal.fields.values())) or str(refusal)
        if not problem:
            manages = item.target.kind == Kind.SETTING and level_for(item.target.subject) == Level.MANAGE
            return replace(item, needs=Needs.MANAGE) if manages else item
        return replace(item, target=Target(Kind.NOWHERE), note=problem)

    def _problem(self, item: Item) -> str:
        target, value = item.target, item.value
        match target.kind:
            case Kind.SETTING:
                SECTION_CLEANED[target.subject]({target.field: value})
            case Kind.OVERRIDE:
                return self._field_problem(EDITABLE, target, value)
            case Kind.VARIANT | Kind.FLEET_VARIANT:
                return self._variant_problem(target, value)
            case Kind.RULE:
                return self._rule_problem(target, value)
            case Kind.ROOT if not self.host.roots.filter(path=target.subject).exists():
                check_root(self.host, target.subject, value)
            case Kind.BACKEND if not is_absolute(target.subject, self.host.os_family):
                return "Only the whole path of an executable can be registered."
            case Kind.API_KEY:
                return self._key_problem(target.subject, str(value.get("key", "")))
        return ""

    def _key_problem(self, name: str, secret: str) -> str:
        if not _USABLE_KEY.fullmatch(secret):
            return "Not a usable key: 8 to 512 characters without blanks."
        if not 1 <= len(name) <= MOST_NAME or not name.isprintable():
            return f"A key needs a name of 1 to {MOST_NAME} characters."
        others = ApiKey.objects.filter(hosts=self.host, name__iexact=name, revoked_at=None)
        if others.exclude(digest=digest_of(secret)).exists():
            return "Another key of this host has this name: rename one of them."
        return ""

    def _field_problem(self, catalogue: Mapping[str, Any], target: Target, value: Any) -> str:
        key = target.field
        if key not in catalogue:
            return "There is no such setting here."
        if key in ("customArgs", "extraArgs") and isinstance(value, str):
            row = self.rows.get(target.subject)
            check_arguments(self.host, value, engine_of(self.settings, Override(), row.model_class if row else "llm"))
        if key == "backend" and value and str(value).lower() not in self.backends:
            return f"{value} is no backend of this host, nor of the file."
        return field_problem(catalogue[key], value)

    def _variant_problem(self, target: Target, value: Any) -> str:
        if problem := name_problem(target.variant, ()):
            return problem
        if target.kind == Kind.VARIANT and target.variant.lower() == VISION and not self._has_projector(target.subject):
            return "The variant vision tunes the entry that loads a projector; this model has none."
        return self._field_problem(EDITABLE_ON_VARIANT, target, value) if target.field else ""

    def _has_projector(self, path: str) -> bool:
        row = self.rows.get(path)
        return path in self.projectors or bool(row and convert.core_row(row).mmproj_path)

    def _rule_problem(self, target: Target, value: Mapping[str, Any]) -> str:
        if problem := match_problem(target.subject):
            return problem
        check_values({key: item for key, item in value.items() if key != "variants"})
        for variant in value.get("variants", ()):
            if problem := name_problem(variant["name"], ()):
                return problem
            check_variant_values({key: item for key, item in variant.items() if key != "name"})
        texts = [part.get("customArgs", "") for part in (value, *value.get("variants", ()))]
        for text in texts:
            check_arguments(self.host, text)
        return ""
