"""What of an import a person sees, and which parts of it they may take over."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from models_app.core.imports.report import Item, Kind, Target
from models_app.fleet_sections import NAMING
from models_app.models import ImportBatch
from models_app.selectors.entry_sight import EntrySight
from models_app.selectors.rule_sight import held_models
from quartermaster_site.access.permissions import Level, level_of


class ImportSight:
    """One import as one person may see and use it: by the model that each part of it is about."""

    def __init__(self, user: Any, batch: ImportBatch) -> None:
        self.user, self.batch = user, batch
        self.entries: Mapping[str, Any] = batch.report.get("models", {})
        self.sight = EntrySight(user, batch.host)

    @cached_property
    def level(self) -> Level:
        """What the person may do with the host."""
        return level_of(self.user, self.batch.host)

    def sees_entry(self, name: str) -> bool:
        """Whether an entry of the file is shown: by its id, and by the model that it was allotted to."""
        return self.sight.sees(name, self.entries[name].get("path", "")) if name in self.entries else True

    def sees(self, item: Item) -> bool:
        if self.sight.whole:
            return True
        told = (item.source, item.note, item.target.subject, str(item.value), str(item.ours))
        return (
            self.sees_entry(item.group)
            and self.level_of(item.target) >= Level.VIEW
            and not any(map(self.sight.names_hidden, told))
        )

    def hides_text(self, text: Any) -> bool:
        """Whether a text, or something that holds texts, names what is hidden."""
        for name in () if self.sight.whole else self.entries:
            self.sees_entry(name)
        return self.sight.names_hidden(str(text))

    def level_for(self, item: Item) -> Level:
        """How far the person may go with an item."""
        return self.level_of(item.target) if self.sees(item) else Level.NONE

    def level_of(self, target: Target) -> Level:
        """How far the person may go with what a target is about."""
        subject = target.subject
        match target.kind:
            case Kind.OVERRIDE | Kind.VARIANT:
                return self.sight.path_level(subject)
            case Kind.FRAGMENT if subject:
                return min(self.level, self.sight.level(subject))
            case Kind.RULE if held_models(self.user, self.batch.host, [(subject, target.variant)]):
                return min(self.level, Level.VIEW)
            case Kind.SETTING if subject in NAMING and not self.sight.whole:
                return min(self.level, Level.VIEW)
        return self.level

    @cached_property
    def targets(self) -> list[Target]:
        """What was written."""
        return [target_of(item) for item in self.batch.applied]

    def seen_targets(self) -> list[Target]:
        return [target for target in self.targets if self.level_of(target) >= Level.VIEW]

    @property
    def held(self) -> int:
        """How many of the rows that were written the person may not edit."""
        return sum(self.level_of(target) < Level.EDIT for target in self.targets)

    @property
    def may_undo(self) -> bool:
        return not self.held


def target_of(item: Mapping[str, Any]) -> Target:
    """What a record of an applied batch is about."""
    return Target(Kind(item["kind"]), item["subject"], item["variant"])
