"""Reading a router's file on its host, to be imported. Runs on the host: no database, no Django."""

from __future__ import annotations

import os
import stat
from typing import Any

from gpus_app.core.errors import QuartermasterError
from gpus_app.core.router_files import SUFFIXES, is_router_file
from models_app.browsing import is_inside
from models_app.core.discovery.hostile_names import unsafe_reason
from quartermaster_site import env
from quartermaster_site.jobs.host_tasks import host_task
from quartermaster_site.jobs.reporting import Reporter

MAX_BYTES = 16 << 20


class NotRead(QuartermasterError):
    """A file that cannot, or must not, be read."""


@host_task("models_app.import_file.fetch_file")
def fetch_file(report: Reporter, inputs: dict[str, Any]) -> dict[str, Any]:
    """The text of one file: {"path"}."""
    return {"path": inputs["path"], "text": read_text(inputs["path"], env.browse_roots())}


def read_text(path: str, permitted: tuple[str, ...]) -> str:
    """A config file inside the folders that people may look through, links resolved. Raises `NotRead`."""
    if reason := unsafe_reason(path):
        raise NotRead(f"This path cannot be used: {reason}.")
    real = os.path.realpath(path)
    if not os.path.isabs(path) or not is_inside(real, permitted):
        raise NotRead(f"{path} is outside the folders that this host lets people see.")
    if not is_router_file(real):
        raise NotRead(f"Only files called {', '.join(SUFFIXES)} are read.")
    try:
        with open(real, "rb", opener=_without_waiting) as stream:
            if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                raise NotRead(f"{path} is no file.")
            data = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise NotRead(f"{path} cannot be read: {error.strerror}.") from error
    if len(data) > MAX_BYTES:
        raise NotRead(f"{path} has more than {MAX_BYTES:,} bytes.")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise NotRead(f"{path} is not UTF-8 text (byte {error.start:,}).") from error


def _without_waiting(path: str, flags: int) -> int:
    """A pipe has no end to wait for."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
