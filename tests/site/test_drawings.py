"""The memory bar: percentages as attributes, one scale for all devices."""

from __future__ import annotations

import re

from django.template import Context, Template

from quartermaster_site.drawings import Part, Track, memory_bar, mini_bar
from quartermaster_site.figures import GIB


def _two_cards() -> list[Track]:
    parts = (Part("weights", "weights", "weights", int(9.7 * GIB)), Part("kv", "KV cache", "KV", int(0.5 * GIB)))
    return [
        Track("GPU 0 · RTX 3090", "10.20 of 22.50", parts, 24 * GIB, int(22.5 * GIB)),
        Track("GPU 1 · RTX 3060", "0.00 of 11.00", (), 12 * GIB, 11 * GIB),
    ]


def test_rows_share_one_scale() -> None:
    bar = memory_bar(_two_cards(), "label")
    assert bar is not None
    assert bar.height == 114
    assert [row.width for row in bar.rows] == ["100%", "50%"]
    assert bar.rows[0].budget_x == "93.75%"
    assert [tick.text for tick in bar.ticks] == ["0", "4", "8", "12", "16", "20", "24 GiB"]
    first, second = bar.rows[0].stretches
    assert (first.x, first.width, first.label) == ("0%", "40.42%", "weights 9.7")
    assert second.x == "40.42%"
    assert second.label == "", "too narrow for a label"


def test_over_budget_widens_the_scale_instead_of_leaving_the_drawing() -> None:
    parts = (Part("weights", "weights", "weights", 48 * GIB),)
    bar = memory_bar([Track("GPU 0", "", parts, 24 * GIB, 22 * GIB)], "label")
    assert bar is not None
    assert bar.rows[0].width == "50%"
    assert bar.rows[0].stretches[0].width == "100%"


def test_a_budget_that_nobody_has_gets_few_ticks_too() -> None:
    bar = memory_bar([Track("GPU 0", "", (), 24 * GIB, 10**12 * GIB)], "label")
    assert bar is not None
    assert 4 <= len(bar.ticks) <= 7


def test_nothing_to_draw() -> None:
    assert memory_bar([], "label") is None
    assert mini_bar(5, 0, 0) is None


def test_mini_bar_turns_bad_over_budget() -> None:
    over, within = mini_bar(40 * GIB, 36 * GIB, 33 * GIB), mini_bar(20 * GIB, 36 * GIB, 33 * GIB)
    assert over is not None
    assert within is not None
    assert (over.key, over.width) == ("bad", "100%")
    assert within.key == "weights"


def test_markup_has_no_inline_style_and_a_name_for_assistive_technology() -> None:
    template = Template("{% memory_bar bar %}{% mini_bar small %}{% icon 'ok' %}{% status 'ok' word %}")
    context = {"bar": memory_bar(_two_cards(), 'a "label"'), "small": mini_bar(1, 2, 2), "word": "<b>on</b>"}
    html = template.render(Context(context))
    assert "style" not in re.sub(r"<[^>]*class=\"[^\"]*\"", "", html)
    assert 'role="img" aria-label="a &quot;label&quot;"' in html
    assert "&lt;b&gt;on&lt;/b&gt;" in html
