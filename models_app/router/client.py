"""The routers that can be asked, by the dialect of the file they read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from models_app.router import llama_server, llama_swap
from models_app.router.connection import Connection
from models_app.router.state import RouterState


@dataclass(frozen=True, slots=True)
class Client:
    """What one kind of router can be asked. `reload` is None where the router finds a new file by itself."""

    look: Callable[[Connection], RouterState]
    load: Callable[[Connection, str], None]
    unload: Callable[[Connection, str], None]
    unload_all: Callable[[Connection], None]
    reload: Callable[[Connection], tuple[str, ...]] | None = None


_LLAMA_SWAP = Client(llama_swap.look, llama_swap.load, llama_swap.unload, llama_swap.unload_all)
CLIENTS = {
    "llama-server": Client(
        llama_server.look, llama_server.load, llama_server.unload, llama_server.unload_all, llama_server.reload
    ),
    "llama-swap": _LLAMA_SWAP,
    "quartermaster": Client(llama_swap.quartermaster_look, llama_swap.load, llama_swap.unload, llama_swap.unload_all),
}
DEFAULT_URLS = {
    "llama-server": "http://127.0.0.1:8080",
    "llama-swap": "http://127.0.0.1:8080",
    "quartermaster": "http://127.0.0.1:1250",
}
"""Where each listens unless it was told otherwise: what an empty field suggests."""
