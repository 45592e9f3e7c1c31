"""What writing a file does to the models that run (web.md 1.3, router-llama-server.md 6.4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from models_app.core.export import presets
from models_app.core.export.dialects import BY_SLUG
from models_app.core.export.presets.router import changed_sections
from models_app.core.export.revisions.compare import Difference
from models_app.core.export.revisions.outline import Outline

Scope = Literal["all", "some", "none"]


@dataclass(frozen=True, slots=True)
class Effect:
    """`stops`: which running models end. `models` are those that stop or, where none stop, whose arguments change."""

    stops: Scope
    models: tuple[str, ...] = ()


def effect_of(dialect: str, before: Outline, after: Outline, difference: Difference) -> Effect:
    """What the router does when it reads the new file; which models run is not asked."""
    if BY_SLUG[dialect].stops_models_on_reload:
        return Effect("all", tuple(before.models))
    if dialect == presets.SLUG:
        stopped = changed_sections(_sections(before), _sections(after))
        return Effect("some" if stopped else "none", stopped)
    names = (change.was_id or change.id for change in difference.models if change.kind != "added")
    return Effect("none", tuple(names))


def _sections(outline: Outline) -> dict[str, dict[str, str]]:
    return {
        name: {key: value for key, value in model.flags.items() if isinstance(value, str)}
        for name, model in outline.models.items()
    }
