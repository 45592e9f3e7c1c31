"""`python -m tests.audit`: the pinned packages compared with known holes, where pip-audit can get its data.

A hole is printed. It fails the run only where a version without it exists, since otherwise nobody could mend it. Where
the data cannot be had within a minute, one line says so, and the run goes on: CI may have no way to the service.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SECONDS = 60
COMMAND = (
    *(str(Path(sys.executable).parent / "pip-audit"), "-r", "constraints.txt", "--no-deps", "--disable-pip"),
    *("--progress-spinner", "off", "--timeout", "10", "--format", "json"),
)
UNKNOWN = "dependencies are not audited:"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is said, and whether it fails the run."""

    lines: tuple[str, ...]
    fails: bool = False


def judge(answer: str) -> Verdict:
    """The verdict over pip-audit's JSON."""
    try:
        found = json.loads(answer)["dependencies"]
        audited = [item for item in found if "skip_reason" not in item]
        holes = [(item, hole) for item in audited for hole in item["vulns"]]
    except (ValueError, KeyError, TypeError):
        return Verdict((f"{UNKNOWN} pip-audit gave no answer that can be read",))
    if not audited:
        return Verdict((f"{UNKNOWN} the service knows none of the {len(found)} packages, so it is not the real one",))
    lines = [f"{len(audited)} of {len(found)} pinned packages compared, {len(holes)} known holes"]
    for item, hole in holes:
        fixed = ", ".join(hole.get("fix_versions") or ()) or "no version yet"
        lines.append(f"  {item['name']} {item['version']}: {hole['id']}, mended in {fixed}")
    return Verdict(tuple(lines), fails=any(hole.get("fix_versions") for _, hole in holes))


def audit() -> Verdict:
    try:
        done = subprocess.run(COMMAND, cwd=ROOT, capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return Verdict((f"{UNKNOWN} no answer within {SECONDS} s",))
    except OSError as error:
        return Verdict((f"{UNKNOWN} pip-audit cannot be started: {error.strerror}",))
    if not done.stdout.strip():
        last = (done.stderr.strip() or "it said nothing").splitlines()[-1]
        return Verdict((f"{UNKNOWN} {last[:200]}",))
    return judge(done.stdout)


def main() -> int:
    verdict = audit()
    print("\n".join(verdict.lines), flush=True)
    return int(verdict.fails)


if __name__ == "__main__":
    raise SystemExit(main())
