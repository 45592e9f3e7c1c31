"""Checks against llama.cpp as planning asks for them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from json import dumps
from typing import Any

from django.db.models import F, Max, Q

from gpus_app.models import Host
from models_app.check_settings import check_settings_of
from models_app.core.catalog import Plan
from models_app.core.launch.fit_params import fit_params_words
from models_app.core.planning.wishes import Excess
from models_app.models import Row, Verification
from quartermaster_site.version import product_version

Excesses = Mapping[str, tuple[Excess, ...]]


def launch_digest(row: Row, plan: Plan) -> str:
    """Tells launches apart that may differ in memory: program, words, devices, the file, and whose figures."""
    devices = len(plan.projection.devices) if plan.projection else 0
    parts = [plan.argv[0], fit_params_words(plan.argv), devices, row.size_bytes, row.mtime_ns, product_version()]
    return sha256(dumps(parts).encode()).hexdigest()


def refresh_excesses(host: Host) -> bool:
    """Write down at each row what the builds now in use hold beyond our projections; whether anything has changed.

    Rows keep it so that planning need not ask for it: [[server, build, version of the figures, bytes on a device, bytes
    in RAM], ...], the most of all checked launches.
    """
    worst = Verification.objects.filter(
        Q(device_excess_bytes__gt=0) | Q(ram_excess_bytes__gt=0), row__host=host, build=F("program__build")
    ).values("row", "program__server", "build", "version")
    found: dict[int, list[list[Any]]] = defaultdict(list)
    for line in worst.order_by("row", "program__server", "version").annotate(
        device=Max("device_excess_bytes"), ram=Max("ram_excess_bytes")
    ):
        excess = [line["program__server"], line["build"], line["version"], line["device"], line["ram"]]
        found[line["row"]].append(excess)
    rows = Row.objects.filter(host=host, verifications__isnull=False).distinct().values_list("pk", "excesses")
    changed = [Row(pk=pk, excesses=found[pk]) for pk, before in rows if before != found[pk]]
    Row.objects.bulk_update(changed, ["excesses"])
    return bool(changed)


def kept_free(host: Host, stored: Sequence[Sequence[Any]]) -> tuple[Excess, ...]:
    """What plans keep free of that, for one row: nothing where it is switched off, or of figures that are not ours."""
    if not stored or not check_settings_of(host).keeps_extra_free:
        return ()
    return tuple(
        Excess(server, build, device, ram)
        for server, build, version, device, ram in stored
        if version == product_version()
    )


def excesses_by_path(host: Host, rows: Iterable[Row]) -> Excesses:
    return {row.path: kept for row in rows if (kept := kept_free(host, row.excesses))}
