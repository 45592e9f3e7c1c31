"""Importing a file that lies on a host: its worker reads it, and what it says is taken like an upload."""

from __future__ import annotations

import posixpath
from typing import Any

from gpus_app.models import Host
from gpus_app.services import is_absolute
from models_app.core.discovery.hostile_names import unsafe_reason
from models_app.services.importing import AUTO, CONFIG, start_import
from quartermaster_site.access.audit import Actor, record
from quartermaster_site.access.permissions import Level, require
from quartermaster_site.errors import Refused
from quartermaster_site.jobs import untrusted
from quartermaster_site.jobs.models import Job
from quartermaster_site.jobs.receiving import Receiver
from quartermaster_site.jobs.services import Started, start_job

MAX_TEXT = 16 << 20
MAX_PATH = 1024


def start_fetch(*, host: Host, path: str, source: str = CONFIG, dialect: str = AUTO, actor: Actor) -> Started:
    """Have the host read a file; the finished job's result names the import."""
    require(actor.user, Level.MANAGE)
    path = path.strip()
    if len(path) > MAX_PATH or not is_absolute(path, host.os_family) or unsafe_reason(path):
        raise Refused("Write the whole path of a file.", fields={"path": "Write the whole path of a file."})
    started = start_job(
        kind="import_fetch",
        host=host,
        inputs={"path": path, "source": source, "dialect": dialect},
        subject=("file", "", path[:300]),
        actor=actor,
    )
    if started.created:
        record(actor, "import.fetch", subject=started.job, label=path[:300], host_slug=host.slug)
    return started


class FetchReceiver(Receiver):
    """What a host read becomes an import; the job's row keeps nothing of the text."""

    def finish(self, job: Job, data: dict[str, Any], *, partial: bool) -> dict[str, Any]:
        if partial or job.host is None:
            return {}
        path = untrusted.path(data.get("path"), "path")
        text = untrusted.text(data.get("text"), "text", MAX_TEXT)
        actor = Actor(user=job.started_by, name=str(job.started_by or "system"))
        name = posixpath.basename(path.replace("\\", "/")) or path
        try:
            batch = start_import(
                host=job.host,
                name=name,
                data=text.encode("utf-8", "surrogatepass"),
                source=str(job.inputs.get("source", CONFIG)),
                dialect=str(job.inputs.get("dialect", AUTO)),
                actor=actor,
            )
        except Refused as error:
            return {"problem": str(error)}
        return {"import": batch.pk}
