"""Which rule reaches which model, and which never can."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models_app.core.settings import Override
from models_app.core.state.globs import covers_all, glob_match
from models_app.core.state.overrides import resolve_index
from models_app.core.state.rules import row_reach

MODELS = [
    ("/m/qwen3-8b-Q4_K_M.gguf", "Q4_K_M"),
    ("/m/qwen3-8b-Q8_0.gguf", "Q8_0"),
    ("/m/gemma3-12b-Q4_K_M.gguf", "Q4_K_M"),
]
patterns = st.text("ab*?/", max_size=6)


@pytest.mark.parametrize(
    ("wide", "narrow", "covered"),
    [
        ("*", "*qwen*", True),
        ("*qwen*", "*", False),
        ("*Qwen*", "*qwen3*Q4*", True),
        ("*qwen*", "*gemma*", False),
        ("*?", "?*", True),
        ("a?c", "abc", True),
        ("a?c", "a*c", False),
        ("*/x/*", "*\\x\\*.gguf", True),
        ("*a*b*", "*b*a*", False),
        ("*.gguf", "*[x].gguf", True),
    ],
)
def test_a_pattern_covers_another(wide: str, narrow: str, covered: bool) -> None:
    assert covers_all(wide, narrow) is covered


@given(wide=patterns, narrow=patterns, text=st.text("ab/x", max_size=6))
def test_a_covered_pattern_never_matches_more(wide: str, narrow: str, text: str) -> None:
    if covers_all(wide, narrow) and glob_match(narrow, text):
        assert glob_match(wide, text)


@given(pattern=patterns)
def test_every_pattern_covers_itself(pattern: str) -> None:
    assert covers_all(pattern, pattern)


def test_the_first_row_wins_and_the_others_say_which() -> None:
    rows = [
        Override(match=MODELS[0][0]),
        Override(match="*qwen3*", quant="q8_0"),
        Override(match="*qwen3*"),
        Override(match="*"),
    ]
    reach = row_reach(rows, MODELS)
    assert [found.winners for found in reach] == [{0: 0}, {1: 1}, {0: 0, 1: 1}, {0: 0, 1: 1, 2: 3}]
    assert [found.won(index) for index, found in enumerate(reach)] == [(0,), (1,), (), (2,)]
    assert [found.covered_by for found in reach] == [None] * 4


def test_what_can_never_win() -> None:
    rows = [
        Override(match="*qwen*", quant="Q4_K_M"),
        Override(match="*QWEN3*", quant="q4_k_m"),
        Override(match="*qwen3*", quant="Q8_0"),
        Override(match="*qwen*"),
        Override(match="*qwen*", quant="Q8_0"),
    ]
    assert [found.covered_by for found in row_reach(rows, [])] == [None, 0, None, None, 3]


@given(st.lists(st.builds(Override, match=patterns, quant=st.sampled_from(["", "Q4"])), max_size=5))
def test_winners_are_what_resolution_chooses(rows: list[Override]) -> None:
    models = [("a/b", "Q4"), ("ab", ""), ("b", "Q8")]
    reach = row_reach(rows, models)
    for number, model in enumerate(models):
        winner = resolve_index(rows, *model)
        assert {found.winners.get(number) for found in reach} - {None} == ({winner} - {None})
    for index, found in enumerate(reach):
        assert found.covered_by is None or not found.won(index)
