"""`up --serve`: llama-server as a router over the presets that this host writes, started once there are some."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gpus_app.core.errors import UsageError
from gpus_app.core.probes.program import run_program
from quartermaster_site import env, processes
from quartermaster_site.network import check_port
from quartermaster_site.processes import Child

DEFAULT_PORT = 8080
ADDRESS = "127.0.0.1"
NAME = "router"
_ROUTER_FLAG = "--models-preset"
_HELP_SECONDS = 20.0
_RUN = "; RUN: "
_HEAD_BYTES = 1 << 16
_ONE_MODEL = "LLAMA_ARG_MODEL"
"""With it in the environment llama-server is no router, and says nothing about it."""


@dataclass
class Serving:
    """A router that is to run. `presets` appears when the first text is written."""

    server: str
    presets: Path
    port: int
    started: bool = False
    most: int = 0
    """How many models at a time the running router was started for."""
    _seen_ns: int = 0
    """Time of the file when its number was last read."""

    @property
    def address(self) -> str:
        return f"http://{ADDRESS}:{self.port}"

    def start_if_ready(self) -> Child | None:
        """The router's process, once, as soon as there is a file to read."""
        if self.started or not self.presets.is_file():
            return None
        self.started = True
        return self._start()

    def follow(self, child: Child) -> Child | None:
        """Another process in the place of `child` where the file names another number of models by now, else None.

        A router takes that number only at its start, and one that is too large would fill the memory twice.
        """
        try:
            changed_ns = self.presets.stat().st_mtime_ns
            if changed_ns == self._seen_ns or models_max(self.presets) == self.most:
                self._seen_ns = changed_ns
                return None
        except OSError:  # a file that is gone for a moment changes nothing
            return None
        processes.stop_all([child])
        return self._start()

    def _start(self) -> Child:
        self._seen_ns = self.presets.stat().st_mtime_ns
        self.most = models_max(self.presets)
        return processes.start(
            NAME,
            self.command(),
            environment={name: value for name, value in env.program_environment().items() if name != _ONE_MODEL},
            folder=self.presets.parent,
            log_folder=env.data_dir() / "logs",
            optional=True,
        )

    def command(self) -> list[str]:
        """Every further flag would override all sections of the file."""
        words = [self.server, "--models-preset", str(self.presets), "--models-max", str(self.most)]
        return [*words, "--host", ADDRESS, "--port", str(self.port), "--cors-origins", "localhost"]


def checked_port(port: int) -> None:
    """Raise UsageError when the router cannot listen there."""
    try:
        check_port(ADDRESS, port)
    except UsageError as error:
        raise UsageError(str(error).replace("--port", "--serve")) from error


def models_max(presets: Path) -> int:
    """How many models fit at a time, as the file's start line says; 1 where it says nothing."""
    with presets.open("rb") as stream:
        head = stream.read(_HEAD_BYTES).decode("utf-8", "replace")
    line = next((line for line in head.splitlines() if line.startswith(_RUN)), "")
    try:
        words = shlex.split(line.removeprefix(_RUN))
        return max(int(words[words.index("--models-max") + 1]), 1)
    except (ValueError, IndexError):
        return 1


def server_with_router(candidates: Sequence[str]) -> str:
    """The first program whose help knows router mode; "" for none."""
    return next((path for path in candidates if _knows_router_mode(path)), "")


def _knows_router_mode(path: str) -> bool:
    try:
        run = run_program([path, "--help"], _HELP_SECONDS, env.program_environment())
    except (OSError, ValueError):
        return False
    return _ROUTER_FLAG in f"{run.stdout}{run.stderr}"


def serving_of(port: int) -> Serving | str:
    """What to start, or in a sentence why nothing is. Django must be set up."""
    from gpus_app.models import Host
    from models_app.services.serving import candidates, prepare_serving
    from quartermaster_site.errors import Refused

    host = Host.objects.get(slug=env.host_slug())
    found = candidates(host)
    server = server_with_router(found)
    if not server:
        seen = f" ({', '.join(found)} cannot do that)" if found else ""
        return (
            f"--serve: no llama-server with router mode is registered or on the search path{seen}."
            " Register one on the Backends page or add its folder to PATH, then start again; the pages work without."
        )
    folder = env.data_dir() / NAME
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        presets = prepare_serving(host, path=os.fspath(folder / "models.ini"), url=f"http://{ADDRESS}:{port}")
    except Refused as refused:
        return f"--serve: {refused}"
    return Serving(server, Path(presets), port)
