"""Numbers as people read them, and the rule that columns add up."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quartermaster_site import figures
from quartermaster_site.figures import GIB


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [(None, "-"), (0, "0.00"), (GIB, "1.00"), (int(31.724 * GIB), "31.72"), (2000 * GIB, "2,000.00")],
)
def test_gib(size_bytes: int | None, text: str) -> None:
    assert figures.gib(size_bytes) == text


def test_sizes_take_the_unit_that_suits() -> None:
    assert figures.size(15.41 * GIB) == "15.41 GiB"
    assert figures.size(312 << 20) == "312 MiB"
    assert figures.size(17) == "17 bytes"
    assert figures.size(None) == "-"


@given(st.lists(st.integers(0, 400 * GIB), min_size=1, max_size=12))
def test_shown_parts_add_up_to_the_shown_total(parts: list[int]) -> None:
    steps = figures.share(parts)
    total = float(figures.gib(sum(parts)).replace(",", ""))
    assert sum(steps) == round(total * 100)
    assert all(abs(step - part * 100 / GIB) < 1.0001 for step, part in zip(steps, parts, strict=True))


def test_a_given_total_is_kept() -> None:
    assert sum(figures.share([GIB, GIB, GIB], total_steps=301)) == 301
    assert sum(figures.share([GIB, GIB, GIB], total_steps=299)) == 299


def test_durations_and_ages() -> None:
    assert figures.duration(41) == "0:41"
    assert figures.duration(3723) == "1:02:03"
    assert figures.duration(None) == "-"
    now = datetime(2026, 1, 1, tzinfo=UTC)
    assert figures.ago(now - timedelta(minutes=12), now) == "12 min ago"
    assert figures.ago(now + timedelta(seconds=3), now) == "0 s ago"
    assert figures.ago(None, now) == "never"


def test_counted() -> None:
    assert figures.counted(1, "file") == "1 file"
    assert figures.counted(1280, "entry", "entries") == "1,280 entries"
