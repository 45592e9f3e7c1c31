"""What is set on a host for the targets of an import's items."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpus_app.models import Host
from gpus_app.selectors import section
from models_app import convert
from models_app.core.fields import attribute_of
from models_app.core.imports.beside_models import contained
from models_app.core.imports.meaning import words_of
from models_app.core.imports.report import Kind, Target, equal_values
from models_app.models import Fragment, Row
from models_app.services.editing import pinned
from models_app.services.import_kinds import TAKERS
from models_app.services.planning import HostFacts


def same_value(target: Target, given: Any, ours: Any) -> bool:
    """Whether a file says what is set: a part of a mapping says no more than the whole."""
    if target.kind == Kind.FRAGMENT and target.field:
        return contained(given, ours)
    if target.kind == Kind.FRAGMENT and isinstance(given, Mapping) and isinstance(ours, Mapping):
        return _in_words(given) == _in_words(ours)
    if target.kind == Kind.API_KEY:
        return True  # it is found by its secret
    if target.kind == Kind.SETTING and isinstance(given, int | float) and isinstance(ours, int | float):
        return abs(given - ours) < 0.005
    return equal_values(target, given, ours)


def _in_words(entry: Mapping[str, Any]) -> dict[str, Any]:
    """A whole entry of a file, however the lines of its command are broken."""
    return {**entry, "cmd": words_of(entry.get("cmd"))}


class Stored:
    """What is set on a host for the targets of items."""

    def __init__(self, host: Host, facts: HostFacts, rows: Mapping[str, Row], form: str) -> None:
        """`rows` by path; `form` is that of the raw fragments which count."""
        self.host, self.facts, self.rows = host, facts, rows
        self.fragments = {row.served_id: row.fields for row in Fragment.objects.filter(host=host, form=form)}
        self._pinned: dict[str, dict[str, Any]] = {}
        self._variants: dict[str, dict[str, dict[str, Any]]] = {}

    def value(self, target: Target) -> Any:
        """None where nothing is set."""
        match target.kind:
            case Kind.OVERRIDE:
                return self._override(target)
            case Kind.VARIANT:
                self._load(target.subject)
                held = self._variants[target.subject].get(target.variant.lower())
                return held.get(target.field) if held is not None and target.field else held is not None or None
            case Kind.SETTING:
                return section(self.host, target.subject).values.get(target.field)
            case Kind.FRAGMENT:
                fields = self.fragments.get(target.subject)
                return fields if not target.field else (fields or {}).get(target.field)
            case kind if kind in TAKERS:
                return TAKERS[kind].current(self.host, target)
        return None

    def in_force(self, target: Target) -> Any:
        """What holds although nobody set it, None where that is not known."""
        if target.kind == Kind.SETTING:
            return getattr(self.facts.settings, attribute_of(target.field), None)
        is_ttl = target.kind == Kind.OVERRIDE and target.field == "ttlSec"
        return self.facts.settings.ttl_sec if is_ttl else None

    def _override(self, target: Target) -> Any:
        if not target.field:
            return True
        self._load(target.subject)
        return self._pinned[target.subject].get(target.field)

    def _load(self, path: str) -> None:
        if path in self._pinned:
            return
        held = pinned(self.rows[path], self.facts)
        self._pinned[path] = held.fields
        self._variants[path] = {
            variant.name.lower(): convert.variant_fields(variant) for variant in held.override.variants
        }
