"""What a host worker does about models: plain JSON in and out, no database, no Django."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gpus_app.core.probes.program import ProgramRun, run_program
from models_app import (
    backend_probing,
    browsing,
    checking,
    folder_events,
    routing,
    scanning,
    target_file,
    watching,
)
from models_app.core.discovery.roots import Root
from models_app.core.export.host_rules import adapters_among
from models_app.core.export.keys import resolved
from models_app.core.readers.cache import HeaderCache
from models_app.core.spawn_guard.options import beside
from models_app.trial.launch import try_launch
from quartermaster_site import env
from quartermaster_site.celery import app
from quartermaster_site.jobs.dispatch import CONTROL_QUEUE, send
from quartermaster_site.jobs.host_tasks import Cancelled, host_task
from quartermaster_site.jobs.reporting import Reporter

PLATFORM = {"win32": "windows", "darwin": "darwin"}.get(sys.platform, "linux")


def cache_file() -> Path:
    """Where this worker keeps header facts."""
    return env.prepared_data_dir() / "worker" / "headers.sqlite3"


def open_cache() -> HeaderCache:
    """The header cache of this worker. A scan asks for each file once."""
    cache_file().parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return HeaderCache(cache_file(), in_memory=0)


def guard_place() -> dict[str, str]:
    """Where the spawn guard of this machine lies, and where it finds header facts."""
    program = beside(sys.executable)
    return {"program": program if os.access(program, os.X_OK) else "", "header_cache": str(cache_file())}


@host_task("models_app.host_tasks.scan_folders")
def scan_folders(report: Reporter, inputs: dict[str, Any]) -> dict[str, Any]:
    """Everything below the roots of `inputs`: {"roots": [[path, category]], "known": {path: [size, mtime, parser]}}.

    The files of "fresh" are read again even when nothing about them has changed; "seen" is the fingerprint of the
    listing that is stored.
    """
    roots = [Root(path, category) for path, category in inputs["roots"]]
    cache = open_cache()
    try:
        if inputs.get("fresh"):
            cache.forget(inputs["fresh"])
        known, seen = inputs.get("known", {}), inputs.get("seen", "")
        scan = scanning.Scan(report, cache, PLATFORM, known, seen, browsing.sight(browsing.scan_roots()))
        return {**scan.run(roots), "guard": guard_place()}
    finally:
        cache.close()


@app.task(name="models_app.host_tasks.look_at_folders")  # type: ignore[untyped-decorator]
def look_at_folders(slug: str, token: str, roots: list[list[str]], seen: str) -> None:
    """Say whether these folders are still as the control side has them. No job: there may be nothing to tell."""
    may_see = browsing.sight(browsing.scan_roots())
    if env.role() in ("host", "all"):
        paths = [path for path, _ in roots if may_see is None or may_see(os.path.realpath(path))]
        folder_events.follow(paths, lambda: send("models_app.tasks.folders_stir", CONTROL_QUEUE, slug=slug))
    wanted = [Root(path, category) for path, category in roots]
    answer = watching.look(wanted, seen, platform=PLATFORM, should_stop=folder_events.is_over, may_see=may_see)
    if answer is not None:
        send("models_app.tasks.folders_looked_at", CONTROL_QUEUE, slug=slug, token=token, answer=answer)


@host_task("models_app.host_tasks.browse_folder")
def browse_folder(report: Reporter, inputs: dict[str, Any]) -> dict[str, Any]:
    """Names in one folder; of executables only those that this host would run."""
    permitted = env.browse_roots() if inputs.get("for") != "executable" else env.executable_roots()
    return browsing.list_folder(inputs["path"], permitted)


@host_task("models_app.host_tasks.find_checker")
def find_checker(report: Reporter, inputs: dict[str, Any]) -> dict[str, Any]:
    """The llama-fit-params that belongs to each of some servers."""
    return {"programs": checking.look_for(report, inputs["servers"], inputs.get("named", ""))}


@host_task("models_app.host_tasks.verify_memory")
def verify_memory(report: Reporter, inputs: dict[str, Any]) -> dict[str, Any]:
    """What llama.cpp itself projects for one launch."""
    _require_adapters_seen(inputs["words"])
    return checking.check(report, inputs)


@host_task("models_app.host_tasks.probe_backends")
def probe_backends(report: Reporter, inputs: dict[str, Any]) -> dict[str, Any]:
    """What the executables of `inputs` say of themselves: {"programs": [[number, path]], "fresh": ask again}."""
    environment = env.program_environment()

    def run(command: Sequence[str], seconds: float) -> ProgramRun:
        answer = run_program(command, seconds, environment, report.is_cancelled)
        if report.is_cancelled():
            raise Cancelled
        return answer

    prober = backend_probing.Prober(run, env.backend_roots())
    found, programs = [], inputs["programs"]
    for done, (number, path) in enumerate(programs):
        report.progress("Asking", done, len(programs), unit="programs", current=path)
        answer = prober.probe(path, fresh=bool(inputs.get("fresh")))
        report.warnings += bool(answer["problem"])
        found.append({"number": number, "path": path, **answer})
    return {"programs": found}


@host_task("models_app.host_tasks.test_launch")
def test_launch(report: Reporter, inputs: dict[str, Any]) -> dict[str, Any]:
    """Start a command once, ask it something, stop it."""
    _require_adapters_seen(inputs["words"])
    return try_launch(report, inputs, environment=env.program_environment(), permitted=env.backend_roots())


def _require_adapters_seen(words: Sequence[Any]) -> None:
    named = adapters_among([str(word) for word in words], windows=PLATFORM == "windows")
    target_file.require_seen(named, browsing.scan_roots())


@host_task("models_app.host_tasks.write_config")
def write_config(report: Reporter, inputs: dict[str, Any]) -> dict[str, Any]:
    """Write the router's file, and have the router read it where `inputs` says how to reach it."""
    report.progress("Writing", 0, 1)
    target_file.require_place(inputs["path"], env.target_roots())
    target_file.require_seen(inputs.get("adapters", ()), browsing.scan_roots())
    target_file.require_files(inputs.get("must_exist", ()))
    router = inputs.get("router")
    before = routing.read_now(inputs["path"]) if router else None
    keys = inputs.get("keys", {})
    text = resolved(inputs["text"], keys)
    if report.is_cancelled():
        raise Cancelled
    written = target_file.write_target(
        inputs["path"],
        text,
        sha256=inputs["sha256"],
        expected_sha256=inputs["expected_sha256"],
        adopt=inputs["adopt"],
        keep_backups=inputs.get("keep_backups", target_file.KEEP_BACKUPS),
        companions=[(item["name"], resolved(item["text"], keys)) for item in inputs.get("companions", ())],
    )
    reloaded: dict[str, Any] = {"outcome": "", "warned": False}
    if router:
        report.progress("Reloading", 1, 2)
        reloaded = routing.reload(router, written, before, text)
        report.warnings += reloaded["warned"]
    return {
        "path": written.path,
        "sha256": written.sha256,
        "backup": written.backup,
        "in_place": written.in_place,
        "reload": reloaded["outcome"],
    }


@host_task("models_app.host_tasks.ask_router")
def ask_router(report: Reporter, inputs: dict[str, Any]) -> dict[str, Any]:
    """Load or unload: {"action": load or unload, "model": id or *, "url", "key", "kind"}."""
    return routing.act(inputs, lambda text: report.progress(text, 0), lambda: not report.is_cancelled())


@app.task(name="models_app.host_tasks.look_at_router")  # type: ignore[untyped-decorator]
def look_at_router(slug: str, token: str, inputs: dict[str, Any]) -> None:
    """Say what the router has loaded. No job: it is asked again and again."""
    send("models_app.tasks.router_looked_at", CONTROL_QUEUE, slug=slug, token=token, answer=routing.look(inputs))
