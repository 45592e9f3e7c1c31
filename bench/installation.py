"""A whole installation for load and chaos runs: a real Valkey, web and control worker as `up` starts them, and agents.

Everything is on this machine and in one folder that goes away with it; every process is stopped at the end.
"""

from __future__ import annotations

import http.client
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from quartermaster_site import processes, up
from quartermaster_site.processes import Child
from tests.tasks.brokers import Broker
from tests.tiny_models import tiny_gguf

_START_SECONDS = 60.0
_ENROL_PAUSE_SECONDS = 5.0
"""The server takes ten enrolments of one address at once, then one in five seconds."""
_LINKS_LIMIT_SECONDS = 180.0


@dataclass
class Machine:
    """One simulated machine: its host here, the agent process, its folders."""

    host_id: int
    slug: str
    folder: Path
    agent: Child

    @property
    def models(self) -> Path:
        return self.folder / "models"

    @property
    def target(self) -> Path:
        return self.folder / "router" / "config.yaml"

    def worker(self) -> psutil.Process | None:
        """The host worker that the agent has started; None while it has none."""
        try:
            return next(iter(psutil.Process(self.agent.process.pid).children()), None)
        except psutil.NoSuchProcess:
            return None


@dataclass
class Installation:
    folder: Path
    broker: Broker
    port: int
    web: Child
    control: Child
    actor: Any
    cookie: str
    machines: list[Machine] = field(default_factory=list)

    def add_machine(self, slug: str, count: int) -> Machine:
        """A host with a folder of that many small models, whose enrolled agent runs; nothing is scanned yet."""
        from gpus_app import enrolment
        from gpus_app.services import save_target
        from models_app.services import register_root

        folder = self.folder / slug
        machine = Machine(0, slug, folder, None)  # type: ignore[arg-type]
        machine.models.mkdir(parents=True)
        machine.target.parent.mkdir()
        for number in range(count):
            tiny_gguf(machine.models / f"{slug}-model-{number:05d}-Q4_0.gguf", name=f"{slug} model {number}")
        host, code = enrolment.create_host(slug=slug, name=slug, actor=self.actor)
        self._enrol(folder, code)
        register_root(host=host, path=str(machine.models), actor=self.actor)
        save_target(host=host, path=str(machine.target), dialect="llama-swap", actor=self.actor)
        machine.host_id = host.pk
        machine.agent = _agent(slug, folder)
        self.machines.append(machine)
        return machine

    def _enrol(self, folder: Path, code: str) -> None:
        command = [sys.executable, "-m", "quartermaster_site.agent.command", "--enrol-only"]
        end = time.monotonic() + _LINKS_LIMIT_SECONDS
        address = f"http://127.0.0.1:{self.port}"
        while True:
            tried = subprocess.run(
                [*command, "--server", address, "--code", code],
                env=_agent_environment(folder),
                capture_output=True,
                text=True,
            )
            if tried.returncode == 0:
                return
            if time.monotonic() > end:
                raise RuntimeError(f"the machine cannot be enrolled: {tried.stderr}")
            time.sleep(_ENROL_PAUSE_SECONDS)

    def get(self, path: str, timeout: float = 30) -> tuple[int, bytes, float]:
        """Status, body and milliseconds of a page, over a connection of its own, as the signed-in administrator."""
        started = time.perf_counter()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            connection.request("GET", path, headers={"Cookie": f"sessionid={self.cookie}"})
            answer = connection.getresponse()
            body = answer.read()
        finally:
            connection.close()
        return answer.status, body, (time.perf_counter() - started) * 1000

    def server_processes(self) -> dict[str, int]:
        """Name -> process id of those of the server."""
        worker = next(iter(psutil.Process(self.web.process.pid).children()), None)
        return {
            "web": worker.pid if worker else self.web.process.pid,
            "control worker": self.control.process.pid,
            "broker": self.broker.process.pid,
        }

    def all_processes(self) -> list[int]:
        """Process ids of the server, the agents and their workers."""
        workers = [worker.pid for machine in self.machines if (worker := machine.worker())]
        return [*self.server_processes().values(), *(machine.agent.process.pid for machine in self.machines), *workers]

    def memory_mib(self) -> dict[str, float]:
        """Resident MiB of each process of the server, and of the largest agent and host worker."""
        found = {name: _resident_mib(pid) for name, pid in self.server_processes().items()}
        workers = [worker.pid for machine in self.machines if (worker := machine.worker())]
        agents = [machine.agent.process.pid for machine in self.machines]
        return found | {
            "host worker (largest)": max(map(_resident_mib, workers), default=0.0),
            "agent (largest)": max(map(_resident_mib, agents), default=0.0),
        }


def processor_seconds(pids: Iterable[int]) -> float:
    """Spent so far by these processes."""
    spent = 0.0
    for pid in pids:
        try:
            spent += sum(psutil.Process(pid).cpu_times()[:2])
        except psutil.NoSuchProcess:
            continue
    return spent


def _resident_mib(pid: int) -> float:
    try:
        return float(psutil.Process(pid).memory_info().rss) / (1 << 20)
    except psutil.NoSuchProcess:
        return 0.0


@contextmanager
def installation(*broker_options: str) -> Iterator[Installation]:
    """A server that answers, without any machine yet."""
    with tempfile.TemporaryDirectory(prefix="qm-bench-data-") as name:
        folder = Path(name)
        broker = Broker("valkey", free_port(), *broker_options)
        children: list[Child] = []
        found = None
        try:
            found = _started(folder, broker, children)
            yield found
        finally:
            processes.stop_all([*(machine.agent for machine in found.machines), *children] if found else children)
            broker.stop()


def _started(folder: Path, broker: Broker, children: list[Child]) -> Installation:
    os.environ |= {
        "QM_DATA_DIR": str(folder / "server"),
        "QM_DATABASE_URL": os.environ.get("QM_BENCH_DATABASE_URL", ""),
        "QM_REDIS_URL": broker.url,
        "QM_AGENT_REDIS_URL": f"redis://127.0.0.1:{broker.port}/0",
        "QM_ROLE": "all",
        "QM_ALLOWED_HOSTS": "127.0.0.1",
        "DJANGO_SETTINGS_MODULE": "quartermaster_site.settings",
    }
    from quartermaster_site import env, preparation

    env.prepared_data_dir()
    env.secret_key()
    preparation.prepare()
    actor, cookie = _administrator()
    port = free_port()
    children.append(web := up._web("127.0.0.1", port))
    children.append(control := up._control_worker())
    found = Installation(folder, broker, port, web, control, actor, cookie)
    wait_for(lambda: answers(found), _START_SECONDS, "the pages")
    return found


def _administrator() -> tuple[Any, str]:
    """Somebody who may do everything, and the cookie of a session."""
    from django.conf import settings
    from django.contrib.auth import get_user_model
    from django.test import Client

    from bench.page import _finish_setup
    from quartermaster_site.access.audit import Actor
    from quartermaster_site.access.models import Account, Installation
    from quartermaster_site.celery import app

    app.loader.import_default_modules()
    user = get_user_model().objects.create_user("bench")
    Account.objects.create(user=user, role="admin")
    _finish_setup(Installation)
    client = Client()
    client.force_login(user)
    return Actor(user=user, name="bench"), client.cookies[settings.SESSION_COOKIE_NAME].value


def _agent_environment(folder: Path) -> dict[str, str]:
    """Nothing of the server's but where the sources are."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("QM_", "DJANGO_"))}
    return {**clean, "QM_DATA_DIR": str(folder / "agent-data"), "PYTHONPATH": os.getcwd()}


def _agent(slug: str, folder: Path) -> Child:
    return processes.start(
        f"agent-{slug}",
        [sys.executable, "-m", "quartermaster_site.agent.command"],
        environment=_agent_environment(folder),
        folder=Path.cwd(),
        log_folder=folder / "logs",
    )


def answers(found: Installation) -> bool:
    """Whether the Overview is shown."""
    try:
        return found.get("/", timeout=5)[0] == 200
    except (OSError, http.client.HTTPException):
        return False


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def wait_for(condition: Callable[[], bool], seconds: float, what: str, every: float = 1.0) -> float:
    """Seconds until it holds. Raises TimeoutError."""
    started = time.monotonic()
    while not condition():
        if time.monotonic() - started > seconds:
            raise TimeoutError(f"{what}: nothing within {seconds:.0f} s")
        time.sleep(every)
    return time.monotonic() - started
