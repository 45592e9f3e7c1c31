"""One host with 10,000 models: the list, a search, other pages, and planning all of them again.

The models are those of the zoo again and again. Everything runs in this process, so its peak of memory is above that of
the web server and of the control worker alone.
"""

from __future__ import annotations

import os
import resource
import statistics
import tempfile
import time
from typing import Any

from bench.zoo_tree import zoo_tree

MODELS = 10_000
LIST_P95_MS, SEARCH_P95_MS, OVERVIEW_P95_MS = 200.0, 200.0, 150.0
PLAN_SECONDS = 60.0
MEMORY_MIB = 500.0
PAGES = (
    ("models list, p95", "/models/", LIST_P95_MS),
    ("its last page, p95", "/models/?page=last", LIST_P95_MS),
    ("search by name, p95", "/models/?q=copy-77", SEARCH_P95_MS),
    ("search without a hit, p95", "/models/?q=nothing-of-this-name", SEARCH_P95_MS),
    ("Overview, p95", "/", OVERVIEW_P95_MS),
)


def run(quick: bool = False, *, models: int | None = None) -> list[dict[str, Any]]:
    """Rows for `quartermaster bench`: processor time, since what else the machine does should not count."""
    models = models or (1_000 if quick else MODELS)
    with tempfile.TemporaryDirectory(prefix="qm-bench-data-") as data, zoo_tree() as folder:
        os.environ |= {"QM_DATA_DIR": data, "QM_DATABASE_URL": "", "QM_REDIS_URL": "", "QM_ROLE": "all"}
        os.environ["DJANGO_SETTINGS_MODULE"] = "quartermaster_site.settings"
        from bench.many_models import fill_up
        from bench.page import get, p95, signed_in_with

        client, _ = signed_in_with(folder)
        fill_up(models)
        planned = _plan_all()
        rounds = 20 if quick else 60
        pages = [
            {
                "name": name,
                "value": p95([get(client, address)] * rounds, clock=time.process_time),
                "unit": "ms",
                "limit_value": limit,
            }
            for name, address, limit in PAGES
        ]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return [
        *pages,
        {"name": f"planning all {models:,} again", "value": planned, "unit": "s", "limit_value": PLAN_SECONDS},
        {"name": "memory of all of it, peak", "value": peak, "unit": "MiB", "limit_value": MEMORY_MIB},
    ]


def _plan_all() -> float:
    """Seconds of processor time for a change that concerns every model; the better of two."""
    from gpus_app.models import Host, HostSetting
    from gpus_app.services import request_plan
    from models_app.models import Revision
    from quartermaster_site.access.audit import Actor

    times = []
    for ttl in (60, 61):
        host = Host.objects.get()
        HostSetting.objects.update_or_create(
            host=host, section="memory", defaults={"values": {"ttlSec": ttl}, "version": ttl}
        )
        before = Revision.objects.count()
        started = time.process_time()
        request_plan(host=host, actor=Actor())
        times.append(time.process_time() - started)
        assert Revision.objects.count() > before, "nothing was planned"
    return statistics.median_low(times)
