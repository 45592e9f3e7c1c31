"""The lines behind "how?": products that a person can check, by place."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

from django.test import Client

from gpus_app.models import Host
from models_app.core.catalog import MemoryTerm, TermPart
from models_app.models import Row
from models_app.pages.how_text import how_places
from quartermaster_site.figures import size

GIB = 1 << 30


def term(*parts: TermPart, devices: int = 2) -> MemoryTerm:
    return MemoryTerm("kv", "Context", (0,) * devices, 0, "Cells.", parts)


def test_each_place_has_its_lines_and_their_sum() -> None:
    factors = ((65536, "cells"), (10, "layers"), (2048, "values"), (1.0625, "bytes of q8_0"))
    found = how_places(
        term(
            TermPart(1, "K, whole window", 1_426_063_360, factors),
            TermPart(1, "recurrent state", GIB),
            TermPart(None, "file", GIB // 2),
        ),
        ("GPU 3", "GPU 1"),
    )
    assert [(place.name, place.lines) for place in found] == [
        (
            "GPU 1",
            (
                "K, whole window: 65,536 cells × 10 layers × 2,048 values × 1.0625 bytes of q8_0 = 1.33 GiB",
                "recurrent state: 1.00 GiB",
                "together 2.33 GiB",
            ),
        ),
        ("RAM", ("file: 512 MiB",)),
    ]


def test_a_single_place_needs_no_name() -> None:
    (only,) = how_places(term(TermPart(0, "file", GIB), devices=1), ("GPU 0",))
    assert only.name == ""
    vram, ram = how_places(term(TermPart(0, "file", GIB), TermPart(None, "file", GIB), devices=1), ("GPU 0",))
    assert (vram.name, ram.name) == ("VRAM", "RAM")
    assert how_places(term(), ("GPU 0", "GPU 1")) == ()


def test_the_products_on_the_page_are_right(scanned: Host, viewer: Client, row_named: Callable[[str], Row]) -> None:
    for name in ("qwen3-8b", "mixtral"):
        html = viewer.get(f"/models/{row_named(name).pk}/").content.decode()
        lines = re.findall(r"<li>([^<]*: [^<]* = [^<]*)</li>", html)
        assert len(lines) >= 3
        for line in lines:
            product, _, shown = line.partition(": ")[2].partition(" = ")
            numbers = [float(re.match(r"[\d,.]+", part)[0].replace(",", "")) for part in product.split(" × ")]  # type: ignore[index]
            assert size(round(math.prod(numbers))) == shown
