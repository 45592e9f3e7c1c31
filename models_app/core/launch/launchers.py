"""The registry of launchers: one row per kind of engine that we can start."""

from __future__ import annotations

from dataclasses import dataclass

from models_app.core.launch.flag_table import FlagTable
from models_app.core.launch.llama_flags import LLAMA
from models_app.core.launch.sd_flags import SD


@dataclass(frozen=True, slots=True)
class Launcher:
    """One kind of engine. `table` is None where custom text is appended without composition."""

    kind: str
    """Canonical name of the backend kind."""
    classes: tuple[str, ...]
    """Model classes that it runs."""
    module: str
    """Module of this package that renders its command."""
    health_path: str
    """What the router asks until it answers 200."""
    table: FlagTable | None = None

    def accepts(self, model_class: str, format_name: str = "gguf") -> bool:
        """Can this engine run a model of the class, kept in that format?"""
        return model_class in self.classes and (self.kind != "llama" or format_name == "gguf")


LAUNCHERS: tuple[Launcher, ...] = (
    Launcher("llama", ("llm", "embedding", "decision"), "llama", "/health", LLAMA),
    Launcher("sd", ("image", "video"), "sd", "/", SD),
)


def launcher_of(kind: str) -> Launcher | None:
    """The launcher of a backend kind, None where nothing starts it yet."""
    return next((launcher for launcher in LAUNCHERS if launcher.kind == kind), None)
