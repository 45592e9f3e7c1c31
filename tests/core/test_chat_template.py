"""Effort levels and kept thinking, read off a chat template in linear time (headers.md 10)."""

from __future__ import annotations

import os
import time

import pytest

from models_app.core.readers.chat_template import advertised_levels, scan_chat_template, template_file_levels
from tests.core.test_gguf_hostile import slowness


def levels(template: str) -> list[str]:
    return list(scan_chat_template(template).effort_levels)


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        (
            "{% if reasoning_effort not in ('xhigh', 'medium', 'low') %}{{ raise_exception('effort') }}{% endif %}",
            ["xhigh", "medium", "low"],
        ),
        ('{% if my_reasoning_effort not in("High","a b","x-y_1") %}', ["high", "x-y_1"]),
        ("{% if reasoning_effort not in ['high', 'low'] %}", ["high", "low"]),
        ("{% if reasoning_effort not in ('a') %}{% set effort = 'b' %}", ["a"]),
        ("{% if reasoning_effort not in ( %}{% if reasoning_effort not in ['a'] %}", ["a"]),
        ("{% if reasoning_effort not\n  in   ('a',\n 'b') %}", ["a", "b"]),
        ("{% if reasoning_effort in ('a', 'b') %}", []),
        ("{% if reasoning_effort_x not in ('a') %}", []),
        ("{{ reasoning_effort }}", []),
        (
            "{% set _raw = reasoning_effort %}{% set _effort = 'medium' %}"
            "{% if _raw in ['minimal', 'low'] %}{% set _effort = 'low' %}"
            "{% elif _raw == 'max' %}{% set _effort = 'xhigh' %}{% endif %}"
            "{% if x %}{{ raise_exception('content') }}{% endif %}",
            ["medium", "low", "xhigh"],
        ),
        ("{{ reasoning_effort }}{% set effort = 'none' %}{% set effort = 'low' %}{% set effort = 'OFF' %}", ["low"]),
        (
            "{{ reasoning_effort }}{% set effort = 'low' %}{% set ns.thinkEffort='high' %}{% set effort='low' %}",
            ["low", "high"],
        ),
        ("{{ reasoning_effort }}{% set other = 'low' %}{% set offset='x' %}", []),
        ("{{ reasoning_effort }}{% set effort = 'low' %}{% if effort %}{{ raise_exception('no') }}{% endif %}", []),
        ("{% if reasoning_effort %}{% set effort = 'a' %}{{ Raise_Exception('x') }}", []),
        ("{{ reasoning_effort }}{% set effort = low %}", []),
        ("", []),
        (" \n\t ", []),
    ],
)
def test_levels(template, expected):
    assert levels(template) == expected


def test_kept_thinking():
    keeps = "{% if preserve_thinking is undefined\n\t or preserve_thinking is true %}"
    assert scan_chat_template(keeps).preserves_thinking
    assert not scan_chat_template(
        "{% if preserve_thinking is defined and preserve_thinking is true %}"
    ).preserves_thinking


@pytest.mark.parametrize(
    "template",
    [
        "reasoning_effort " * 61_680,
        "reasoning_effort not in ( " * 40_000,
        "reasoning_effort not in [ " * 20_000 + ")" + "reasoning_effort not in ( " * 20_000,
        "{% set " + "effort" * 170_000 + " %} reasoning_effort",
        "{% set " + "effort." * 150_000 + "= reasoning_effort",
        "reasoning_effort set effort = '" + "a" * 1_000_000,
        "reasoning_effort" + " set effort = 'a" * 70_000,
        "reasoning_effort not in (" + "'a" * 500_000 + ")",
        "{%" * 500_000 + "effort",
        "effort raise_exception {%" * 40_000,
        " \n" * 500_000,
        "set " * 260_000 + "reasoning_effort",
    ],
    ids=range(12),
)
def test_a_mebibyte_of_ill_will_is_scanned_in_linear_time(template):
    started = time.process_time()
    found = scan_chat_template(template)
    assert time.process_time() - started < 0.25 * slowness()
    assert len(found.effort_levels) <= 32


def test_the_ladder_is_that_of_the_override():
    assert advertised_levels(("a",)) == ("a",)
    assert advertised_levels(("a",), has_override=True, override_text=None) == ()
    assert advertised_levels(("a",), has_override=True, override_text="plain") == ()
    assert advertised_levels((), has_override=True, override_text="{% if reasoning_effort not in ('b') %}") == ("b",)


def test_an_edited_template_file_is_seen(tmp_path):
    path = tmp_path / "t.jinja"
    path.write_text("{% if reasoning_effort not in ('a') %}")
    assert template_file_levels(str(path)) == ("a",)
    status = os.stat(path)
    path.write_text("{% if reasoning_effort not in ('b') %}")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 1_000_000))
    assert template_file_levels(str(path)) == ("b",)
    path.unlink()
    assert template_file_levels(str(path)) == ()
    assert template_file_levels(str(tmp_path)) == ()
