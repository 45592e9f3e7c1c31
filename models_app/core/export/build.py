"""A whole document from planned models and settings, in the quartermaster dialect (config-yaml.md 1, 3)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gpus_app.core.budget import Budget
from models_app.core.catalog import Plan
from models_app.core.export.document import Document, Entry, Skipped
from models_app.core.export.entry import PlannedModel, declared_entry, entry_of
from models_app.core.export.extra_models import extra_model
from models_app.core.export.groups import assign_groups, coexist_set
from models_app.core.export.macros import ENVIRONMENT, neutral
from models_app.core.export.scalars import has_lone_surrogate
from models_app.core.export.top import header_lines, top_level
from models_app.core.launch.paths import unlaunchable
from models_app.core.launch.tokens import POSIX
from models_app.core.plans.engines.hand_declared import declared_override
from models_app.core.settings import ExtraImageModel, Override, Settings


@dataclass(frozen=True, slots=True)
class Declared:
    """What is known of image models that are declared by hand, beside the declarations themselves."""

    overrides: Mapping[str, Override] = field(default_factory=dict)
    """By what they match: the file of a declaration, or its name."""
    devices: Callable[[Override], Budget | None] = lambda override: None
    """The devices of the host as the server of a launch calls them; None where nobody measured any."""


class _Builder:
    """Collects entries under unique ids; what cannot be written becomes a comment."""

    def __init__(self, settings: Settings, declared: Declared, word_rules: str) -> None:
        self.settings, self.declared, self.word_rules = settings, declared, word_rules
        self.items: list[Entry | Skipped] = []
        self.ids: set[str] = set()
        self.names: set[str] = set()
        """Ids and aliases."""
        self.coexist: dict[str, list[str]] = {}

    def add_skipped(self, skipped: Skipped) -> None:
        self.items.append(skipped)

    def add_model(self, model: PlannedModel) -> None:
        """All profiles of one row. A failure while writing one is that profile's comment, never the file's end."""
        for plan in model.plans:
            reason = self._refusal(plan)
            if reason:
                self.add_skipped(_skipped(model, plan.profile_id, reason, plan.model_class))
                continue
            try:
                entry = entry_of(model, plan, self.settings, self.names)
            except (TypeError, ValueError) as error:
                self.add_skipped(_skipped(model, plan.profile_id, str(error), plan.model_class))
                continue
            self._add_entry(entry)
            if name := coexist_set(plan.model_class, plan.engine, model.override):
                self.coexist.setdefault(name, []).append(entry.id)

    def _refusal(self, plan: Plan) -> str:
        if plan.skip_reason:
            return plan.skip_reason
        if plan.profile_id in self.ids:
            return "that id is taken"
        if not plan.lines:
            return f"not planned yet: {plan.model_class}"
        if any(has_lone_surrogate(text) for text in (plan.profile_id, *plan.lines)):
            return "its name holds bytes that are not UTF-8; rename the file"
        # A tab between the words of a person's text is a blank; a file with one in its name is refused when found.
        # A quoted line break lies between two lines: the file joins them by a blank, and it would be another word.
        texts = (*plan.lines, *plan.argv)
        if any(unlaunchable(text.replace("\t", " ").strip()) for text in texts):
            return "its command holds a line break or another control character"
        return ""

    def _add_entry(self, entry: Entry) -> None:
        self.items.append(entry)
        self.ids.add(entry.id)
        self.names.update((entry.id, *(entry.fields.get("aliases") or ())))

    def add_declared(self) -> None:
        """Hand-declared models, after all discovered ones."""
        for image in self.settings.extra_image_models:
            name = image.name.strip()
            if not name and not image.model_path.strip():
                continue  # a row that nobody has filled in yet
            label = f'extra image model "{neutral(name)}"'
            if reason := self._declared_refusal(image):
                self.add_skipped(Skipped(name, reason, label, "image", image.model_path))
            else:
                self._add_entry(self._declared_entry(image))
        for name, block in self.settings.extra_models.items():
            item = extra_model(name, block, self.names)
            if isinstance(item, Entry):
                self._add_entry(item)
            else:
                self.add_skipped(item)

    def _declared_entry(self, image: ExtraImageModel) -> Entry:
        """An override names one by its file or by its name."""
        overrides = self.declared.overrides
        own = overrides.get(image.model_path.strip()) or overrides.get(image.name.strip())
        devices = self.declared.devices(declared_override(image, own))
        return declared_entry(image, self.settings, own, devices=devices, word_rules=self.word_rules)

    def _declared_refusal(self, image: ExtraImageModel) -> str:
        name = image.name.strip()
        if not name:
            return "it has no name"
        if not image.model_path.strip():
            return "it has no model path"
        if name in self.names:
            return "that id is taken"
        if any(has_lone_surrogate(text) or unlaunchable(text) for text in (name, image.model_path)):
            return "its name or path holds characters that no command can carry"
        return ""


def _skipped(model: PlannedModel, served_id: str, reason: str, model_class: str) -> Skipped:
    return Skipped(neutral(served_id), neutral(reason), "", model_class, model.row.full_path)


def build_document(
    items: Iterable[PlannedModel | Skipped],
    settings: Settings,
    timestamp: str,
    *,
    cache_dir: str = "",
    declared: Declared | None = None,
    word_rules: str = POSIX,
) -> Document:
    """The file of one host. `items` are in emitted order; `timestamp` is the text of the header's first line.

    `word_rules` are those of the host.
    """
    builder = _Builder(settings, declared or Declared(), word_rules)
    for item in items:
        if isinstance(item, Skipped):
            builder.add_skipped(item)
        else:
            builder.add_model(item)
    builder.add_declared()
    top, notes = _top(settings, cache_dir)
    return Document(
        dialect="quartermaster",
        header=header_lines(settings, timestamp),
        notes=notes,
        top=top,
        models=tuple(builder.items),
        tail=grouping(settings, [item.id for item in builder.items if isinstance(item, Entry)], builder.coexist),
        word_rules=word_rules,
    )


def _top(settings: Settings, cache_dir: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The blocks on top. A prompt with an environment macro would fail the load, or leak a variable into the file."""
    top = top_level(settings, cache_dir)
    table = top.get("promptEnhancers", {})
    unsafe = [name for name, fields in table.items() if ENVIRONMENT in name or ENVIRONMENT in str(fields)]
    if unsafe:
        top["promptEnhancers"] = {name: fields for name, fields in table.items() if name not in unsafe}
    if not top.get("promptEnhancers", True):
        del top["promptEnhancers"]
    notes = (f'SKIPPED prompt enhancer "{neutral(name)}": its text holds {neutral(ENVIRONMENT)}…' for name in unsafe)
    return top, tuple(notes)


def grouping(settings: Settings, emitted_ids: Sequence[str], coexist: dict[str, list[str]]) -> dict[str, Any]:
    """`groups` and, where a settings group has an address, `listeners`."""
    assignment = assign_groups(settings.groups, emitted_ids, coexist)
    tail: dict[str, Any] = {"groups": assignment.groups}
    if assignment.listeners:
        tail["listeners"] = assignment.listeners
    return tail
