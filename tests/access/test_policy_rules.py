"""Which policy decides: the worked cases of the specification, patterns, ties, variants, policies that never win."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quartermaster_site.access.rules import (
    Level,
    Rule,
    Scope,
    Subject,
    compiled,
    decide,
    expression,
    never_wins,
    ordered,
)

A, B = 1, 2
NONE, VIEW, OPERATE, EDIT, MANAGE = Level
R1 = Rule(1, Subject.EVERYONE, "", B, "*", VIEW)
R2 = Rule(2, Subject.GROUP, "vision", None, "*vl*", EDIT)
R3 = Rule(3, Subject.USER, "edda", A, "*secret*", NONE)
ABOUT = {"vera": (VIEW, (R1, R2)), "otto": (OPERATE, (R1,)), "edda": (EDIT, (R1, R2, R3)), "ada": (MANAGE, ())}


def level(who: str, host: int, model: str = "") -> Level:
    default, rules = ABOUT[who]
    scope = Scope(host, (model,) if model else ())
    return decide(ordered(rules), default, scope).level


@pytest.mark.parametrize(
    ("who", "host", "model", "expected"),
    [
        ("otto", A, "", OPERATE),
        ("otto", B, "", VIEW),
        ("vera", A, "qwen3-vl-8b", EDIT),
        ("vera", B, "qwen3-vl-8b", EDIT),
        ("vera", A, "", VIEW),
        ("edda", A, "my-secret-vl", NONE),
        ("edda", B, "my-secret-vl", EDIT),
        ("edda", A, "", EDIT),
        ("edda", B, "llama-3-8b", VIEW),
        ("ada", B, "my-secret-vl", MANAGE),
    ],
)
def test_policy_cases_of_the_specification(who, host, model, expected):
    assert level(who, host, model) is expected


def rule(number=1, subject=Subject.EVERYONE, who="", host=None, model="*", level=VIEW):
    return Rule(number, subject, who, host, model, level)


def test_policy_scope_goes_before_subject_and_subject_before_level():
    host = rule(1, host=A, level=EDIT)
    person = rule(2, Subject.USER, "x", level=NONE)
    assert decide(ordered([person, host]), VIEW, Scope(A)).level is EDIT
    group = rule(3, Subject.GROUP, "g", host=A, level=NONE)
    assert decide(ordered([host, group]), VIEW, Scope(A)).winner is group
    lower = rule(4, host=A, level=OPERATE)
    assert decide(ordered([host, lower]), VIEW, Scope(A)).winner is lower


def test_policy_of_some_models_says_nothing_about_the_host():
    assert decide(ordered([rule(model="*vl*", level=EDIT)]), VIEW, Scope(A)).winner is None


def test_policy_of_a_variant_counts_only_where_it_does_not_name_the_model():
    hidden = rule(1, model="llama:secret", level=NONE)
    base = rule(2, model="llama", level=EDIT)
    scope = Scope(A, ("llama",), variant="llama:secret")
    assert decide(ordered([hidden, base]), VIEW, scope).level is NONE
    assert decide(ordered([hidden, base]), VIEW, Scope(A, ("llama",), variant="llama:fast")).level is EDIT
    wide = rule(3, model="llama*", level=OPERATE)
    assert decide(ordered([wide, base]), VIEW, scope).level is OPERATE


@pytest.mark.parametrize(
    ("pattern", "path", "found"),
    [
        ("/models/private/*", "/models/private/a/b.gguf", True),
        ("private/*", "/models/private/a.gguf", True),
        ("private/*", "/models/unprivate/a.gguf", False),
        ("*/private/*", "D:\\models\\PRIVATE\\a.gguf", True),
        ("D:\\models\\*", "d:/models/a.gguf", True),
        ("private/?.gguf", "/private/ab.gguf", False),
        ("/models/a.gguf", "/models/a.gguf.bak", False),
    ],
)
def test_policy_paths(pattern, path, found):
    scope = Scope(A, ("private",), path)
    assert rule(model=pattern).covers(scope) is found


@pytest.mark.parametrize(
    ("pattern", "name", "found"),
    [
        ("*vl*", "Qwen3-VL-8B", True),
        ("qwen", "qwen3", False),
        ("qwen?", "qwen3", True),
        ("a.c", "abc", False),
        ("[ab]*", "a", False),
        ("[ab]*", "[ab]c", True),
        ("a+(b)|c", "a+(b)|c", True),
        ("über*", "ÜBERMODELL", True),
        ("*x", "line\nx", True),
    ],
)
def test_policy_patterns_of_ids(pattern, name, found):
    assert rule(model=pattern).covers(Scope(A, (name,))) is found


@given(st.text(alphabet="ab*?.[", max_size=8), st.text(alphabet="ab.[", max_size=8))
def test_policy_patterns_are_those_of_a_shell(pattern, name):
    parts = re.split(r"([*?])", pattern)
    plain = "".join({"*": ".*", "?": "."}.get(part) or re.escape(part) for part in parts)
    assert bool(compiled(pattern).match(name)) is bool(re.fullmatch(plain, name, re.DOTALL | re.IGNORECASE))
    assert "(?" not in expression(pattern), "PostgreSQL has to read it too"


def test_policy_that_never_wins_is_known():
    loose, strict = rule(1, model="*vl*", level=EDIT), rule(2, model="*vl*", level=VIEW)
    assert never_wins(loose, [strict]) is strict
    assert never_wins(strict, [loose]) is None
    narrow, wide = rule(3, model="qwen-vl-*", level=EDIT), rule(4, model="*vl*", level=VIEW)
    assert never_wins(narrow, [wide]) is wide
    assert never_wins(rule(11, model="*b", level=EDIT), [rule(12, model="?b", level=NONE)]) is None
    assert never_wins(rule(5, host=A, level=EDIT), [rule(6, level=NONE)]) is None, "a host goes before every host"
    assert never_wins(rule(7, model="/a/*", level=EDIT), [rule(8, model="*a*", level=NONE)]) is None
    person = rule(9, Subject.USER, "x", level=EDIT)
    assert never_wins(person, [rule(10, level=NONE)]) is None


def test_policy_of_a_group_never_wins_where_each_member_has_their_own():
    group = rule(1, Subject.GROUP, "g", level=EDIT)
    own = [rule(2, Subject.USER, "x", level=VIEW), rule(3, Subject.USER, "y", level=VIEW)]
    assert never_wins(group, own, ["x", "y"]) in own
    assert never_wins(group, own, ["x", "y", "z"]) is None
    assert never_wins(group, own, []) is None


_RULES = st.builds(
    Rule,
    st.integers(1, 99),
    st.just(Subject.EVERYONE),
    st.just(""),
    st.sampled_from([None, A, B]),
    st.sampled_from(["*", "a*", "*b", "ab", "?b"]),
    st.sampled_from([NONE, VIEW, OPERATE, EDIT]),
)


@given(st.lists(_RULES, max_size=5, unique_by=lambda item: item.number), st.sampled_from(["a", "b", "ab", "cb", "abb"]))
def test_policy_marked_as_never_winning_does_not_win(rules, name):
    for host in (A, B):
        winner = decide(ordered(rules), VIEW, Scope(host, (name,))).winner
        if winner is not None:
            assert never_wins(winner, [other for other in rules if other is not winner]) is None
