"""The editor among 500 models on four hosts: previews, a bulk edit of all, and the weight of a model's pages.

Time is the processor's: it all runs in this process, and what else the machine does should not count. The new plan that
a save asks for runs in a worker and is not counted.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from typing import Any

from bench.many_models import fill_up
from bench.page import another_session, p95, post, row_of, signed_in_with
from bench.zoo_tree import zoo_tree

MODELS = 500
PREVIEW_P95_MS = 80.0
BULK_SECONDS = 5.0
PAGE_KB = 60.0
ASKED = 25
"""Models whose form is previewed, each in a session of its own: previews are limited by session."""
KNOBS = (
    {"ctx": "8192"},
    {"ctx": "16k", "kvK": "q8_0", "kvV": "q8_0"},
    {"parallel": "2", "threads": "5"},
    {"cpuOffload": "4", "temp": "0.7"},
)
TABS = ("", "edit/", "variants/", "launch/", "files/", "history/")


def run(quick: bool = False) -> list[dict[str, Any]]:
    """Rows for `quartermaster bench`; the limits are those of the product's goals."""
    with tempfile.TemporaryDirectory(prefix="qm-bench-data-") as data, zoo_tree() as folder:
        os.environ |= {"QM_DATA_DIR": data, "QM_DATABASE_URL": "", "QM_REDIS_URL": "", "QM_ROLE": "all"}
        os.environ["DJANGO_SETTINGS_MODULE"] = "quartermaster_site.settings"
        client, scanned = signed_in_with(folder)
        rows = _four_hosts()
        baseline = p95([lambda: client.get("/healthz")] * 20, time.process_time)
        previews = _previews(rows, 1 if quick else 3)
        bulk_preview, bulk = _bulk_seconds(client, rows)
        sizes_kb = [len(client.get(f"/models/{pk}/{tab}").content) / 1000 for pk in scanned for tab in TABS]
    return [
        row_of(f"preview among {MODELS} models on 4 hosts, p95", previews, baseline, PREVIEW_P95_MS),
        _plain(f"preview of a bulk edit of {MODELS} models", bulk_preview, "s", BULK_SECONDS),
        _plain(f"bulk edit of {MODELS} models", bulk, "s", BULK_SECONDS),
        _plain("page of one model, its heaviest tab, median", _of_heaviest_tabs(sizes_kb), "kB", PAGE_KB),
        _plain("the heaviest page of all", max(sizes_kb), "kB", None),
    ]


def _of_heaviest_tabs(sizes_kb: list[float]) -> float:
    """The median over models; the sizes are those of all tabs of one after the other."""
    count = len(TABS)
    return statistics.median(max(sizes_kb[at : at + count]) for at in range(0, len(sizes_kb), count))


def _four_hosts() -> list[int]:
    """Three more hosts, and 500 models with settings of their own on the first; the numbers of these models."""
    from gpus_app.models import Host
    from models_app.models import Override, Row
    from quartermaster_site.celery import app

    app.conf.task_always_eager = False
    fill_up(MODELS)
    for number in range(3):
        Host.objects.create(slug=f"more-{number}", name=f"more {number}")
    rows = list(Row.objects.filter(model_class="llm", header__facts__isnull=False)[:MODELS])
    pinned = {"threads": 3, "temp": 0.5}
    Override.objects.bulk_create(
        Override(host_id=row.host_id, match=row.path, fields=pinned, version=1) for row in rows[::2]
    )
    Override.objects.bulk_create(
        Override(host_id=row.host_id, match=f"*{row.served_id}-*", fields=pinned, version=1, position=number)
        for number, row in enumerate(rows[1::20])
    )
    return [row.pk for row in rows]


def _previews(rows: list[int], rounds: int) -> float:
    asked = rows[:: len(rows) // ASKED]
    people = {pk: another_session() for pk in asked}
    calls = [post(people[pk], f"/models/{pk}/edit/preview/", knobs) for pk in asked for knobs in KNOBS]
    return p95(calls * rounds, time.process_time)


def _bulk_seconds(client: Any, rows: list[int]) -> tuple[float, float]:
    """Of the preview, which stops by itself at four, and of storing the change."""
    from models_app.models import Override, Row

    versions = dict.fromkeys(rows, 0)
    paths = dict(Row.objects.filter(pk__in=rows).values_list("path", "pk"))
    versions |= {paths[own.match]: own.version for own in Override.objects.filter(match__in=paths)}
    form = {"rows": ",".join(f"{pk}:{version}" for pk, version in versions.items()), "key-1": "ub", "value-1": "256"}
    seconds = []
    for intent in ("preview", "apply"):
        started = time.process_time()
        answer = client.post("/models/bulk/", {**form, "intent": intent})
        seconds.append(time.process_time() - started)
        assert answer.status_code == 200, answer.status_code
    assert Override.objects.filter(fields__ub=256).count() >= len(rows) * 0.9
    return seconds[0], seconds[1]


def _plain(name: str, value: float, unit: str, limit: float | None) -> dict[str, Any]:
    return {"name": name, "value": value, "unit": unit, "baseline": None, "ratio": None, "limit": limit}
