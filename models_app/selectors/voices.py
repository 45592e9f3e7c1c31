"""Speech models of a host, how their servers are reached, and the voices kept for them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone

from gpus_app.models import Host
from models_app import convert
from models_app.core.classes.tts import QWENTTS
from models_app.core.classes.voices import fits
from models_app.models import Audition, Router, Row, SpeechServer, Voice
from models_app.selectors.editing import speech_engine
from models_app.selectors.sight import seen_rows
from quartermaster_site.access.grants import ROWS, grants_of
from quartermaster_site.access.permissions import Level, require
from quartermaster_site.errors import NotFound
from quartermaster_site.jobs.models import Job
from quartermaster_site.jobs.sight import job_sight

PASSING_ROUTERS = ("llama-swap", "quartermaster")
"""Routers that pass any request on to one of their models. llama-server's runs no speech servers."""
LOADED = "loaded"
_FILES = ("wav", "spk", "rvq")
_MOST_JOBS = 100


@dataclass(frozen=True, slots=True)
class SpeechModel:
    """A model on qwentts.cpp. `state` is what the router says of it, "" where it says nothing."""

    row: Row
    server: SpeechServer
    type: str = ""
    """base, custom_voice or voice_design; "" where its header was not read for that yet."""
    width: int = 0
    router: Router | None = None
    state: str = ""
    since: str = ""

    @property
    def problem(self) -> str:
        """Why its server cannot be asked now, "" where it can."""
        if self.server.url:
            return ""
        if self.router is None or not self.router.url:
            return "Nobody knows where its server is: the host has no router address, and this model none of its own."
        if self.row.host.publish_dialect not in PASSING_ROUTERS:
            return "The router of this host runs no speech servers; give the address of one that runs beside it."
        if self.router.problem:
            return "The router cannot be asked."
        return (
            ""
            if self.state == LOADED
            else "Its server is not running: the router starts it when the model is asked for."
        )

    @property
    def is_routed(self) -> bool:
        return not self.server.url

    @property
    def is_current(self) -> bool:
        """Is what was listed last the voices of the process that runs now?"""
        if self.problem or self.server.problem or self.server.seen_at is None:
            return False
        return not self.is_routed or self.server.served == self.since

    @property
    def listed(self) -> dict[str, str]:
        """Name -> kind, as its server listed them last."""
        return {item["name"]: item["kind"] for item in self.server.listed}

    def takes(self, voice: Voice) -> bool:
        return fits(voice.width, self.type, self.width)


def seen_speech_models(host: Host, user: Any) -> list[SpeechModel]:
    """Those of a host that a person sees."""
    return speech_models(host, list(seen_rows(user).filter(host=host, model_class="tts").order_by("served_id")))


def speech_models(host: Host, rows: Sequence[Row] | None = None) -> list[SpeechModel]:
    """All of a host, or some of its rows. Four queries at most."""
    if rows is None:
        rows = list(Row.objects.filter(host=host, model_class="tts").order_by("served_id"))
    rows = [row for row in rows if speech_engine(row) == QWENTTS]
    if not rows:
        return []
    router = Router.objects.filter(host=host).first()
    states = {item["id"]: item for item in router.listed} if router else {}
    servers = {server.row_id: server for server in SpeechServer.objects.filter(row__in=rows)}
    header_of = convert.header_lookup(host, [row.path for row in rows])
    return [_speech_model(host, row, router, states, servers, header_of(row.path)) for row in rows]


def _speech_model(
    host: Host,
    row: Row,
    router: Router | None,
    states: Mapping[str, Mapping[str, Any]],
    servers: Mapping[int, SpeechServer],
    header: Any,
) -> SpeechModel:
    row.host = host
    state = states.get(row.served_id, {})
    width = header.extra.get("talker.embedding_length", 0) if header else 0
    return SpeechModel(
        row=row,
        server=servers.get(row.pk) or SpeechServer(row=row),
        type=header.speech_type if header else "",
        width=width if isinstance(width, int) else 0,
        router=router,
        state=state.get("state", ""),
        since=state.get("since", ""),
    )


def get_speech_model(pk: int) -> SpeechModel:
    """One of them, for those who act for nobody. Raises NotFound."""
    return _found(Row.objects.filter(pk=pk, model_class="tts"))


def speech_model_for(user: Any, host: Host, pk: int, level: Level = Level.VIEW) -> SpeechModel:
    """One of a host for a person, who needs `level` on it. NotFound where it is hidden from them, else NotAllowed."""
    found = _found(seen_rows(user).filter(pk=pk, host=host, model_class="tts"))
    require(user, level, found.row)
    return found


def _found(rows: QuerySet[Row]) -> SpeechModel:
    row = rows.select_related("host").first()
    found = speech_models(row.host, [row]) if row else []
    if not found:
        raise NotFound("There is no such speech model here.")
    return found[0]


def voices_of(host: Host) -> QuerySet[Voice]:
    """All voices of a host, without their files."""
    return Voice.objects.filter(host=host).select_related("by").defer(*_FILES)


def get_voice(host: Host, pk: int) -> Voice:
    """One voice without its files. Raises NotFound."""
    found = voices_of(host).filter(pk=pk).first()
    if found is None:
        raise NotFound("There is no such voice here.")
    return found


def jobs_at(host: Host, kinds: Collection[str], user: Any) -> list[Job]:
    """The newest of these jobs at each server and about each voice that a person sees, of the last day."""
    since = timezone.now() - timedelta(days=1)
    jobs = job_sight(user).seen(Job.objects.filter(host=host, kind__in=kinds, created_at__gt=since))
    jobs = jobs.defer("inputs", "log", "result")
    newest: dict[str, Job] = {}
    for job in jobs[:_MOST_JOBS]:
        newest.setdefault(job.object_id, job)
    return list(newest.values())


def auditions_of(row: Row) -> QuerySet[Audition]:
    """What was tried with a model, the newest first, without the sound."""
    return Audition.objects.filter(row=row).select_related("job", "by").defer("audio")


def get_audition(host: Host, pk: int, user: Any) -> Audition:
    """One audition of a model that a person sees, with its sound. Raises NotFound."""
    seen = grants_of(user).seen(Audition.objects.all(), ROWS.behind("row"))
    found = seen.select_related("row").filter(row__host=host, pk=pk).first()
    if found is None:
        raise NotFound("There is no such audition here.")
    return found
