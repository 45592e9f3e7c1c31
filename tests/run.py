"""`./quartermaster test`: the static checks, then every test in parallel; with arguments, pytest with those alone.

pytest's summary is the last line and its exit code is ours; a failing static check stops before the tests.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

USAGE = """\
usage: quartermaster test [pytest arguments]

lint, types, contracts and every test in parallel; with arguments, pytest with those alone
  quartermaster test tests/core -k discovery
  quartermaster test -m 'not browser'

QM_TEST_WORKERS=N   processes for the tests (one for each core, and one)
QM_COVERAGE=1       coverage also on Python 3.11, where it is slow
QM_CHROMIUM=FILE    the browser to drive, in place of Debian's chromium
QM_LLAMA_BIN=DIR    runs the checks against a real llama.cpp too"""
ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent

CHECKS: tuple[tuple[str, list[str]], ...] = (
    ("format", [str(BIN / "ruff"), "format", "--check", "--quiet", "."]),
    ("lint", [str(BIN / "ruff"), "check", "--quiet", "."]),
    ("import contracts", [str(BIN / "lint-imports"), "--no-cache"]),
    ("templates", [str(BIN / "djlint"), "templates", "--lint", "--quiet"]),
    ("types", [str(BIN / "mypy"), "models_app", "gpus_app", "quartermaster_site"]),
    ("dependencies", [sys.executable, "-m", "pip", "check", "--disable-pip-version-check"]),
)


def ensure_browser() -> None:
    """The browser tests drive Debian's Chromium; as root it is installed, otherwise the command to do so is printed."""
    if shutil.which("chromium") or os.environ.get("QM_CHROMIUM"):
        return
    if os.geteuid() == 0 and shutil.which("apt-get"):
        print("installing chromium for the browser tests", flush=True)
        log = ROOT / ".cache" / "apt.log"
        log.parent.mkdir(exist_ok=True)
        with log.open("w") as out:
            for command in (["apt-get", "update"], ["apt-get", "install", "-y", "--no-install-recommends", "chromium"]):
                subprocess.run(
                    command,
                    stdout=out,
                    stderr=out,
                    check=False,
                    env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
                )
    if not shutil.which("chromium"):
        print(
            "The browser tests need Chromium: install it (Debian: apt-get install chromium), or name another build in"
            " QM_CHROMIUM. Without it they fail; leave them out with: quartermaster test -m 'not browser'",
            flush=True,
        )


def run_checks() -> list[str]:
    """Run every static check and return the names of those that failed."""
    failed = []
    for name, command in CHECKS:
        result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        print(f"{name:<17} {'ok' if result.returncode == 0 else 'FAILED'}", flush=True)
        if result.returncode:
            failed.append(name)
            print(result.stdout + result.stderr, flush=True)
    return failed


def main(arguments: list[str]) -> int:
    """Exit code of pytest, or 1 when a static check failed."""
    if arguments in (["-h"], ["--help"]):
        print(USAGE)
        return 0
    pytest = [sys.executable, "-m", "pytest"]
    if arguments:
        return subprocess.run([*pytest, *arguments], cwd=ROOT, check=False).returncode
    failed = run_checks()
    if failed:
        print(f"not running the tests: {', '.join(failed)} failed", flush=True)
        return 1
    ensure_browser()
    parallel = ["-n", workers(), "--dist", "loadgroup", "-q", *coverage()]
    return subprocess.run([*pytest, *parallel], cwd=ROOT, env=environment(), check=False).returncode


def workers() -> str:
    """One more than cores: tests of browsers, brokers and routers wait much of their time, and work fills it."""
    return os.environ.get("QM_TEST_WORKERS") or str((os.cpu_count() or 1) + 1)


def coverage() -> list[str]:
    """Coverage is nearly free where the interpreter can report lines itself (3.12 and newer), costly before."""
    wanted = sys.version_info >= (3, 12) or os.environ.get("QM_COVERAGE")
    return ["--cov", "--cov-report", "term:skip-covered"] if wanted else []


def environment() -> dict[str, str]:
    return os.environ | ({"COVERAGE_CORE": "sysmon"} if sys.version_info >= (3, 12) else {})


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
