"""One host with 10,000 models: the list, a search, other pages, and planning all of them again.

The models are those of the zoo again and again. Pages and planning run in a process each, as in the product, so that
the peaks of memory are those of the web server and of the control worker.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.zoo_tree import zoo_tree
from quartermaster_site.workers import ALLOCATOR

MODELS = 10_000
LIST_P95_MS, SEARCH_P95_MS, OVERVIEW_P95_MS = 200.0, 200.0, 150.0
PLAN_SECONDS = 60.0
MEMORY_MIB = 500.0
PAGES = (
    ("models list, p95", "/models/", LIST_P95_MS),
    ("the same by VRAM, p95", "/models/?sort=-vram", LIST_P95_MS),
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
        from bench.page import signed_in_with

        signed_in_with(folder)
        fill_up(models)
        planned, plan_mib = _in_a_process("plan_all")
        times, page_mib = _in_a_process("open_pages", 20 if quick else 60)
    pages = [
        {"name": name, "value": value, "unit": "ms", "limit_value": limit}
        for (name, _, limit), value in zip(PAGES, times, strict=True)
    ]
    return [
        *pages,
        {"name": f"planning all {models:,} again", "value": planned, "unit": "s", "limit_value": PLAN_SECONDS},
        {"name": "memory of the process that plans, peak", "value": plan_mib, "unit": "MiB", "limit_value": MEMORY_MIB},
        {"name": "memory of the process of pages, peak", "value": page_mib, "unit": "MiB", "limit_value": MEMORY_MIB},
    ]


_CODE = """
import json, sys
from bench import many
print(json.dumps([getattr(many, sys.argv[1])(*map(int, sys.argv[2:])), many.peak_mib()]))
"""


def _in_a_process(name: str, *numbers: int) -> tuple[Any, float]:
    """What a function of this module gives in a process of its own, and the peak of that process in MiB."""
    finished = subprocess.run(
        [sys.executable, "-c", _CODE, name, *map(str, numbers)],
        env={**ALLOCATOR, **os.environ} if name == "plan_all" else None,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        cwd=Path(__file__).resolve().parent.parent,
    )
    answer, peak = json.loads(finished.stdout.splitlines()[-1])
    return answer, peak


def peak_mib() -> float:
    """Of this process; the kernel's `ru_maxrss` would count that of whoever started it."""
    found = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())
    assert found, "this system does not tell the peak of a process"
    return int(found[1]) / 1024


def _set_up() -> None:
    import django

    django.setup()
    from bench.page import without_a_web_server

    without_a_web_server()


def open_pages(rounds: int) -> list[float]:
    """Milliseconds of each page, p95, in a process that has started as the web server does."""
    import quartermaster_site.wsgi  # noqa: F401

    _set_up()
    from bench.page import another_session, get, p95

    client = another_session()
    return [p95([get(client, address)] * rounds, clock=time.process_time) for _, address, _ in PAGES]


def plan_all() -> float:
    """Seconds of processor time for a change that concerns every model; the better of two."""
    _set_up()
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
    return min(times)
