"""Comparison of an answer with a vector's expectation (tests/vectors/README.md section 3)."""

from __future__ import annotations

import json
import os
import re
from typing import Any

WHOLE_KEYS = {
    ("safetensors_header", "tensors"),
    ("pins", "pins"),
    ("launch_flag_check", "findings"),
    ("sidecar_ops", "categoryRoots"),
    ("sidecar_ops", "displayNames"),
    ("patch_merge", "stored"),
    ("patch_replace", "stored"),
    ("settings_form_store", "patch"),
    ("app_settings_put", "stored"),
    ("audiocpp_config_json", "json"),
    ("generate_config", "groups"),
    ("enhancer_keys", "entry"),
    ("enhancer_table", "promptEnhancers"),
    ("assign_groups", "groups"),
    ("assign_groups", "listeners"),
    ("export_matrix", "vars"),
    ("load_config", "catalogue"),
    ("ini_parse", "models"),
}
"""(operation, top field): may hold no further key with a set value."""

WHOLE_BELOW = {("ini_parse", "models"), ("top_level", "keys")}
"""(operation, top field): the values inside are whole too."""

ANY_ORDER = {
    ("audiocpp_package", "ids"),
    ("kind_classes", "classes"),
    ("resolve_components", "missing"),
    ("clear_owned_fields", "cleared"),
    ("ini_document", "skipped"),
    ("ini_parse_finding", "findings"),
}
BY_ID = {("discover", "rows")}
"""(operation, top field): the listed objects are looked up by `id` in the answer, which may hold others."""
SUBSET = {("extract", "resolvable")}
"""(operation, top field): the answer may list more."""
SORTED_INSIDE = {("export_matrix", "sets")}
SCALE = float(os.environ.get("QM_VECTOR_TIME_SCALE", "4" if "PYTEST_XDIST_WORKER" in os.environ else "1"))
"""One factor for all time limits: tests that run side by side share the machine's cores."""


def compare(vector: dict[str, Any], answer: Any, elapsed_ms: float) -> list[str]:
    """Differences in words; empty when the answer meets the expectation."""
    expected = dict(vector["expected"])
    given = dict(answer or {})
    op = vector["input"]["op"]
    differences: list[str] = []
    if "max_ms" in expected and elapsed_ms > expected.pop("max_ms") * SCALE:
        differences.append(f"took {elapsed_ms:.0f} ms")
    if "builtin_key_pattern" in expected:
        pattern, key = expected.pop("builtin_key_pattern"), given.get("builtin_key", "")
        differences += [] if re.fullmatch(pattern, key) else [f"built-in key {key!r} does not match {pattern}"]
    if op == "derive_rule":
        return [*differences, *_rule_differences(expected, given["rule"])]
    if "error" in expected:
        return differences + _compare_error(expected, given)
    if given.get("error"):
        return [*differences, f"unexpected error {given['error']!r}"]
    differences += _fragments(expected, given)
    checker = _Checker(vector.get("tolerance"))
    for key, value in expected.items():
        actual = given.get(key)
        if (op, key) in ANY_ORDER and isinstance(value, list) and isinstance(actual, list | tuple):
            value, actual = sorted(value, key=_order), sorted(actual, key=_order)
        if (op, key) in SUBSET and actual is not None:
            actual = [item for item in actual if item in value]
        if key.endswith("_at_least") and isinstance(actual, int | float):
            actual = min(actual, value)
        if (op, key) in BY_ID:
            found = {item.get("id"): item for item in actual or ()}
            actual = [found.get(item and item.get("id"), {}) for item in value]
        if (op, key) in SORTED_INSIDE and actual is not None:
            value, actual = [sorted(item) for item in value], [sorted(item) for item in actual]
        checker.whole_below = (op, key) in WHOLE_BELOW
        checker.check(value, actual, key, key, whole=(op, key) in WHOLE_KEYS)
    return differences + checker.differences


def _order(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _rule_differences(expected: dict[str, Any], rule: str) -> list[str]:
    """A rule is judged by the names that it must and must not match."""
    missed = [f"{rule} does not match {name}" for name in expected["matches"] if not re.fullmatch(rule, name)]
    return missed + [f"{rule} matches {name}" for name in expected["misses"] if re.fullmatch(rule, name)]


def _compare_error(expected: dict[str, Any], given: dict[str, Any]) -> list[str]:
    error = given.get("error")
    if expected["error"] is True:
        missing = [] if error else ["expected an error"]
        others = {key: value for key, value in expected.items() if key not in ("error", "error_contains")}
        checker = _Checker(None)
        for key, value in others.items():
            checker.check(value, given.get(key), key, key)
        return missing + checker.differences + _fragments(expected, given)
    if not isinstance(error, dict):
        return [f"expected error {expected['error']}, got {given!r}"]
    checker = _Checker(None)
    checker.check(expected["error"], error, "error", "error")
    return checker.differences


def _fragments(expected: dict[str, Any], given: dict[str, Any]) -> list[str]:
    """Checks of command, comment and text fragments; takes the handled keys out of `expected`."""
    found: list[str] = []
    command = given.get("cmd", given.get("lines"))
    line = command if isinstance(command, str) else " ".join(command or ())
    for key in ("contains", "cmd_contains"):
        found += [f"command lacks {item!r}" for item in expected.pop(key, []) if not _in_command(item, line)]
    for key in ("absent", "cmd_absent"):
        found += [f"command holds {item!r}" for item in expected.pop(key, []) if _in_command(item, line)]
    present = given.get("present_keys", ())
    found += [f"key {item} is present" for item in expected.pop("absent_keys", []) if item in present]
    for item in expected.pop("once", []):
        if line.split().count(item) != 1:
            found.append(f"command does not hold {item!r} exactly once")
    for stem in ("comment", "text", "error"):
        text = given.get("comments", "") if stem == "comment" else given.get(stem) or given.get(f"{stem}s", "")
        text = text if isinstance(text, str) else "" if isinstance(text, bool) else "\n".join(text or ())
        found += [
            f"{stem} lacks {item!r}" for item in _listed(expected.pop(f"{stem}_contains", [])) if item not in text
        ]
        found += [f"{stem} holds {item!r}" for item in _listed(expected.pop(f"{stem}_absent", [])) if item in text]
    return found


def _listed(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value)


def _in_command(fragment: str, line: str) -> bool:
    fragment = fragment.lstrip(" ")
    return line.startswith(fragment) or f" {fragment}" in line


def _unset(value: Any) -> bool:
    return value is None or value == "" or value == [] or value == {} or value == ()


class _Checker:
    def __init__(self, tolerance: Any) -> None:
        self.tolerance = tolerance
        self.whole_below = False
        self.differences: list[str] = []

    def check(self, expected: Any, actual: Any, where: str, field: str, whole: bool = False) -> None:
        match expected:
            case None:
                if actual is not None:
                    self._note(where, expected, actual)
            case bool():
                if (actual if actual is not None else False) is not expected:
                    self._note(where, expected, actual)
            case int() | float():
                self._number(expected, actual, where, field)
            case str():
                if (actual if actual is not None else "") != expected:
                    self._note(where, expected, actual)
            case list():
                self._list(expected, actual, where, field)
            case dict():
                self._object(expected, actual, where, field, whole)

    def _note(self, where: str, expected: Any, actual: Any) -> None:
        self.differences.append(f"{where}: expected {expected!r}, got {actual!r}")

    def _number(self, expected: float, actual: Any, where: str, field: str) -> None:
        if actual is None:
            actual = 0
        number = isinstance(actual, int | float) and not isinstance(actual, bool)
        if not number or not abs(actual - expected) <= self._allowed(expected, field):
            self._note(where, expected, actual)

    def _allowed(self, expected: float, field: str) -> float:
        rule = self.tolerance
        if isinstance(rule, dict):
            rule = rule.get(field)
        if isinstance(rule, dict):
            return abs(expected) * float(rule["rel"])
        return 1e-6 if rule is None else float(rule)

    def _list(self, expected: list[Any], actual: Any, where: str, field: str) -> None:
        actual = [] if actual is None else list(actual) if isinstance(actual, list | tuple) else actual
        if not isinstance(actual, list) or len(actual) != len(expected):
            self._note(where, expected, actual)
            return
        for index, (one, other) in enumerate(zip(expected, actual, strict=True)):
            if one is None and field in ("rows", "results"):
                continue
            self.check(one, other, f"{where}[{index}]", field)

    def _object(self, expected: dict[str, Any], actual: Any, where: str, field: str, whole: bool) -> None:
        if not isinstance(actual, dict):
            if not (actual is None and all(_unset(value) for value in expected.values())):
                self._note(where, expected, actual)
            return
        for key, value in expected.items():
            self.check(value, actual.get(key), f"{where}.{key}", key, whole=self.whole_below)
        if whole:
            extra = {key: value for key, value in actual.items() if key not in expected and not _unset(value)}
            if extra:
                self.differences.append(f"{where}: unexpected {extra!r}")
