"""Looking for executables of known names on this machine, so that nobody has to type their paths. Imports no Django.

They are looked for on the search path and below the folders from which this host runs backends; where these are not
set, below the usual places of builds. Nothing that is found is run here.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from models_app.backend_probing import is_permitted
from models_app.core.launch.backends import PROGRAMS
from quartermaster_site import env
from quartermaster_site.jobs.host_tasks import host_task
from quartermaster_site.jobs.reporting import Reporter

MAX_PROGRAMS = 64
MAX_FOLDERS = 20_000
MAX_DEPTH = 6
"""Folders below a place; `llama.cpp/build/bin` is three deep."""
SECONDS = 15.0
USUAL_PLACES = ("~", "/opt", "/usr/local", "/srv")
_DULL = frozenset({"node_modules", "site-packages", "__pycache__", "CMakeFiles", "proc", "sys"})


@host_task("models_app.program_search.find_programs")
def find_programs(report: Reporter, inputs: dict[str, Any]) -> dict[str, Any]:
    """Known programs of this machine: {"programs": [{"kind", "path"}]}."""
    report.progress("Looking", 0, None, unit="folders")
    permitted = env.backend_roots()
    everywhere = permitted == (os.path.abspath(os.sep),)
    places = [os.path.expanduser(place) for place in USUAL_PLACES] if everywhere else permitted
    return {"programs": search(os.get_exec_path(), places, permitted, stop=report.is_cancelled)}


def search(
    search_path: Iterable[str],
    places: Iterable[str],
    permitted: Sequence[str],
    *,
    stop: Callable[[], bool] = lambda: False,
    clock_seconds: Callable[[], float] = time.monotonic,
) -> list[dict[str, str]]:
    """Each file once, under the first path that leads to it, those of the search path first."""
    end = clock_seconds() + SECONDS
    found: list[dict[str, str]] = []
    seen: set[str] = set()
    for folder in _folders(search_path, places):
        if len(found) >= MAX_PROGRAMS or clock_seconds() > end or stop():
            break
        for name, kind in PROGRAMS.items():
            for path in (os.path.join(folder, name), os.path.join(folder, f"{name}.exe")):
                real = os.path.realpath(path)
                if real not in seen and _is_program(real) and is_permitted(real, permitted):
                    seen.add(real)
                    found.append({"kind": kind, "path": path})
    return found[:MAX_PROGRAMS]


def _folders(search_path: Iterable[str], places: Iterable[str]) -> Iterator[str]:
    yield from (folder for folder in search_path if os.path.isabs(folder))
    left = MAX_FOLDERS
    for place in places:
        for folder in _below(place):
            if left <= 0:
                return
            left -= 1
            yield folder


def _below(place: str) -> Iterator[str]:
    """A folder and those below it, breadth first: builds lie near the top, and time may run out. No links."""
    level = [place]
    for _ in range(MAX_DEPTH + 1):
        yield from level
        level = [child for folder in level for child in _children(folder)]


def _children(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as found:
            names = [entry.name for entry in found if entry.is_dir(follow_symlinks=False)]
    except OSError:  # what cannot be read is not searched
        return []
    return [os.path.join(folder, name) for name in sorted(names) if not name.startswith(".") and name not in _DULL]


def _is_program(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)
