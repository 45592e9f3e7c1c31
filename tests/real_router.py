"""llama-server as a router for tests: presets planned from a folder, a router over them, what its models' logs say."""

from __future__ import annotations

import io
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from gpus_app.core.budget import budget_of
from models_app.core.catalog import Header, Plan, Row
from models_app.core.export.llama_swap import Options
from models_app.core.generate import Generated, generate
from models_app.core.plans import plan_row
from models_app.core.settings import BackendEntry, Override, Settings
from models_app.core.units import MIB
from models_app.core.verbs.environment import Environment
from models_app.core.verbs.scan import scan
from models_app.router import llama_server
from models_app.router.connection import Connection, RouterAway
from models_app.router.state import RoutedModel
from tests.fit_params import free_port

_BUFFER = re.compile(
    r"(?P<device>[A-Za-z]+)\S*\s+(?P<what>model|KV|RS|compute|output) buffer size = +(?P<mib>[0-9.]+) MiB"
)


def planned(
    folder: Path,
    server: Path,
    overrides: Sequence[Override] = (),
    *,
    devices: int = 1,
    target: Path | None = None,
    plans: dict[str, Plan] | None = None,
) -> Generated:
    """Presets of all models in `folder` on devices of 80 GiB each, started by `server`; `plans` gets theirs by id."""
    environment = Environment(folder, datetime(2026, 11, 30, tzinfo=UTC), io.StringIO(), io.StringIO())
    found = scan([str(folder)], environment, use_cache=False)
    backend = BackendEntry(id="llama", kind="llama", path=str(server), default=True)
    settings = Settings(backends=(backend,))
    budget = budget_of([80.0] * devices, 512.0)

    def planner(row: Row, header: Header | None, override: Override) -> tuple[Plan, ...]:
        made = plan_row(row, header, override=override, settings=settings, budget=budget, headers=found.headers.get)
        if plans is not None:
            plans.update({plan.profile_id: plan for plan in made})
        return made

    return generate(
        found.inventory,
        planner,
        header_of=found.headers.get,
        settings=settings,
        timestamp="T",
        overrides=overrides,
        dialect=llama_server.KIND,
        options=Options(
            config_folder=str(target.parent) if target else "",
            file_name=target.name if target else "",
            router_executable=str(server),
        ),
    )


@contextmanager
def router(server: Path, presets: Path, *, slots: int = 4, log: Path | None = None) -> Iterator[Connection]:
    """A router over `presets`, its models' logs in full. Stopped with all its models."""
    port, log = free_port(), log or presets.with_suffix(".log")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LLAMA_")}
    # The download cache of whoever runs the tests must not show.
    environment |= {"LLAMA_ARG_LOG_VERBOSITY": "4", "LLAMA_CACHE": str(presets.parent / "no-cache")}
    words = ["--models-preset", presets, "--models-max", str(slots), "--host", "127.0.0.1", "--port", str(port)]
    with log.open("wb") as stream:
        process = subprocess.Popen(
            ["nice", server, *words],
            env=environment,
            stdout=stream,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    connection = Connection(f"http://127.0.0.1:{port}")
    try:
        until(lambda: _answers(connection), 20, lambda: process.poll() is None, lambda: log.read_text("utf-8")[-2000:])
        yield connection
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _answers(connection: Connection) -> bool:
    try:
        connection.json("GET", "/health", seconds=2)
    except RouterAway:
        return False
    return True


def until(
    condition: Callable[[], bool],
    seconds: float,
    goes_on: Callable[[], bool] = lambda: True,
    said: Callable[[], str] = lambda: "",
) -> None:
    """Wait for a condition, while `goes_on`; `said` is what a failure quotes."""
    end = time.monotonic() + seconds
    while not condition():
        assert goes_on(), f"it ended: {said()}"
        assert time.monotonic() < end, f"not within {seconds} s"
        time.sleep(0.1)


def model(connection: Connection, name: str) -> RoutedModel:
    return next(item for item in llama_server.look(connection).models if item.id == name)


def loaded(connection: Connection, name: str, seconds: float = 60) -> RoutedModel:
    """The model once it is loaded."""
    llama_server.load(connection, name)
    until(lambda: model(connection, name).state != "loading", seconds)
    found = model(connection, name)
    assert found.state == "loaded", found
    return found


def options_of(command: Sequence[str]) -> dict[str, str]:
    """Flags of a command with their values, `true` where there is none."""
    options, words = {}, list(command[1:])
    for position, word in enumerate(words):
        if word.startswith("--"):
            following = words[position + 1] if position + 1 < len(words) else "--"
            options[word[2:]] = "true" if following.startswith("--") else following
    return options


def buffers_of(log: str) -> dict[tuple[str, str], float]:
    """(device, kind) -> MiB that models said to hold, added up."""
    found: dict[tuple[str, str], float] = {}
    for line in _BUFFER.finditer(log):
        key = (line["device"], line["what"])
        found[key] = found.get(key, 0.0) + float(line["mib"])
    return found


def mib(size_bytes: int) -> float:
    return size_bytes / MIB
