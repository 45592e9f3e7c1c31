"""Budgets as combinations, and the expressions and solver of the router that reads them."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models_app.core.export import matrix as export
from models_app.core.export.router import matrix

COSTS = st.lists(st.integers(min_value=1, max_value=12), min_size=1, max_size=8)


def sets_of(block):
    names = block["vars"]
    return [
        [names[name] for name in members]
        for text in block["sets"].values()
        for members in matrix.expand(matrix.parse(text))
    ]


@given(COSTS, st.integers(min_value=1, max_value=30))
@settings(max_examples=200)
def test_exactly_the_maximal_combinations(costs, budget):
    models = [export.Candidate(f"m{index}", f"b{index}", cost) for index, cost in enumerate(costs)]
    found = {frozenset(members) for members in sets_of(export.matrix_block(models, budget))}
    everything = range(len(costs))
    fitting = [
        set(chosen)
        for size in range(1, len(costs) + 1)
        for chosen in combinations(everything, size)
        if sum(costs[index] for index in chosen) <= budget
    ]
    maximal = [one for one in fitting if not any(one < other for other in fitting)]
    expected = {frozenset(f"m{index}" for index in chosen) for chosen in maximal}
    expected |= {frozenset([f"m{index}"]) for index in everything if costs[index] > budget}
    assert found == expected


def test_too_many_combinations_are_given_up_quickly():
    models = [export.Candidate(f"m{index}", f"b{index}", 1 + index / 1000) for index in range(400)]
    assert export.matrix_block(models, 50) == {}


def test_profiles_of_one_file_exclude_each_other():
    models = [export.Candidate("a", "A", 4), export.Candidate("a-32k", "A", 6), export.Candidate("b", "B", 4)]
    assert sets_of(export.matrix_block(models, 10)) == [["a", "b"], ["a-32k", "b"]]
    assert sets_of(export.matrix_block(models, 9)) == [["a"], ["a-32k"], ["b"]]


def test_helpers_alone():
    assert sets_of(export.matrix_block([export.Candidate("sam", "sam", 0, True)], 8)) == [["sam"]]
    assert export.matrix_block([], 8) == {}


@pytest.mark.parametrize(
    ("text", "sets"),
    [
        ("a", [["a"]]),
        ("a & b & a", [["a", "b"]]),
        ("a & (b | c) | d", [["a", "b"], ["a", "c"], ["d"]]),
        ("((x.y-1))", [["x.y-1"]]),
    ],
)
def test_expressions(text, sets):
    assert matrix.expand(matrix.parse(text)) == sets


@pytest.mark.parametrize("text", ["", "  ", "a &", "| a", "(a", "a)", "a b", "a @ b", "+", "()", "(" * 100 + "a"])
def test_broken_expressions(text):
    with pytest.raises(matrix.MatrixError):
        matrix.parse(text)


def test_references():
    named = {"llms": matrix.parse("g | q"), "all": matrix.parse("+llms & v"), "loop": matrix.parse("+loop")}
    assert matrix.expand(named["all"], named) == [["g", "v"], ["q", "v"]]
    for broken in ("+loop", "+nowhere"):
        with pytest.raises(matrix.MatrixError):
            matrix.expand(matrix.parse(broken), named)


def test_an_explosion_is_refused():
    with pytest.raises(matrix.MatrixError, match="combinations"):
        matrix.expand(matrix.parse(" & ".join(["(a|b|c|d|e|f|g|h|i|j)"] * 8)))


def test_solver_without_a_set_for_the_target():
    assert matrix.solve([["a"]], {}, ["a", "b"], "x") == ["a", "b"]
    assert matrix.solve([["a", "x"], ["b", "x"]], {}, ["a", "b"], "x") == ["b"]
