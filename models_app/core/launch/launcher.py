"""What a launcher is: how one kind of engine is started."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from models_app.core.launch.compose import Composition
from models_app.core.launch.flag_table import FlagTable


@dataclass(frozen=True, slots=True)
class Launcher:
    """One kind of engine. Its module in this package makes the one value of it that `LAUNCHERS` lists."""

    kind: str
    """Canonical name of the backend kind."""
    classes: tuple[str, ...]
    """Model classes that it runs."""
    formats: tuple[str, ...]
    """Formats of the model file that it reads."""
    health_path: str
    """What a router asks until it answers 200."""
    table: FlagTable
    command: Callable[..., Composition]
    """Renders the composed command of one launch; what it needs differs by engine."""

    def accepts(self, model_class: str, format_name: str) -> bool:
        """Can this engine run a model of the class, kept in that format?"""
        return model_class in self.classes and format_name in self.formats
