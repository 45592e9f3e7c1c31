"""llama.cpp's own router (router-llama-server.md 5 and 6): `llama-server` that was started without a model."""

from __future__ import annotations

from typing import Any

from models_app.router.connection import Connection, RouterAway, RouterRefused
from models_app.router.state import MAX_NAME_CHARACTERS, RoutedModel, RouterState, records, text, texts, whole, words_of

KIND = "llama-server"
RELOADS = True
RELOAD_SECONDS = 70.0
"""A reload returns when the models whose section has changed are down: 10 s each unless a section says otherwise."""
LOAD_SECONDS = 30.0
"""A load returns at once, unless another model has to go first."""
_STATES = {"unloaded": "unloaded", "loading": "loading", "loaded": "loaded", "sleeping": "sleeping"}
_MAX_ALIASES = 100
_FROM_FILE = "preset"


def look(connection: Connection) -> RouterState:
    """All models and their states. It never loads or wakes one."""
    props = connection.json("GET", "/props")
    if props.get("role") != "router":
        raise RouterAway("a llama-server answers, but not as a router: it was started with a model")
    return _state(props, connection.json("GET", "/models"))


def load(connection: Connection, name: str) -> None:
    """Start a model; it is loaded some time later. Raises RouterRefused, with status 500 when all slots are busy."""
    connection.json("POST", "/models/load", {"model": name}, seconds=LOAD_SECONDS)


def unload(connection: Connection, name: str) -> None:
    """Tell a model to end; its state changes when the process is gone. One that is not running is no error."""
    try:
        connection.json("POST", "/models/unload", {"model": name})
    except RouterRefused as refused:
        if refused.reason != "model is not running":
            raise


def unload_all(connection: Connection) -> None:
    for model in look(connection).held:
        unload(connection, model.id)


def reload(connection: Connection, seconds: float = RELOAD_SECONDS) -> tuple[str, ...]:
    """Have the presets file read again; the ids that come from it. Raises RouterRefused with the router's reason."""
    answer = connection.json("GET", "/models?reload=1", seconds=seconds)
    return tuple(model.id for model in _models(answer) if model.from_file)


def _state(props: dict[str, Any], listing: dict[str, Any]) -> RouterState:
    slots = whole(props.get("max_instances"), 1, 1 << 20)
    return RouterState(KIND, text(props.get("build_info"), 100), tuple(_models(listing)), slots)


def _models(listing: dict[str, Any]) -> list[RoutedModel]:
    return [_model(record) for record in records(listing, "data") if text(record.get("id"))]


def _model(record: dict[str, Any]) -> RoutedModel:
    status, meta = record.get("status"), record.get("meta")
    status = status if isinstance(status, dict) else {}
    state = _STATES.get(text(status.get("value"), 20), "unloaded")
    failed = status.get("failed") is True and state == "unloaded"
    return RoutedModel(
        id=text(record["id"]),
        state="failed" if failed else state,
        aliases=texts(record.get("aliases"), _MAX_ALIASES, MAX_NAME_CHARACTERS),
        command=words_of(status.get("args")),
        exit_code=whole(status.get("exit_code"), -(1 << 31), 1 << 31) if failed else None,
        window_tokens=whole(meta.get("n_ctx"), 1, 1 << 40) if isinstance(meta, dict) else None,
        from_file=record.get("source") == _FROM_FILE,
    )
