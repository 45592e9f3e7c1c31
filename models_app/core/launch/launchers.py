"""The registry of launchers: one entry per kind of engine that we can start."""

from __future__ import annotations

from models_app.core.launch import llama, sd
from models_app.core.launch.launcher import Launcher

LAUNCHERS: tuple[Launcher, ...] = (llama.LAUNCHER, sd.LAUNCHER)


def launcher_of(kind: str) -> Launcher | None:
    """The launcher of a backend kind, None where nothing starts it yet."""
    return next((launcher for launcher in LAUNCHERS if launcher.kind == kind), None)
