"""Many machines at once: real agents on loopback, all first scans together, pages watched meanwhile.

The goals are absolute: everything scanned and planned in three minutes on two cores, the Overview quick at every
moment, each model exactly once, and never two scans or two writes of one host.
"""

from __future__ import annotations

import os
import statistics
import threading
import time
from collections import Counter
from http.client import HTTPException
from typing import Any

from bench.installation import Installation, Machine, installation, processor_seconds, wait_for

HOSTS, MODELS = 20, 500
WHOLE_SECONDS = 180.0
OVERVIEW_P95_MS = 150.0
MEMORY_MIB = 500.0
_GIVE_UP_SECONDS = 900.0
_VIEW_EVERY_SECONDS = 0.5


def run(quick: bool = False, *, hosts: int | None = None, models: int | None = None) -> list[dict[str, Any]]:
    """Rows for `quartermaster bench`."""
    hosts, models = hosts or (2 if quick else HOSTS), models or (50 if quick else MODELS)
    with installation() as found:
        for number in range(hosts):
            found.add_machine(f"gpu-{number:02d}", models)
        wait_for(lambda: _online() == hosts, 180, "the agents")
        alone = _Viewer(found)
        time.sleep(10 if not quick else 2)
        quiet = alone.stop()
        return _measured(found, quiet, models)


def _measured(found: Installation, quiet: list[float], models: int) -> list[dict[str, Any]]:
    watch = _Watch(found)
    viewer = _Viewer(found)
    web = [found.server_processes()["web"]]
    before, web_before = processor_seconds(found.all_processes()), processor_seconds(web)
    started = time.monotonic()
    _scan_all(found)
    scanned = planned = 0.0
    while not planned:
        watch.look()
        now = time.monotonic() - started
        scanned = scanned or (now if _finished("scan") == len(found.machines) else 0.0)
        planned = now if scanned and not _unfinished() and _planned() == len(found.machines) else 0.0
        if now > _GIVE_UP_SECONDS:
            raise TimeoutError(f"not done within {now:.0f} s: {_states()}")
        time.sleep(2)
    times = viewer.stop()
    spent, web_spent = processor_seconds(found.all_processes()) - before, processor_seconds(web) - web_before
    wrong = [problem for machine in found.machines for problem in _problems(machine)]
    assert not wrong, wrong[:5]
    assert not watch.doubled, watch.doubled
    total = len(found.machines) * models
    load = os.getloadavg()[0]
    return [
        {"name": f"{len(found.machines)} hosts x {models}: all scanned", "value": scanned, "unit": "s"},
        _row("all scanned and planned", planned, "s", WHOLE_SECONDS),
        _row("Overview while they scan, p95", _p95(times), "ms", OVERVIEW_P95_MS)
        | {"baseline": "the same before", "ratio": _p95(times) / _p95(quiet)},
        {"name": "the same, median", "value": statistics.median(times), "unit": "ms"},
        {"name": "processor time of the web server, a view", "value": 1000 * web_spent / len(times), "unit": "ms"},
        {"name": "processor time of all processes", "value": spent, "unit": "s"},
        {"name": f"rows lost or twice, of {total:,}", "value": 0, "unit": "", "limit_value": 0},
        {"name": "scans and writes at once of a host, most", "value": watch.most, "unit": "", "limit_value": 1},
        *(_row(f"memory: {name}", value, "MiB", MEMORY_MIB) for name, value in sorted(watch.memory.items())),
        {"name": "load of the machine at the end", "value": load, "unit": ""},
    ]


def _scan_all(found: Installation) -> None:
    """All at once; a look of a host at its folders may have been faster."""
    from gpus_app.models import Host
    from models_app.services import start_scan

    for machine in found.machines:
        start_scan(host=Host.objects.get(pk=machine.host_id), actor=found.actor)


class _Watch:
    """What must hold at every moment."""

    def __init__(self, found: Installation) -> None:
        self.found = found
        self.most = 0
        self.doubled: list[Any] = []
        self.memory: dict[str, float] = {}

    def look(self) -> None:
        from quartermaster_site.jobs.models import UNFINISHED, Job

        running = Job.objects.filter(state__in=UNFINISHED, kind__in=["scan", "publish"])
        counted = Counter(running.values_list("host__slug", "kind"))
        self.most = max(self.most, *counted.values(), 0)
        self.doubled += [key for key, number in counted.items() if number > 1]
        for name, value in self.found.memory_mib().items():
            self.memory[name] = max(self.memory.get(name, 0.0), value)


class _Viewer:
    """Somebody who asks for the Overview twice a second until `stop`."""

    def __init__(self, found: Installation) -> None:
        self.found, self._over = found, threading.Event()
        self.times: list[float] = []
        found.get("/")  # templates are compiled once
        self._thread = threading.Thread(target=self._view, daemon=True)
        self._thread.start()

    def _view(self) -> None:
        while not self._over.wait(_VIEW_EVERY_SECONDS):
            try:
                status, body, milliseconds = self.found.get("/")
            except (OSError, HTTPException):
                status, body, milliseconds = 0, b"", 0.0
            shown = status == 200 and b"gpu-00" in body
            self.times.append(milliseconds if shown else float("inf"))

    def stop(self) -> list[float]:
        self._over.set()
        self._thread.join()
        return list(self.times)


def _problems(machine: Machine) -> list[str]:
    """Paths that are on disk and not stored, stored and not on disk, or stored twice."""
    from models_app.models import Row

    stored = Counter(Row.objects.filter(host_id=machine.host_id).values_list("path", flat=True))
    on_disk = {str(path) for path in machine.models.iterdir()}
    lost, invented = on_disk - set(stored), set(stored) - on_disk
    twice = {path for path, number in stored.items() if number > 1}
    words = [(lost, "lost"), (invented, "invented"), (twice, "twice")]
    return [f"{path} is {word}" for paths, word in words for path in sorted(paths)]


def _online() -> int:
    from gpus_app.models import Host

    return sum(host.is_reachable for host in Host.objects.filter(agent__isnull=False))


def _finished(kind: str) -> int:
    """Hosts with a finished, good job of this kind."""
    from quartermaster_site.jobs.models import Job, State

    good = Job.objects.filter(kind=kind, state__in=[State.SUCCEEDED, State.WARNED])
    return good.values("host").distinct().count()


def _planned() -> int:
    """Hosts with a text made after their last scan."""
    from models_app.models import Revision

    return Revision.objects.values("host").distinct().count()


def _unfinished() -> int:
    from quartermaster_site.jobs.models import UNFINISHED, Job

    return Job.objects.filter(state__in=UNFINISHED, kind__in=["scan", "plan_host"]).count()


def _states() -> dict[Any, int]:
    from quartermaster_site.jobs.models import Job

    return dict(Counter(Job.objects.values_list("kind", "state")))


def _row(name: str, value: float, unit: str, limit: float) -> dict[str, Any]:
    return {"name": name, "value": value, "unit": unit, "limit_value": limit}


def _p95(times: list[float]) -> float:
    return statistics.quantiles(times, n=20)[-1]
