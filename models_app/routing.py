"""What a host worker does at its router: looks, loads, unloads, has a new file read. No database, no Django."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from models_app.core.export.presets import reading
from models_app.core.export.presets.grammar import PresetSyntaxError
from models_app.core.export.target import replace_file
from models_app.router.client import CLIENTS
from models_app.router.connection import Connection, RouterAway, RouterError, RouterRefused
from models_app.router.state import HOLDING, RouterState
from models_app.target_file import MAX_BYTES, Written

LOAD_SECONDS = 300.0
UNLOAD_SECONDS = 60.0
_PAUSE_SECONDS = 0.5
_SHOWN_CHARACTERS = 16_000
"""Of one command: a page shows no more."""
ALL = "*"

Tell = Callable[[str], None]
Goes = Callable[[], bool]


def connection_of(inputs: Mapping[str, Any]) -> Connection:
    return Connection(str(inputs["url"]), str(inputs.get("key", "")))


def look(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The state of a router as JSON, or why there is none: {"problem": text}."""
    try:
        return shown(CLIENTS[inputs["kind"]].look(connection_of(inputs)))
    except RouterError as error:
        return {"problem": str(error)}


def shown(state: RouterState) -> dict[str, Any]:
    """What is sent and stored: commands only of what runs, and no longer than a page shows."""
    facts = state.as_json()
    for model in facts["models"]:
        if model["state"] not in HOLDING or sum(map(len, model["command"])) > _SHOWN_CHARACTERS:
            model["command"] = []
    return {"problem": "", **facts}


def act(inputs: Mapping[str, Any], tell: Tell, goes_on: Goes) -> dict[str, Any]:
    """Load or unload a model, wait until that is so, and say how the router is then. Raises RouterError."""
    client, connection = CLIENTS[inputs["kind"]], connection_of(inputs)
    model = str(inputs["model"])
    if inputs["action"] == "load":
        tell(f"Loading {model}")
        _load(inputs, connection, model)
        state = _wait(inputs, lambda now: _state_of(now, model) != "loading", LOAD_SECONDS, goes_on)
        reached = _state_of(state, model)
        if reached in ("failed", "unloaded"):
            code = next((item.exit_code for item in state.models if item.id == model), None)
            ended = "" if code is None else f" Its process ended with code {code}."
            raise RouterRefusal(f"{model} did not start.{ended} The reason stands in the router's log.")
    else:
        tell("Unloading all models" if model == ALL else f"Unloading {model}")
        if model == ALL:
            client.unload_all(connection)
        else:
            client.unload(connection, model)
        state = _wait(inputs, lambda now: not _holds(now, model), UNLOAD_SECONDS, goes_on)
        if _holds(state, model):
            raise RouterRefusal("The router was told, but something still runs: a request may be in flight.")
    return {"router": shown(state)}


class RouterRefusal(RouterError):
    """The router took the order and something else came of it."""


def _load(inputs: Mapping[str, Any], connection: Connection, model: str) -> None:
    client = CLIENTS[inputs["kind"]]
    try:
        client.load(connection, model)
    except RouterRefused as refused:
        if refused.reason == "model is already running":
            return
        if refused.status == 500 and client.look(connection).all_slots_busy:
            raise RouterRefusal("All slots of the router are busy: unload a model first, or try again later.") from None
        if refused.status == 404:
            raise RouterRefusal(f"The router does not know {model}: has it read the newest file?") from None
        raise


def _wait(
    inputs: Mapping[str, Any], reached: Callable[[RouterState], bool], seconds: float, goes_on: Goes
) -> RouterState:
    """The first state in which something is so, or the last one when the time is over."""
    client, connection, end = CLIENTS[inputs["kind"]], connection_of(inputs), time.monotonic() + seconds
    while True:
        state = client.look(connection)
        if reached(state) or time.monotonic() > end or not goes_on():
            return state
        time.sleep(_PAUSE_SECONDS)


def _state_of(state: RouterState, model: str) -> str:
    return next((item.state for item in state.models if model in (item.id, *item.aliases)), "unloaded")


def _holds(state: RouterState, model: str) -> bool:
    return bool(state.held) if model == ALL else _state_of(state, model) in HOLDING


def read_now(path: str) -> bytes | None:
    """The bytes of a router's file before it is written; None for no file, or one that cannot be kept in memory."""
    try:
        with Path(path).open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except OSError:
        return None
    return data if len(data) <= MAX_BYTES else None


def reload(inputs: Mapping[str, Any], written: Written, before: bytes | None, text: str) -> dict[str, Any]:
    """Have the router read its new file: {"outcome": text, "warned": bool}.

    When it refuses, the file before is put back and read again, because llama-server may hang on every load after that
    (router-llama-server.md 6.4); then RouterRefusal is raised. A router that does not answer keeps the new file.
    """
    client, connection = CLIENTS[inputs["kind"]], connection_of(inputs)
    if client.reload is None:
        return {"outcome": "nothing to call: this router finds a new file by itself", "warned": False}
    try:
        listed = client.reload(connection)
    except RouterRefused as refused:
        if refused.status < 500:
            return {"outcome": f"not reloaded: {refused}", "warned": True}
        raise RouterRefusal(_put_back(client.reload, connection, written, before, refused.reason)) from refused
    except RouterAway as away:
        return {"outcome": f"not reloaded: {away}", "warned": True}
    return _compared(listed, text)


def _put_back(
    again: Callable[[Connection], Sequence[str]],
    connection: Connection,
    written: Written,
    before: bytes | None,
    reason: str,
) -> str:
    """Restore the file and have it read; in words what came of it."""
    refused = f"The router refused the new file ({reason})."
    target = Path(written.path)
    try:
        if before is None:
            target.unlink(missing_ok=True)
            return f"{refused} There was no file before, so it was taken away again."
        replace_file(target, before)
    except OSError as error:
        return f"{refused} The file before could not be put back: {error.strerror}. Its backup is {written.backup}."
    try:
        again(connection)
    except RouterError as error:
        return f"{refused} The file before was put back, but was not read: {error}. Restart the router."
    return f"{refused} The file before was put back and read again: nothing has changed."


def _compared(listed: Sequence[str], text: str) -> dict[str, Any]:
    """Do the models that the router lists now stand in the text, and all of them?"""
    try:
        meant = set(reading.read(text).models)
    except (PresetSyntaxError, reading.PresetError):
        meant = set(listed)
    missing, foreign = len(meant - set(listed)), len(set(listed) - meant)
    if not missing and not foreign:
        count = len(listed)
        return {"outcome": f"reloaded: the router lists {count} model{'' if count == 1 else 's'}", "warned": False}
    said = f"reloaded, but the router lacks {missing} of the written models and lists {foreign} others"
    return {"outcome": f"{said}: does it read this file?", "warned": True}
