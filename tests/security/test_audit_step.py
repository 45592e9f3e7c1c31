"""The audit of dependencies: what is said of pip-audit's answers, and what fails the run."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests import audit

SKIPPED = {"name": "x", "skip_reason": "Dependency not found on PyPI"}
SOUND = {"name": "y", "version": "1", "vulns": []}


def hole(*fixed):
    return {"name": "z", "version": "1", "vulns": [{"id": "CVE-1", "fix_versions": list(fixed), "aliases": []}]}


@pytest.mark.parametrize(
    ("packages", "fails", "said"),
    [
        ([SOUND], False, "1 of 1 pinned packages compared, 0 known holes"),
        ([SOUND, hole("2", "3")], True, "z 1: CVE-1, mended in 2, 3"),
        ([SOUND, hole()], False, "z 1: CVE-1, mended in no version yet"),
        ([SOUND, SKIPPED], False, "1 of 2"),
        ([SKIPPED], False, audit.UNKNOWN),
        ([], False, audit.UNKNOWN),
    ],
)
def test_verdicts(packages, fails, said):
    verdict = audit.judge(json.dumps({"dependencies": packages, "fixes": []}))
    assert verdict.fails is fails
    assert said in "\n".join(verdict.lines)


@pytest.mark.parametrize("answer", ["", "no", "[]", "{}", '{"dependencies": [{"name": "x"}]}', '{"dependencies": 3}'])
def test_no_answer_is_no_failure(answer):
    verdict = audit.judge(answer)
    assert not verdict.fails
    assert verdict.lines[0].startswith(audit.UNKNOWN)
    assert len(verdict.lines) == 1


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("/no/such/program",), "cannot be started"),
        (("sleep", "5"), "no answer within"),
        (("sh", "-c", "echo away >&2; exit 3"), "away"),
    ],
)
def test_a_service_that_is_away(monkeypatch, command, said):
    monkeypatch.setattr(audit, "COMMAND", command)
    monkeypatch.setattr(audit, "SECONDS", 0.5)
    verdict = audit.audit()
    assert not verdict.fails
    assert said in verdict.lines[0]


def test_every_package_that_is_asked_for_is_pinned():
    root = Path(audit.ROOT)
    pinned = {
        line.partition("==")[0].lower().replace("_", "-") for line in (root / "constraints.txt").read_text().split("\n")
    }
    for name in ("requirements.txt", "requirements-test.txt"):
        for line in (root / name).read_text().splitlines():
            if wanted := re.match(r"[A-Za-z0-9_.-]+", line):
                assert wanted[0].lower().replace("_", "-") in pinned, line
