"""The curve's section: sentences, table and drawing say the same."""

from __future__ import annotations

import pytest

from models_app.core.planning.context_curve import RAM, VRAM, CacheCurve, ContextCurve, CurvePoint
from models_app.core.planning.kv_types import KvPair
from models_app.pages.context_curve import UNJUDGED, curve_section

GIB = 1 << 30
F16, Q8 = KvPair("f16", "f16"), KvPair("q8_0", "q8_0")


def line(pair: KvPair, longest: int, slope: float) -> CacheCurve:
    windows = (4096, 8192, 16384, 32768)
    points = tuple(CurvePoint(w, int((4 + slope * w / 8192) * GIB), GIB, w <= longest) for w in windows)
    return CacheCurve(pair, points, longest)


def curve(longest: int = 16384, **changes: object) -> ContextCurve:
    own = line(F16, longest, 2)
    given: dict[str, object] = {
        "place": VRAM,
        "target_bytes": 9 * GIB,
        "now": own.points[1],
        "trained_tokens": 32768,
        "ceiling_tokens": 32768,
        "device_count": 1,
        "own": own,
        "smaller": line(Q8, 32768, 1),
    }
    return ContextCurve(**(given | changes))  # type: ignore[arg-type]


def test_no_curve_is_a_sentence() -> None:
    section = curve_section(None)
    assert (section.drawing, section.sentences, section.rows) == (None, (UNJUDGED,), ())


def test_sentences_name_where_both_lines_end() -> None:
    assert curve_section(curve()).sentences == (
        "Planned: 8,192 tokens, 6.00 GiB of VRAM.",
        "This placement fits up to 16,384 tokens; then VRAM is full.",
        "With a q8_0 cache it fits at every window up to 32,768, the trained length.",
    )


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"longest": 0}, "This placement fits at no window: VRAM is too small for it."),
        ({"longest": 0, "device_count": 2}, "This placement fits at no window: a device is too small for it."),
        ({"device_count": 2}, "This placement fits up to 16,384 tokens; then one of the devices is full."),
        ({"place": RAM, "device_count": 2}, "This placement fits up to 16,384 tokens; then RAM is full."),
        (
            {"longest": 65536, "ceiling_tokens": 65536},
            "This placement fits at every window up to 65,536, the trained length stretched by RoPE scaling.",
        ),
        (
            {"longest": 32768, "trained_tokens": 0},
            "This placement fits at every window up to 32,768; the header names no trained length.",
        ),
    ],
)
def test_the_end_in_words(changes: dict[str, int], sentence: str) -> None:
    assert curve_section(curve(**changes)).sentences[1] == sentence


def test_the_table_says_what_the_drawing_shows() -> None:
    section = curve_section(curve())
    assert section.columns == ("f16 cache", "q8_0 cache")
    assert [(row.tokens, row.note) for row in section.rows] == [
        ("4,096", ""),
        ("8,192", "planned"),
        ("16,384", "most for f16"),
        ("32,768", "trained length"),
    ]
    assert [cell.fits for cell in section.rows[3].cells] == [False, True]
    assert section.rows[1].cells[0].text == "6.00"
    assert section.drawing is not None
    assert "fits up to 16,384" in [label.text for label in section.drawing.labels]
    assert {line.css for line in section.drawing.lines} == {"l-a", "l-b", "l-budget", "l-bad"}
    assert [key.css for key in section.keys] == ["l-a", "l-b", "l-budget", ""]


def test_a_window_that_ends_for_no_lack_of_memory_has_no_mark() -> None:
    section = curve_section(curve(longest=32768, smaller=None))
    assert section.drawing is not None
    assert not any(line.css in ("l-bad", "l-b") for line in section.drawing.lines)
    assert section.columns == ("f16 cache",)
