"""llama-swap and the routers made from it (router-api.md): state from `/running`, a model is loaded by a request."""

from __future__ import annotations

import sys
from functools import partial
from typing import Any
from urllib.parse import quote

from models_app.core.errors import LaunchError
from models_app.core.launch.tokens import POSIX, WINDOWS, split_command
from models_app.router.connection import Connection, RouterAway, RouterRefused
from models_app.router.state import MAX_COMMAND_CHARACTERS, RoutedModel, RouterState, records, text, whole, words_of

KIND = "llama-swap"
RELOADS = False
"""It watches its file, or is told by a signal: there is nothing to call."""
UNLOAD_SECONDS = 45.0
"""An unload waits until the model is down."""
LOAD_SECONDS = 150.0
_RULES = WINDOWS if sys.platform == "win32" else POSIX
"""It runs on the machine that asks it."""
_STATES = {"starting": "loading", "ready": "loaded", "stopping": "stopping"}


def look(connection: Connection, kind: str = KIND) -> RouterState:
    """All listed models, and unlisted ones that run. `loaded` in the list includes starting: what runs says more."""
    version = connection.json("GET", "/api/version")
    listing = records(connection.json("GET", "/v1/models"), "data")
    running = {text(record.get("model")): record for record in records(connection.json("GET", "/running"), "running")}
    owners = {text(record.get("owned_by"), 40) for record in listing}
    if owners and "llamacpp" in owners:
        raise RouterAway("a llama-server answers there, not the router that this host's file is written for")
    names = dict.fromkeys([*(text(record.get("id")) for record in listing), *running])
    windows = {text(record.get("id")): record.get("context_length") for record in listing}
    models = [_model(name, running.get(name), windows.get(name)) for name in names if name]
    return RouterState(kind, text(version.get("version"), 100), tuple(models))


def state_of(connection: Connection, name: str) -> str:
    """The state of one model, from what runs alone; `unloaded` for one that does not."""
    running = records(connection.json("GET", "/running"), "running")
    found = next((record for record in running if record.get("model") == name), None)
    return "unloaded" if found is None else _STATES.get(text(found.get("state"), 20), "loading")


def load(connection: Connection, name: str) -> None:
    """Ask for the model's root page: the answer comes when it is ready, with whatever status its server gives."""
    try:
        connection.text("GET", f"/upstream/{quote(name)}/", seconds=LOAD_SECONDS)
    except RouterRefused as refused:
        if refused.from_router or refused.status in (401, 403, 502):
            raise


def unload(connection: Connection, name: str) -> None:
    connection.text("POST", f"/api/models/unload/{quote(name)}", seconds=UNLOAD_SECONDS)


def unload_all(connection: Connection) -> None:
    connection.text("POST", "/api/models/unload", seconds=UNLOAD_SECONDS)


def _model(name: str, running: dict[str, Any] | None, window: Any) -> RoutedModel:
    if running is None:
        return RoutedModel(name, "unloaded", window_tokens=whole(window, 1, 1 << 40))
    state = _STATES.get(text(running.get("state"), 20), "loading")
    return RoutedModel(name, state, command=_command(running.get("cmd")), window_tokens=whole(window, 1, 1 << 40))


def _command(value: Any) -> tuple[str, ...]:
    command = text(value, MAX_COMMAND_CHARACTERS)
    try:
        return words_of(split_command(command, _RULES))
    except LaunchError:  # a quote that is never closed: shown as it is
        return words_of([command])


quartermaster_look = partial(look, kind="quartermaster")
