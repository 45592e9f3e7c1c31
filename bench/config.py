"""The config file of a large host: 1,000 models with four profiles each, from stored header facts to the review page.

What is timed is processor time: rendering from plans that are made, and the pages that compare two texts.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from typing import Any

from bench.zoo_tree import zoo_tree

MODELS = 1000
VARIANTS = [{"name": "fast", "ctx": 8192}, {"name": "cold", "temp": 0.1}, {"name": "hot", "temp": 1.3}]
RENDER_MS = 3000.0
REVIEW_MS = 1000.0


def run(quick: bool = False) -> list[dict[str, Any]]:
    """Rows for `quartermaster bench`: median milliseconds with the goals as limits."""
    with tempfile.TemporaryDirectory(prefix="qm-bench-data-") as data, zoo_tree() as folder:
        os.environ |= {"QM_DATA_DIR": data, "QM_DATABASE_URL": "", "QM_REDIS_URL": "", "QM_ROLE": "all"}
        os.environ["DJANGO_SETTINGS_MODULE"] = "quartermaster_site.settings"
        from bench.page import signed_in_with

        client, _ = signed_in_with(folder)
        return _measured(client, 3 if quick else 7)


def _measured(client: Any, rounds: int) -> list[dict[str, Any]]:
    from bench.many_models import fill_up
    from gpus_app.models import Host, HostSetting

    fill_up(MODELS)
    host = Host.objects.get()
    HostSetting.objects.create(host=host, section="variants", values={"defaultVariants": VARIANTS}, version=1)
    planning = _plan(host)
    entries, size_bytes, render = _render(Host.objects.get(), rounds)
    _make_live(Host.objects.get())
    HostSetting.objects.create(host=host, section="memory", values={"ttlSec": 5}, version=1)
    _plan(Host.objects.get())
    review = _median(lambda: _page(client, "/config/local/review/"), rounds)
    text = _median(lambda: _page(client, "/config/local/review/?tab=text"), rounds)
    shown = _median(lambda: _page(client, "/config/local/"), rounds)
    return [
        _row(f"planning and rendering {entries:,} entries", planning),
        _row(f"rendering them from plans, {size_bytes / 1e6:.1f} MB", render, RENDER_MS),
        _row("review page, every model changed", review, REVIEW_MS),
        _row("the same as text", text, 2 * REVIEW_MS),
        _row("config page", shown, REVIEW_MS),
    ]


def _plan(host: Any) -> float:
    """Milliseconds for the job that plans the host and keeps the text."""
    from gpus_app.services import request_plan
    from quartermaster_site.access.audit import Actor

    started = time.process_time()
    request_plan(host=host, actor=Actor())
    return (time.process_time() - started) * 1000


def _render(host: Any, rounds: int) -> tuple[int, int, float]:
    """Entries, bytes, and median milliseconds from plans to a checked text."""
    from models_app import convert
    from models_app.models import Row
    from models_app.services.building import planned_file
    from models_app.services.planning import HostPlanner, host_facts

    rows = [convert.core_row(row) for row in Row.objects.filter(host=host).exclude(state=Row.State.MISSING)]
    facts = host_facts(host)
    kept = _Kept(convert.header_lookup(host))
    made = planned_file(host, rows, facts, HostPlanner(facts, kept.headers, kept.take))

    def again() -> None:
        planned_file(host, rows, facts, kept)  # type: ignore[arg-type]

    return len(made.report.entries), len(made.text.encode()), _median(again, rounds)


class _Kept:
    """A planner that gives what was planned before."""

    def __init__(self, headers: Any) -> None:
        self.headers = headers
        self.planned: dict[str, Any] = {}

    def take(self, row: Any, header: Any, plans: Any, backend: Any) -> None:
        self.planned[row.full_path] = plans

    def __call__(self, row: Any, header: Any, override: Any) -> Any:
        return self.planned[row.full_path]


def _make_live(host: Any) -> None:
    from models_app.models import Revision
    from models_app.services.writing import take_as_written

    host.publish_path = "/srv/config.yaml"
    host.save()
    take_as_written(Revision.objects.select_related("host").order_by("-number")[0], path=host.publish_path)


def _page(client: Any, address: str) -> None:
    answer = client.get(address)
    assert answer.status_code == 200, answer.status_code


def _median(call: Callable[[], None], rounds: int) -> float:
    call()
    times = []
    for _ in range(rounds):
        started = time.process_time()
        call()
        times.append((time.process_time() - started) * 1000)
    return statistics.median(times)


def _row(name: str, value: float, limit_ms: float | None = None) -> dict[str, Any]:
    return {"name": name, "value": value, "unit": "ms", "limit_value": limit_ms}
