"""Two hundred people watch the live page of a host: the real web server, a poll of each every five seconds.

The goals are absolute: the time of a poll as those who watch feel it, and that nobody's watching costs a sample.
"""

from __future__ import annotations

import http.client
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

VIEWERS = 200
POLL_P95_MS = 250.0
EVERY_SECONDS = 5.0
POINTS = 360
PATH = "/hosts/bench/live/"
GIB = 1 << 30


def run(quick: bool = False) -> list[dict[str, Any]]:
    """Rows for `quartermaster bench`: p95 of one viewer as the baseline, then of all of them."""
    with tempfile.TemporaryDirectory(prefix="qm-bench-data-") as data, ExitStack() as stack:
        os.environ |= {"QM_DATA_DIR": data, "QM_DATABASE_URL": "", "QM_REDIS_URL": "", "QM_ROLE": "all"}
        os.environ["DJANGO_SETTINGS_MODULE"] = "quartermaster_site.settings"
        cookies = _prepare()
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        stack.callback(_stop, server := _web(port))
        _wait_until_up(port, server)
        before = _samples()
        _watch(port, cookies[:8], 3, every=0.2)  # templates are compiled once
        alone = _watch(port, cookies[:1], 5 if quick else 20, every=0.5)
        started = _processor_seconds(server)
        together = _watch(port, cookies, 15 if quick else 60)
        spent = _processor_seconds(server) - started
        assert _samples() == before, "somebody's watching has cost a sample"
    return [
        _row("poll of one viewer, p95", alone, None, "", POLL_P95_MS),
        _row(f"poll of {VIEWERS} viewers, p95", together, alone, "poll of one", POLL_P95_MS),
        {"name": "processor time of the server, a poll", "value": 1000 * spent / len(together), "unit": "ms"},
        {"name": "polls a second", "value": len(together) / (15 if quick else 60), "unit": ""},
    ]


def _prepare() -> list[str]:
    """A host with eight devices and an hour of points; the session of each viewer."""
    import django

    django.setup()
    from django.conf import settings
    from django.contrib.auth import get_user_model
    from django.core.management import call_command
    from django.test import Client

    from quartermaster_site.access.models import Account, Installation

    call_command("migrate", verbosity=0)
    call_command("createcachetable", verbosity=0)
    call_command("collectstatic", interactive=False, verbosity=0)
    _finish_setup(Installation)
    _host()
    cookies = []
    for number in range(VIEWERS):
        user = get_user_model().objects.create_user(f"viewer-{number}")
        Account.objects.create(user=user, role="viewer")
        client = Client()
        client.force_login(user)
        cookies.append(client.cookies[settings.SESSION_COOKIE_NAME].value)
    return cookies


def _finish_setup(installation: Any) -> None:
    from django.utils import timezone

    row = installation.objects.first() or installation()
    row.setup_finished_at = timezone.now()
    row.save()


def _host() -> None:
    from datetime import timedelta

    from django.utils import timezone

    from gpus_app.models import Host, Telemetry, TelemetryPoint
    from gpus_app.telemetry import checked
    from models_app.models import Router

    now = timezone.now()
    host = Host.objects.create(slug="bench", name="bench", last_seen_at=now + timedelta(minutes=5))
    devices = [
        {"index": index, "name": f"card {index}", "total_bytes": 80 * GIB, "used_bytes": 40 * GIB, "ours_bytes": GIB}
        for index in range(8)
    ]
    ram = {"total_bytes": 512 * GIB, "available_bytes": 400 * GIB}
    disks = [{"path": f"/models/{number}", "total_bytes": GIB, "free_bytes": GIB} for number in range(4)]
    sample = checked({"devices": devices, "ram": ram, "disks": disks})
    Telemetry.objects.create(host=host, received_at=now, sample=sample, run="bench", number=1)
    values = {"devices": {str(index): [40 * GIB, 80 * GIB, 50.0, 60.0] for index in range(8)}, "ram": [GIB, GIB]}
    TelemetryPoint.objects.bulk_create(
        TelemetryPoint(host=host, slot=slot, at=now - timedelta(seconds=10 * slot), values=values)
        for slot in range(POINTS)
    )
    listed = [
        {"id": f"model-{number}", "state": "loaded", "since": now.isoformat(), "aliases": [], "command": []}
        for number in range(10)
    ]
    Router.objects.create(host=host, url="http://127.0.0.1:1", seen_at=now, listed=listed)


def _samples() -> tuple[Any, int]:
    from gpus_app.models import Telemetry, TelemetryPoint

    return Telemetry.objects.values_list("run", "number", "received_at").get(), TelemetryPoint.objects.count()


def _web(port: int) -> subprocess.Popen[bytes]:
    """The server as `up` starts it."""
    options = ["--bind", f"127.0.0.1:{port}", "--worker-class", "gthread", "--workers", "1", "--threads", "8"]
    command = [sys.executable, "-m", "gunicorn", "quartermaster_site.wsgi:application", *options]
    return subprocess.Popen(
        [*command, "--no-control-socket", "--log-level", "warning"],
        env=os.environ | {"QM_ROLE": "web", "QM_ALLOWED_HOSTS": "127.0.0.1"},
    )


def _stop(server: subprocess.Popen[bytes]) -> None:
    server.terminate()
    server.wait(timeout=20)


def _wait_until_up(port: int, server: subprocess.Popen[bytes]) -> None:
    for _ in range(60):
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            connection.request("GET", "/healthz")
            connection.getresponse().read()
            return
        except OSError:
            assert server.poll() is None, "the web server ended"
            time.sleep(1)
    raise TimeoutError("the web server does not answer")


def _watch(port: int, cookies: list[str], seconds: float, every: float = EVERY_SECONDS) -> list[float]:
    """Milliseconds of all polls of these viewers; each begins at a moment of its own."""
    end = time.monotonic() + seconds
    with ThreadPoolExecutor(len(cookies)) as viewers:
        watching = [viewers.submit(_view, port, cookie, end, every) for cookie in cookies]
        return [milliseconds for viewer in watching for milliseconds in viewer.result()]


def _view(port: int, cookie: str, end: float, every: float) -> list[float]:
    found = []
    headers = {"Cookie": f"sessionid={cookie}", "HX-Request": "true", "HX-Target": "live"}
    time.sleep(random.uniform(0, every))
    while time.monotonic() < end:
        started = time.perf_counter()
        # As a browser does: the server closes a connection that is idle for some seconds.
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        connection.request("GET", PATH, headers=headers)
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        found.append((time.perf_counter() - started) * 1000)
        assert answer.status == 200, answer.status
        assert b"model-9" in body, body[:200]
        time.sleep(max(0.0, every - (time.perf_counter() - started)))
    return found


def _processor_seconds(server: subprocess.Popen[bytes]) -> float:
    """Of the web server and its worker."""
    import psutil

    master = psutil.Process(server.pid)
    return sum(sum(process.cpu_times()[:2]) for process in (master, *master.children(recursive=True)))


def _row(name: str, times: list[float], baseline: list[float] | None, against: str, limit: float) -> dict[str, Any]:
    value = _p95(times)
    row: dict[str, Any] = {"name": name, "value": value, "unit": "ms", "limit_value": limit}
    return row | ({"baseline": against, "ratio": value / _p95(baseline)} if baseline else {})


def _p95(times: list[float]) -> float:
    return statistics.quantiles(times, n=20)[-1]
