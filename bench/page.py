"""Server time of pages and previews with the whole zoo scanned, against `/healthz` in the same run.

A private data folder, a real scan with tasks run at once, and Django's test client: everything but the network.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.zoo_tree import zoo_tree

BASELINE = "/healthz"
PREVIEW_P95_MS = 60.0
PAGE_P95_MS = 200.0
FITS_MODELS = 400
FITS_COLD_MS = 1000.0
FITS_WARM_MS = 100.0
KNOBS = ({"ctx": "32768"}, {"ctx": "8k", "kvK": "q8_0", "kvV": "q8_0"}, {"parallel": "4"}, {"ub": "1024"})


def run(quick: bool = False) -> list[dict[str, Any]]:
    """Rows for `quartermaster bench`: p95 in ms; the goals are absolute, the ratio is for comparing machines."""
    with tempfile.TemporaryDirectory(prefix="qm-bench-data-") as data, zoo_tree() as folder:
        os.environ |= {"QM_DATA_DIR": data, "QM_DATABASE_URL": "", "QM_REDIS_URL": "", "QM_ROLE": "all"}
        os.environ["DJANGO_SETTINGS_MODULE"] = "quartermaster_site.settings"
        client, rows = signed_in_with(folder)
        people = [another_session() for _ in rows]
        rounds = 1 if quick else 3
        baseline = p95([lambda: client.get("/healthz")] * 20)
        lists = p95([lambda: client.get("/models/")] * 10 * rounds)
        details = p95([get(client, f"/models/{pk}/") for pk in rows] * rounds)
        previews = p95(
            [
                post(person, f"/models/{pk}/preview/", knobs)
                for person, pk in zip(people, rows, strict=True)
                for knobs in KNOBS
            ]
            * rounds
        )
        fits_cold, fits_sorted, fits_warm = _fits(client, rounds)
    return [
        row_of("models list, p95", lists, baseline, PAGE_P95_MS),
        row_of("model page, p95", details, baseline, PAGE_P95_MS),
        row_of("preview, p95", previews, baseline, PREVIEW_P95_MS),
        row_of(f"what fits, {FITS_MODELS} models, nothing kept", fits_cold, baseline, FITS_COLD_MS),
        row_of("the same in the order of a column", fits_sorted, baseline, FITS_COLD_MS),
        row_of("the same again", fits_warm, baseline, FITS_WARM_MS),
    ]


def _fits(client: Any, rounds: int) -> tuple[float, float, float]:
    """Median milliseconds of the table of what fits: without kept answers, sorted by a context, and again."""
    from bench.many_models import fill_up
    from models_app.services.fits import KEPT

    fill_up(FITS_MODELS)
    path = "/hosts/local/fits/"

    def cold(query: str) -> float:
        KEPT.clear()
        return _milliseconds(get(client, f"{path}{query}"))

    client.get(path)
    plain = statistics.median(cold("") for _ in range(rounds))
    by_column = statistics.median(cold("?sort=32768") for _ in range(rounds))
    client.get(path)
    return plain, by_column, statistics.median(_milliseconds(get(client, path)) for _ in range(5 * rounds))


def _milliseconds(call: Callable[[], Any]) -> float:
    """Processor time: it all runs in this process, and what else the machine does should not count."""
    started = time.process_time()
    answer = call()
    assert answer.status_code == 200
    return (time.process_time() - started) * 1000


def signed_in_with(folder: Path) -> tuple[Any, list[int]]:
    """A client of an administrator, and the ids of all planned rows."""
    import django

    django.setup()
    from django.contrib.auth import get_user_model
    from django.core.management import call_command
    from django.test import Client

    from gpus_app.models import Device, Host
    from models_app import services
    from models_app.models import Root, Row
    from quartermaster_site.access.audit import Actor
    from quartermaster_site.access.models import Account, Installation

    without_a_web_server()
    call_command("migrate", verbosity=0)
    call_command("createcachetable", verbosity=0)
    user = get_user_model().objects.create_user("bench", password=os.urandom(12).hex())
    Account.objects.create(user=user, role="admin")
    _finish_setup(Installation)
    host, _ = Host.objects.get_or_create(slug="local", defaults={"name": "bench"})
    Device.objects.create(host=host, index=0, name="Bench GPU", total_bytes=24 << 30, free_bytes=24 << 30)
    Root.objects.create(host=host, path=str(folder))
    services.start_scan(host=host, actor=Actor())
    client = Client()
    client.force_login(user)
    return client, list(Row.objects.filter(model_class="llm").values_list("pk", flat=True))


def without_a_web_server() -> None:
    """Pages and tasks in this process, once Django is set up."""
    from django.conf import settings

    from quartermaster_site.celery import app

    settings.ALLOWED_HOSTS = ["*"]
    settings.STORAGES["staticfiles"] = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
    app.conf.task_always_eager = True


def _finish_setup(installation: Any) -> None:
    from django.utils import timezone

    row = installation.objects.first() or installation()
    row.setup_finished_at = timezone.now()
    row.save()


def another_session() -> Any:
    """Previews are limited per session, so every model gets one of its own."""
    from django.contrib.auth import get_user_model
    from django.test import Client

    person = Client()
    person.force_login(get_user_model().objects.get(username="bench"))
    return person


def get(client: Any, url: str) -> Callable[[], Any]:
    return lambda: client.get(url)


def post(client: Any, url: str, data: dict[str, str]) -> Callable[[], Any]:
    return lambda: client.post(url, data, headers={"hx-request": "true"})


def p95(calls: list[Callable[[], Any]], clock: Callable[[], float] = time.perf_counter) -> float:
    """Milliseconds; every answer must be a page (422: the field was out of that model's range)."""
    times = []
    calls[0]()
    for call in calls:
        started = clock()
        answer = call()
        times.append((clock() - started) * 1000)
        assert answer.status_code in (200, 422), f"{answer.status_code} for {answer.request['PATH_INFO']}"
    return statistics.quantiles(times, n=20)[-1]


def row_of(name: str, value: float, baseline: float, limit_ms: float) -> dict[str, Any]:
    return {
        "name": name,
        "value": value,
        "unit": "ms",
        "baseline": BASELINE,
        "ratio": value / baseline,
        "limit_value": limit_ms,
    }
