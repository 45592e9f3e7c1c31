"""`./quartermaster doctor`: what is installed, what is missing, and the remedy for each."""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path

from gpus_app.core.errors import QuartermasterError
from gpus_app.core.probes.machine import read_machine
from gpus_app.core.units import to_gib
from models_app.core.spawn_guard.options import beside
from quartermaster_site import env
from quartermaster_site.version import product_version

BASE_DIR = Path(__file__).resolve().parent.parent
CONSTRAINTS = BASE_DIR / "constraints.txt"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_PIN = re.compile(r"([A-Za-z0-9_.-]+)==([^;\s]+)\s*(?:;\s*python_version\s*(<|>=)\s*\"3\.(\d+)\")?")
_LOW_DISK_SHARE = 0.05


@dataclass(frozen=True, slots=True)
class Result:
    """`ok`, `note` (something optional is absent) or `problem`, and what to do about it."""

    name: str
    state: str
    text: str
    remedy: str = ""


def python() -> Result:
    return Result("Python", "ok", f"{platform.python_version()} at {sys.executable}")


def virtual_environment() -> Result:
    if sys.prefix == sys.base_prefix:
        remedy = "Start through ./quartermaster, which makes .venv on first use."
        return Result("Virtual environment", "note", "none: packages of the system are used", remedy)
    return Result("Virtual environment", "ok", sys.prefix)


def packages() -> Result:
    """The installed versions against constraints.txt. Packages for development are only compared where installed."""
    required = {_normal(requirement) for requirement in _requirements()}
    differing, missing = [], []
    for name, wanted in _pins():
        try:
            found = metadata.version(name)
        except metadata.PackageNotFoundError:
            if _normal(name) in required:
                missing.append(name)
            continue
        if found != wanted:
            differing.append(f"{name} {found} instead of {wanted}")
    if missing:
        return Result("Packages", "problem", f"missing: {', '.join(missing)}", "Remove .venv and start again.")
    if differing:
        shown = ", ".join(differing[:5]) + (f" and {len(differing) - 5} more" if len(differing) > 5 else "")
        return Result("Packages", "note", shown, "Remove .venv and start again to get the tested versions.")
    return Result("Packages", "ok", "as pinned in constraints.txt")


def _requirements() -> list[str]:
    path = BASE_DIR / "requirements.txt"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [re.split(r"[\[<>=~! ;]", line.strip())[0] for line in lines if line.strip() and line[0] not in "#-"]


def _pins() -> list[tuple[str, str]]:
    found = []
    for line in CONSTRAINTS.read_text(encoding="utf-8").splitlines():
        match = _PIN.match(line.strip())
        if match and _applies(match[3], match[4]):
            found.append((match[1], match[2]))
    return found


def _applies(operator: str | None, minor: str | None) -> bool:
    if operator is None or minor is None:
        return True
    older = sys.version_info < (3, int(minor))
    return older if operator == "<" else not older


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def data_folder() -> Result:
    try:
        folder = env.prepared_data_dir()
        usage = shutil.disk_usage(folder)
    except (QuartermasterError, OSError) as error:
        return Result("Data folder", "problem", str(error), "Set QM_DATA_DIR to a folder that you can write to.")
    text = f"{folder}, {to_gib(usage.free, 1)} GiB free"
    if usage.free < _LOW_DISK_SHARE * usage.total:
        return Result("Data folder", "problem", text, "Free some space: less than 5 % of the disk is left.")
    return Result("Data folder", "ok", text)


def settings_variables() -> Result:
    """The `QM_*` variables; unknown ones are named, since a misspelt one is silently ignored elsewhere."""
    ours = sorted(name for name in os.environ if name.startswith("QM_"))
    unknown = [name for name in ours if name.removesuffix("_FILE") not in env.VARIABLES]
    try:
        for reader in env.READERS:
            reader()
    except QuartermasterError as error:
        return Result("Settings", "problem", str(error), "Correct or unset that variable.")
    if unknown:
        return Result("Settings", "note", f"not known: {', '.join(unknown)}", "Look for a misspelling.")
    return Result("Settings", "ok", ", ".join(ours) or "all at their defaults")


def broker() -> Result:
    """The queue between the web server and the workers."""
    try:
        from quartermaster_site.jobs.connection import broker_problem

        problem = broker_problem()
    except QuartermasterError as error:
        problem = str(error)
    where = "Redis" if os.environ.get("QM_REDIS_URL") else "files in the data folder"
    if problem:
        return Result("Queue", "problem", problem, "Start that server, or unset QM_REDIS_URL.")
    return Result("Queue", "ok", where)


def database() -> Result:
    """Whether the database answers; an absent SQLite file is made by `up`."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "quartermaster_site.settings")
    try:
        import django
        from django.db import DatabaseError, connection

        django.setup()
        try:
            with connection.cursor() as cursor:
                cursor.execute("SELECT 1")
        except DatabaseError as error:
            return Result("Database", "problem", str(error).strip(), "Check QM_DATABASE_URL and that it runs.")
        return Result("Database", "ok", connection.vendor)
    except QuartermasterError as error:
        return Result("Database", "problem", str(error), "Correct that first.")


def devices() -> Result:
    machine = read_machine()
    if machine.devices:
        names = ", ".join(f"{device.name} ({to_gib(device.total_bytes, 1)} GiB)" for device in machine.devices)
        return Result("GPUs", "ok", names)
    remedy = "Install the vendor's driver if there is a GPU; else plan for RAM, or set the budget by hand."
    return Result("GPUs", "note", "; ".join(machine.notes) or "none seen", remedy)


def memory() -> Result:
    reading = read_machine(()).memory
    if reading is None:
        return Result("RAM", "note", "cannot be read", "Set the RAM limit by hand.")
    total, free = to_gib(reading.total_bytes, 1), to_gib(reading.free_bytes, 1)
    return Result("RAM", "ok", f"{free} of {total} GiB available")


def llama_server() -> Result:
    path = shutil.which("llama-server")
    if path:
        return Result("llama-server", "ok", path)
    remedy = "Install llama.cpp where the router runs; planning works without it."
    return Result("llama-server", "note", "not on the search path", remedy)


def spawn_guard() -> Result:
    """llama-swap's files name this script where the guard is on."""
    path = beside(sys.executable)
    if os.access(path, os.X_OK):
        return Result("Spawn guard", "ok", path)
    remedy = "Start any command through ./quartermaster, which makes it."
    return Result("Spawn guard", "note", f"{path} is not there", remedy)


def browser() -> Result:
    """Only the browser tests need one."""
    path = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if path:
        return Result("Chromium", "ok", path)
    return Result("Chromium", "note", "not found (browser tests only)", "Debian: apt install chromium")


CHECKS: tuple[Callable[[], Result], ...] = (
    python,
    virtual_environment,
    packages,
    data_folder,
    settings_variables,
    database,
    broker,
    devices,
    memory,
    llama_server,
    spawn_guard,
    browser,
)


def checks_here() -> tuple[Callable[[], Result], ...]:
    """On a machine that is enrolled elsewhere, its server takes the place of database and queue."""
    from quartermaster_site.agent import doctor as agent

    if not agent.is_agent():
        return CHECKS
    replaced = {database: agent.no_database, broker: agent.broker}
    return (*(replaced.get(check, check) for check in CHECKS), agent.server)


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0 when nothing is a problem, else 1."""
    parser = argparse.ArgumentParser(prog="quartermaster doctor", description="what is installed, what is missing")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    options = parser.parse_args(arguments)
    worst = 0
    if not options.json:
        _print(f"quartermaster {product_version()} on {platform.platform()}")
    for check in checks_here():
        result = check()
        worst = max(worst, int(result.state == "problem"))
        _print(json.dumps(asdict(result)) if options.json else _line(result))
    return worst


def _line(result: Result) -> str:
    mark = {"ok": "ok     ", "note": "note   ", "problem": "PROBLEM"}[result.state]
    remedy = f"\n{'':<31}-> {result.remedy}" if result.remedy else ""
    return f"{mark}  {result.name:<20}  {result.text}{remedy}"


def _print(text: str) -> None:
    print(text)  # noqa: T201 - this is the command's output


if __name__ == "__main__":
    raise SystemExit(main())
