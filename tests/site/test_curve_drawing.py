"""The curve: percentages as attributes, cut at the edges of the drawing."""

from __future__ import annotations

import pytest

from quartermaster_site.curve_drawing import BOTTOM, LEFT, RIGHT, TOP, CurveDrawing, curve_drawing, short_tokens
from quartermaster_site.figures import GIB

LINE = [(4096, 6.0 * GIB), (65536, 14.0 * GIB), (131072, 22.0 * GIB)]


def draw(points=LINE, smaller=(), **changes) -> CurveDrawing:
    given = {"now": (65536, 14 * GIB), "limit_bytes": 16 * GIB, "fits_tokens": 81920, "trained_tokens": 131072}
    drawing = curve_drawing(points, smaller, label="words", **(given | changes))
    assert drawing is not None
    return drawing


def percent(text: str) -> float:
    assert text.endswith("%")
    return float(text[:-1])


def test_the_dot_lies_on_the_line_and_the_limit_is_above_it() -> None:
    drawing = draw()
    assert drawing.dot is not None
    own = [line for line in drawing.lines if line.css == "l-a"]
    assert (own[0].x2, own[0].y2) == (drawing.dot.x, drawing.dot.y)
    limit = next(line for line in drawing.lines if line.css == "l-budget")
    assert limit.y1 == limit.y2
    assert float(limit.y1) < float(drawing.dot.y)
    assert float(drawing.washed_height) == pytest.approx(float(limit.y1) - TOP, abs=0.1)


def test_nothing_leaves_the_drawing() -> None:
    steep = [(4096, 6.0 * GIB), (65536, 60.0 * GIB), (131072, 300.0 * GIB), (1 << 20, 3000.0 * GIB)]
    drawing = draw(steep, [(4096, 5.0 * GIB), (1 << 20, 90.0 * GIB)], now=(8192, 9 * GIB), fits_tokens=12288)
    assert any(line.css == "l-b" for line in drawing.lines)
    for line in (*drawing.lines, *drawing.grid):
        assert LEFT <= percent(line.x1) <= percent(line.x2) <= RIGHT
        assert TOP <= float(line.y1) <= BOTTOM
        assert TOP <= float(line.y2) <= BOTTOM
    assert not any(line.css == "l-axis" and line.x1 == line.x2 for line in drawing.grid), "trained: out of sight"


def test_a_line_that_is_cut_keeps_its_slope() -> None:
    drawing = draw([(0, 0), (100_000, 100.0 * GIB)], now=(10_000, 10 * GIB), limit_bytes=20 * GIB, fits_tokens=20_000)
    own = next(line for line in drawing.lines if line.css == "l-a")
    limit = next(line for line in drawing.lines if line.css == "l-budget")
    mark = next(line for line in drawing.lines if line.css == "l-bad")
    along = (percent(mark.x1) - percent(own.x1)) / (percent(own.x2) - percent(own.x1))
    assert float(own.y1) + along * (float(own.y2) - float(own.y1)) == pytest.approx(float(limit.y1), abs=0.2)


def test_marks_have_words_that_do_not_leave_the_drawing() -> None:
    right = next(label for label in draw().labels if label.text.startswith("fits"))
    assert (right.text, right.anchor) == ("fits up to 81,920", "end")
    left = next(label for label in draw(fits_tokens=16384).labels if label.text.startswith("fits"))
    assert left.anchor == "start"
    assert left.y != right.y
    assert not [label for label in draw(fits_tokens=0).labels if label.text.startswith("fits")]


def test_without_a_limit_there_is_no_wash_and_without_points_no_drawing() -> None:
    assert draw(limit_bytes=0, fits_tokens=0).washed_height == ""
    assert curve_drawing([], [], now=(1, 1), limit_bytes=1, fits_tokens=0, trained_tokens=0, label="") is None


def test_windows_on_the_axis() -> None:
    assert [short_tokens(tokens) for tokens in (0, 512, 4096, 131072, 1 << 20, 3 << 19)] == [
        "0",
        "512",
        "4k",
        "128k",
        "1M",
        "1.5M",
    ]
    texts = [label.text for label in draw().labels]
    assert texts.count("0") == 2
    assert "128k" in texts
