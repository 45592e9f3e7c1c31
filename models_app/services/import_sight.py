"""What of an import a person sees, and which parts of it they may take over."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

from models_app.core.imports.report import Item, Kind, Target
from models_app.models import ImportBatch
from models_app.selectors.entry_sight import EntrySight
from models_app.selectors.rule_sight import held_models
from quartermaster_site.access.permissions import Level, level_of
from quartermaster_site.errors import NotAllowed
from quartermaster_site.figures import counted


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
        return self.level

    def require_editable(self, targets: Iterable[Target]) -> None:
        """Raise NotAllowed where one of them is about something that the person may not edit."""
        held = sum(self.level_of(target) < Level.EDIT for target in targets)
        if held:
            raise NotAllowed(f"This import set {counted(held, 'row')} that you may not edit.")
