"""Checks against llama.cpp as planning asks for them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from hashlib import sha256
from json import dumps

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


def host_excesses(host: Host, path: str = "") -> Excesses:
    """Path -> what the builds now in use were measured to hold beyond our projections; of a host, or of one model."""
    if not check_settings_of(host).keeps_extra_free:
        return {}
    found = Verification.objects.filter(
        Q(device_excess_bytes__gt=0) | Q(ram_excess_bytes__gt=0),
        row__host=host,
        version=product_version(),
        build=F("program__build"),
    )
    if path:
        found = found.filter(row__path=path)
    worst = found.values("row__path", "program__server", "build").order_by("row__path", "program__server")
    excesses: dict[str, tuple[Excess, ...]] = defaultdict(tuple)
    for line in worst.annotate(device=Max("device_excess_bytes"), ram=Max("ram_excess_bytes")):
        excess = Excess(line["program__server"], line["build"], line["device"], line["ram"])
        excesses[line["row__path"]] += (excess,)
    return dict(excesses)
