"""What a model class is, as data. A class's own file holds its rules; `__init__` holds the order of asking."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from models_app.core.catalog import Header

Match = Callable[[str, Header | None], str]
"""(file name, header or None) -> why the file is of this class, "" when it is not."""


@dataclass(frozen=True, slots=True)
class Classification:
    """The class of one file and the reason. `skipped`: known, but nothing here can serve it; `ignored`: no model."""

    model_class: str
    reason: str

    @property
    def is_servable(self) -> bool:
        return self.model_class not in (SKIPPED, IGNORED)


SKIPPED = "skipped"
IGNORED = "ignored"


@dataclass(frozen=True, slots=True)
class ModelClass:
    """One class: its id (also the text in a config), label, tab, and the test that claims a file."""

    slug: str
    label: str
    category: str
    """Tab that shows it; audio.cpp models go by their task instead."""
    match: Match
    takes_sidecars: bool = False
    """May a drafter or projector of its folder be attached?"""


def has_prefix(architecture: str, names: tuple[str, ...]) -> bool:
    """The "exact or prefix" test of classes.md: equal to a listed name or starting with one, blanks and case aside."""
    return architecture.strip().lower().startswith(names)
