"""Which entries of the files of one host a person sees, and the part of a comparison that is about these."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from gpus_app.models import Host
from models_app.core.export.revisions.compare import FieldChange, ModelChange
from models_app.core.export.revisions.outline import Outline
from models_app.models import Change, Row, StoredPlan
from models_app.selectors.comparing import Comparison
from models_app.selectors.sight import IN_PARTS, HostSight, sees_all
from quartermaster_site.access.grants import Grants, grants_of
from quartermaster_site.access.rules import Level, Scope


@dataclass(frozen=True)
class EntrySight:
    """What one person may do with the entries of one host. Those from whom nothing is hidden cost no query.

    Entries are judged by the model that they are of, else by their id and the file of their command: a text may name
    models that are gone.
    """

    user: Any
    host: Host
    hidden_ids: set[str] = field(default_factory=set)
    """Of entries that were looked at and are hidden."""

    @cached_property
    def whole(self) -> bool:
        return sees_all(self.user, self.host)

    @cached_property
    def grants(self) -> Grants:
        return grants_of(self.user)

    def level(self, name: str, path: str = "") -> Level:
        """How far the person may go with an entry of this id and model file."""
        return self.grants.on(self._scope(name, path)) if self.grants.rules else self.grants.default

    def sees(self, name: str, path: str = "") -> bool:
        if self.whole:
            return True
        seen = self.level(name, path) >= Level.VIEW
        if not seen:
            self.hidden_ids.add(name)
        return seen

    def names_hidden(self, text: str) -> bool:
        """Whether a text names something that is hidden from the person."""
        if self.whole or not text:
            return False
        hidden = self._hidden_profiles | self.hidden_ids
        return self._texts.names(text) or any(name in text and _stands_alone(name, text) for name in hidden)

    def shown(self, text: str) -> str:
        """A text, or what stands in its place where it names something hidden."""
        return IN_PARTS if self.names_hidden(text) else text

    def path_level(self, path: str) -> Level:
        """The same for the model of a file."""
        if not self.grants.rules:
            return self.grants.default
        return self.grants.on(self._by_path.get(path) or Scope(self.host.pk, (stem_of(path),), path))

    def _scope(self, name: str, path: str) -> Scope:
        known = self._by_path.get(path) or self._by_id.get(name) or self._by_id.get(name.partition(":")[0])
        if known is None:
            return Scope(self.host.pk, (name,), path)
        return known if name in known.names else replace(known, variant=name)

    @cached_property
    def _by_path(self) -> Mapping[str, Scope]:
        return {row.path: row.policy_scope() for row in _rows(self.host)}

    @cached_property
    def _by_id(self) -> Mapping[str, Scope]:
        paths = StoredPlan.objects.filter(row__host=self.host).order_by().values_list("profile_id", "row__path")
        served = {scope.names[0]: scope for scope in self._by_path.values()}
        return served | {name: self._by_path[path] for name, path in paths if path in self._by_path}

    @cached_property
    def _hidden_profiles(self) -> frozenset[str]:
        return frozenset(name for name in self._by_id if self.level(name) < Level.VIEW)

    @cached_property
    def _texts(self) -> HostSight:
        return HostSight(self.user, self.host.pk)


def _rows(host: Host) -> Iterable[Row]:
    return Row.objects.filter(host=host).order_by().only("host_id", "served_id", "base_id", "path")


def _stands_alone(name: str, text: str) -> bool:
    return bool(re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text))


def stem_of(path: str) -> str:
    """The name of a file without its ending, as its id begins."""
    return path.replace("\\", "/").rpartition("/")[2].rpartition(".")[0]


@dataclass(frozen=True, slots=True)
class Seen:
    """The part of a comparison that a person sees, and how many changes of it they do not."""

    comparison: Comparison
    unseen: int
    whole: bool


def seen_part(comparison: Comparison, sight: EntrySight) -> Seen:
    """What is about visible entries alone. Keys beside the models are shown whole, or not at all."""
    if sight.whole:
        return Seen(comparison, 0, True)
    difference = comparison.difference
    note_entries(comparison.outline, sight)
    unseen, models = 0, []
    for change in difference.models:
        seen = _seen_change(change, sight)
        unseen += seen != change
        if seen is not None:
            models.append(seen)
    unseen += sum(_names(item, sight) for item in difference.top)
    effect = replace(comparison.effect, models=tuple(name for name in comparison.effect.models if sight.sees(name)))
    shown = replace(
        comparison,
        difference=replace(difference, models=tuple(models), top=()),
        effect=effect,
        rows={path: row for path, row in comparison.rows.items() if sight.path_level(path) >= Level.VIEW},
        changes=[change for change in comparison.changes if sees_change(change, sight)],
    )
    return Seen(shown, unseen, False)


def note_entries(outline: Outline, sight: EntrySight) -> int:
    """How many entries of a text are hidden; from then on they are known where texts name them."""
    return sum(not sight.sees(name, model.path) for name, model in outline.models.items())


def _seen_change(change: ModelChange, sight: EntrySight) -> ModelChange | None:
    """The change without fields that name what is hidden; None where the entry is."""
    if not sight.sees(change.id, change.path) or (change.was_id and not sight.sees(change.was_id, change.path)):
        return None
    fields = tuple(item for item in change.fields if not _names(item, sight))
    return change if len(fields) == len(change.fields) else replace(change, fields=fields)


def _names(item: FieldChange, sight: EntrySight) -> bool:
    return any(sight.names_hidden(text) for text in (item.name, item.before or "", item.after or ""))


def sees_change(change: Change, sight: EntrySight) -> bool:
    """Whether a change of what is pinned is about something that the person sees; rules are judged by their texts."""
    if change.rule or not change.match:
        return sight.whole or not any(map(sight.names_hidden, (change.match, str(change.changes))))
    return sight.whole or sight.path_level(change.match) >= Level.VIEW
