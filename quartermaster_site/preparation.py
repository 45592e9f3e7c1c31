"""What `up` needs around its processes: database, cache table, static files, this host's row, the first scan."""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from quartermaster_site import env

_STAMP = ".collected"
_ADDRESS = "address"
_DEFAULT_ADDRESS = "http://127.0.0.1:8420"


@contextmanager
def only_one(data_dir: Path, verb: str = "up") -> Iterator[None]:
    """Hold the data folder: two `up` on one folder would take each other's messages, and an agent has its own."""
    path = data_dir / "up.lock"
    try:
        stream = path.open("a+")
    except OSError as error:
        raise env.ConfigurationError(f"The data folder {data_dir} is not writable: {error.strerror}.") from error
    with stream:
        if os.name == "posix":
            import fcntl

            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise env.ConfigurationError(
                    f"another `quartermaster {verb}` uses the data folder {data_dir}: stop it, or set QM_DATA_DIR."
                ) from error
        yield


def prepare() -> None:
    """Set Django up, then migrate, make the cache table and collect static files, each only as far as needed."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "quartermaster_site.settings")
    import django

    django.setup()
    _migrate()
    _collect_static()


def problem_of(error: Exception) -> str:
    """What a full disk or an absent database is called, in a sentence; "" for anything else, which is our fault."""
    from django.db import DatabaseError

    if isinstance(error, DatabaseError):
        return f"the database cannot be used: {' '.join(str(error).split()).rstrip('.')}."
    if isinstance(error, OSError):
        return f"{error.filename or env.data_dir()} cannot be used: {error.strerror or error}."
    return ""


def _migrate() -> None:
    from django.core.management import call_command
    from django.db import connection
    from django.db.migrations.executor import MigrationExecutor

    executor = MigrationExecutor(connection)
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        call_command("migrate", interactive=False, verbosity=0)
    call_command("createcachetable", verbosity=0)


def _collect_static() -> None:
    """Copy and hash static files, unless none of them has changed since the last time."""
    from django.conf import settings
    from django.contrib.staticfiles.finders import get_finders
    from django.core.management import call_command

    digest = hashlib.sha256()
    for finder in get_finders():
        for name, storage in finder.list([]):
            status = os.stat(storage.path(name))
            digest.update(f"{name}\0{status.st_size}\0{status.st_mtime_ns}\n".encode())
    stamp = Path(settings.STATIC_ROOT) / _STAMP
    wanted = digest.hexdigest()
    if stamp.exists() and stamp.read_text() == wanted:
        return
    try:
        call_command("collectstatic", interactive=False, clear=True, verbosity=0)
        stamp.write_text(wanted)
    except OSError as error:
        raise env.ConfigurationError(f"Static files cannot be written to {stamp.parent}: {error}.") from error


def register_host() -> None:
    """This machine's row."""
    from gpus_app.services import register_host

    register_host(slug=env.host_slug(), name=platform.node() or env.host_slug())


def recover() -> None:
    """No worker of ours runs now: what an earlier run left unfinished is lost, and starts again where that is safe."""
    from django.utils import timezone

    from gpus_app.models import Host
    from models_app.services import drift, routers, watching
    from quartermaster_site.jobs.sweeping import lose_all, note_round

    note_round(timezone.now())
    host = Host.objects.get(slug=env.host_slug())
    lose_all(host)
    watching.forget_question(host)
    routers.forget_question(host)
    drift.forget_question(host)


def note_address(address: str) -> None:
    """Keep where the pages are, for links that other commands print."""
    (env.data_dir() / _ADDRESS).write_text(address, encoding="utf-8")


def noted_address() -> str:
    """Where `up` last served the pages; its default before that."""
    try:
        return (env.data_dir() / _ADDRESS).read_text(encoding="utf-8").strip() or _DEFAULT_ADDRESS
    except (OSError, UnicodeDecodeError):
        return _DEFAULT_ADDRESS


def setup_token() -> str:
    """A fresh setup token while there is no administrator, else ""."""
    from quartermaster_site.access.selectors import administrator_exists
    from quartermaster_site.access.services import issue_setup_token

    return "" if administrator_exists() else issue_setup_token()


def broker_trouble() -> str:
    """What to tell when no job can be queued now; "" when all is well. Pages work without a broker."""
    from quartermaster_site.jobs.connection import broker_problem

    problem = broker_problem()
    return f"{problem} Jobs start when it does; until then pages only show, edit and preview." if problem else ""


def queue_first_scan(folders: Sequence[str]) -> str:
    """Register the folders as roots of this host and scan; returns what to tell."""
    from gpus_app.models import Host
    from models_app.services import register_root, start_scan
    from quartermaster_site.access.audit import Actor
    from quartermaster_site.errors import Refused, Unavailable

    host = Host.objects.get(slug=env.host_slug())
    refused = []
    for folder in folders:
        try:
            register_root(host=host, path=folder, actor=Actor())
        except Refused as error:
            refused.append(f"{folder}: {error}")
    try:
        started = start_scan(host=host, actor=Actor())
    except Unavailable:
        return "; ".join(["the folders are known, but not scanned yet", *refused])
    text = f"scanning {', '.join(folders)} (job {started.job.pk})"
    return "; ".join([text, *refused])
