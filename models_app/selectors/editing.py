"""What the editor of a model starts from: what is pinned, what bounds it, and its history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.db.models import QuerySet

from models_app.core.classes.qwentts import FIRST_FLAGS
from models_app.core.classes.tts import TTSCPP, tts_engine
from models_app.core.fields import VARIANT_FIELDS, Field
from models_app.core.fields.field import MODEL_ONLY, OWN
from models_app.core.fields.groups import model_fields, offered, takes_arguments, variant_fields
from models_app.core.launch.backends import engine_of
from models_app.core.launch.executables import readable_kinds
from models_app.core.launch.locks import locked_fields
from models_app.core.launch.ownership import custom_text, text_of
from models_app.core.launch.pins import read_pins
from models_app.core.planning.drafters import offered_chains
from models_app.core.plans.chosen import chosen_values
from models_app.core.settings import Override, Variant
from models_app.core.state.checks import Limits
from models_app.core.state.overrides import is_none
from models_app.core.state.variants import VISION
from models_app.models import Change, Row
from models_app.selectors.details import ModelDetail, model_detail
from models_app.services.arguments import rules_of
from models_app.services.editing import Pinned, pinned
from models_app.services.planning import HostFacts, Preview, host_facts, preview_plan
from quartermaster_site.errors import NotFound

MOST_CHANGES = 200
NO_CHANGE = "There is no such change."


@dataclass(frozen=True, slots=True)
class Editing:
    """One model as its editor sees it. `plan` is what is stored now, planned."""

    detail: ModelDetail
    facts: HostFacts
    pinned: Pinned
    plan: Preview
    engine: str

    @property
    def row(self) -> Row:
        return self.detail.row

    @property
    def is_moe(self) -> bool | None:
        return self.detail.header.is_moe if self.detail.header else None

    @property
    def fields(self) -> tuple[Field, ...]:
        """The form's fields: which backend only where there is a choice; a flag where the build has it or it is set.

        What is set stays, so that it can be cleared where another build has taken the place of the one it was set for.
        """
        fields = model_fields(self.row.model_class, self.engine)
        stored = self.pinned.fields
        flags = self._backend_flags
        found = offered(fields, FIRST_FLAGS if flags is None else flags, stored)
        hidden = set() if self.backends else {"backend"}
        if not (self.detail.found.mmproj_path or self.pinned.override.mmproj_file):
            hidden.add("mmproj")  # there is no projector to place
        kept = (field for field in found if field.key not in hidden or field.key in stored)
        return self.readable(tuple(kept), stored)

    def readable(self, fields: Sequence[Field], stored: Mapping[str, Any]) -> tuple[Field, ...]:
        """Without those whose stored value names something hidden: a save of the rest leaves them as they are."""
        names = self.detail.sight.names
        return tuple(field for field in fields if not names(str(stored.get(field.key, ""))))

    @property
    def chains(self) -> tuple[str, ...]:
        """Chains of speculative decoding that the model can run."""
        header = self.detail.header
        return offered_chains(bool(header and header.nextn_layers), self.detail.found.draft_kind)

    @property
    def takes_arguments(self) -> bool:
        return takes_arguments(self.row.model_class, self.engine)

    @property
    def help_spellings(self) -> tuple[str, ...] | None:
        """The flags that the executable of the model names in its help; None where that was not read."""
        flags = self._backend_flags
        return None if flags is None else tuple(sorted(flags))

    @property
    def _backend_flags(self) -> frozenset[str] | None:
        return self.facts.backend_for(self.pinned.override, self.row.model_class, self._speech_engine).flags

    @property
    def locked(self) -> dict[str, str]:
        """Fields that the model's launch text owns."""
        return self._locks(custom_text(self.pinned.override))

    def variant_fields(self, name: str, *, arguments: bool) -> tuple[Field, ...]:
        """Fields of a variant's form, the launch text among them where it is asked for and applies."""
        vision = name.lower() == VISION
        return variant_fields(
            self.row.model_class, self.engine, vision=vision, arguments=arguments and self.takes_arguments
        )

    def variant_locked(self, variant: Variant) -> dict[str, str]:
        """Fields that a variant's text owns: its own, or the one that it inherits."""
        own = text_of(variant)
        if not own.strip():
            return self.locked
        return {} if is_none(own) else self._locks(own)

    def _locks(self, text: str) -> dict[str, str]:
        return locked_fields(text, self.engine, is_moe=self.is_moe, rules=rules_of(self.row.host))

    def limits(self, inherited_rope: str = "") -> Limits:
        """What bounds the fields; `inherited_rope` is the RoPE scaling that holds where a form says nothing."""
        header = self.detail.header
        return Limits(
            trained_tokens=header.context_length if header else 0,
            block_count=header.block_count if header else 0,
            device_count=len(self.facts.budget.device_bytes),
            rope_scaling=read_pins(custom_text(self.pinned.override), rules_of(self.row.host)).rope_scaling
            or inherited_rope,
        )

    @property
    def backends(self) -> tuple[tuple[str, str], ...]:
        """(id, name) of the registered backends that can read the model's file."""
        kinds = readable_kinds(self.row.model_class, self._speech_engine)
        return tuple(
            (entry.id, f"{entry.name or entry.path} ({entry.kind})")
            for entry in self.facts.settings.backends
            if entry.kind in kinds
        )

    @property
    def _speech_engine(self) -> str:
        return speech_engine(self.row)

    @property
    def inherited(self) -> dict[str, Any]:
        """What the model hands down to its variants, by key."""
        handed = {field.key for field in VARIANT_FIELDS if field.inherit not in (OWN, MODEL_ONLY)}
        return {key: value for key, value in self.pinned.fields.items() if key in handed}

    def variant_values(self, variant: Variant, profile_id: str) -> Mapping[str, Any]:
        """What the entry of a variant would run with if the variant said nothing."""
        variants = tuple(
            Variant(name=variant.name) if item.name == variant.name else item for item in self.pinned.override.variants
        )
        override = replace(self.pinned.override, variants=variants)
        plans = preview_plan(row=self.row, override=override, facts=self.facts).plans
        plan = next((plan for plan in plans if plan.profile_id == profile_id), None)
        return chosen_values(plan, self.facts.settings) if plan else {}

    def automatic(self) -> Mapping[str, Any]:
        """What holds for a field that nobody sets: for those that are set, what would hold without any."""
        stored = chosen_values(self.plan.base, self.facts.settings)
        fields = self.pinned.fields
        if not fields:
            return stored
        bare = preview_plan(row=self.row, override=Override(), facts=self.facts)
        free = chosen_values(bare.base, self.facts.settings)
        return {key: (free if key in fields else stored)[key] for key in stored if key not in fields or key in free}


def speech_engine(row: Row) -> str:
    """Which of the two speech servers a speech model was made for; "" for other models."""
    return tts_engine(row.architecture, row.file_name) if row.model_class == "tts" else ""


def editing_of(row: Row, user: Any) -> Editing:
    """The editor's view of a row, for a person."""
    facts = host_facts(row.host, row.path)
    held = pinned(row, facts)
    engine = TTSCPP if speech_engine(row) == TTSCPP else engine_of(facts.settings, held.override, row.model_class)
    plan = preview_plan(row=row, override=held.override, facts=facts)
    return Editing(model_detail(row, user), facts, held, plan, engine)


def changes(row: Row) -> QuerySet[Change]:
    """Everything that was changed for a model and its variants, the newest first."""
    return Change.objects.filter(host=row.host, match=row.path, quant="", rule=0)


def get_change(row: Row, pk: int) -> Change:
    found = changes(row).filter(pk=pk).first()
    if found is None:
        raise NotFound(NO_CHANGE)
    return found


def authors(found: Sequence[Change]) -> dict[str, tuple[str, Any]]:
    """Key -> (who, when) of the last change of each field; the newest change first."""
    last: dict[str, tuple[str, Any]] = {}
    for change in found:
        for key in change.changes:
            last.setdefault(key, (change.actor, change.at))
    return last


def variant_versions(held: Pinned) -> dict[str, int]:
    """Name in lower case -> version, of the variants of a model's own override."""
    return {variant.name.lower(): variant.version for variant in held.own.variants.all()} if held.own else {}
