"""Jobs at speech servers: what the host is given, what it answers, and voices that a new process is given again.

A job's row names a voice; its files are put into the message to the host alone, base64 as the server wants them.
"""

from __future__ import annotations

import base64
import binascii
import logging
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from django.dispatch import receiver
from django.utils import timezone

from models_app.core.classes.voices import MAX_SPEECH_BYTES, VoiceError, check_speech
from models_app.models import Audition, Router, Row, SpeechServer, Voice
from models_app.selectors.voices import LOADED, SpeechModel, auditions_of, get_speech_model, speech_models
from models_app.services.routers import inputs_of
from models_app.signals import router_seen
from models_app.speech import KINDS, MAX_NAME_CHARACTERS, MAX_VOICES
from quartermaster_site.access.audit import Actor
from quartermaster_site.errors import Refused, Unavailable
from quartermaster_site.jobs import untrusted
from quartermaster_site.jobs.models import Job
from quartermaster_site.jobs.receiving import Receiver
from quartermaster_site.jobs.services import Started, start_job

log = logging.getLogger(__name__)
LIST, REGISTER, RESTORE, DELETE, AUDITION = (
    "list_voices",
    "register_voice",
    "restore_voice",
    "delete_voice",
    "audition",
)
ACTIONS = {LIST: "list", REGISTER: "register", RESTORE: "register", DELETE: "delete", AUDITION: "speak"}
"""Kind of a job -> what the host does."""
MAX_AUDITIONS = 8
"""Kept of each model."""


def start(kind: str, model: SpeechModel, actor: Actor, name: str = "", **inputs: Any) -> Started:
    """A job at the server of a model. Raises Refused where that cannot be asked now."""
    if problem := model.problem:
        raise Refused(problem)
    row = model.row
    label = f"{name} at {row.served_id}" if name else row.served_id
    subject = ("speech", f"{row.pk} {sha256(name.encode()).hexdigest()[:32]}", label[:300])
    return start_job(
        kind=kind, host=row.host, inputs={"row": row.pk, "name": name, **inputs}, subject=subject, actor=actor
    )


class VoiceReceiver(Receiver):
    """Lists of voices, and the sound of an audition."""

    def message(self, job: Job) -> dict[str, Any]:
        """Address, key and files as they are now: a retry may find others than the first try."""
        model = get_speech_model(job.inputs["row"])
        if problem := model.problem:
            raise Refused(problem)
        return {"action": ACTIONS[job.kind], "model": model.row.served_id, **_address(model), **_payload(job, model)}

    def batch(self, job: Job, data: dict[str, Any]) -> None:
        """The sound. What is no sound fails the job."""
        if job.kind != AUDITION:
            super().batch(job, data)
        text = data.get("audio")
        if not isinstance(text, str) or len(text) > MAX_SPEECH_BYTES * 4 // 3 + 4:
            raise untrusted.ReportRefused("the sound is no text, or longer than any that was asked for")
        try:
            audio = base64.b64decode(text, validate=True)
            wav = check_speech(audio)
        except (binascii.Error, ValueError, VoiceError) as error:
            raise untrusted.ReportRefused(f"the sound cannot be used: {error}") from error
        Audition.objects.filter(job=job).update(audio=audio, seconds=wav.seconds)

    def finish(self, job: Job, data: dict[str, Any], *, partial: bool) -> dict[str, Any]:
        if partial:
            return {}
        if job.kind == AUDITION:
            took = untrusted.number(data.get("took_seconds"), "took_seconds", 0, 86_400)
            Audition.objects.filter(job=job).update(took_seconds=took)
            return {}
        listed = _listed(data)
        note_server(_row_of(job), listed=listed, seen_at=timezone.now(), problem="")
        return {"voices": len(listed)}

    def failed(self, job: Job) -> None:
        """A server that cannot list its voices counts as away until it does."""
        if job.kind == LIST and job.error:
            note_server(_row_of(job), problem=job.error[:500])


def note_server(row_id: int, **facts: Any) -> None:
    """Store what is known of a server, unless its model was forgotten meanwhile."""
    if Row.objects.filter(pk=row_id).exists():
        SpeechServer.objects.update_or_create(row_id=row_id, defaults=facts)


def prune_auditions(row: Row) -> None:
    """Keep the newest few of a model."""
    kept = list(auditions_of(row).values_list("pk", flat=True)[:MAX_AUDITIONS])
    Audition.objects.filter(row=row).exclude(pk__in=kept).delete()


@receiver(router_seen)
def restore_when_loaded(router: Router, **_: Any) -> None:
    """A model that was loaded since its voices were sent last is another process: it is given them, and asked.

    "Since" is when a router was first seen with it; one that was loaded anew between two looks keeps its time.
    """
    loaded = {item["id"] for item in router.listed if item["state"] == LOADED}
    rows = list(Row.objects.filter(host=router.host_id, model_class="tts", served_id__in=loaded)) if loaded else []
    for model in speech_models(router.host, rows) if rows else ():
        if model.is_routed and not model.problem and model.server.served != model.since:
            _restore(model)


def _restore(model: SpeechModel) -> None:
    try:
        send_all(model)
    except Unavailable:
        log.warning("%s is not given its voices: the broker is away", model.row)
        return
    note_server(model.row.pk, served=model.since)


def send_all(model: SpeechModel) -> None:
    """Every voice that fits, one message each; without any the server is asked for what it has."""
    voices = Voice.objects.filter(host=model.row.host).defer("wav", "spk", "rvq")
    fitting = [voice for voice in voices if model.takes(voice)]
    for voice in fitting:
        start(RESTORE, model, Actor(), voice.name, voice=voice.pk)
    if not fitting:
        start(LIST, model, Actor())


def _address(model: SpeechModel) -> dict[str, Any]:
    if model.server.url:
        return {"url": model.server.url, "key": "", "routed": False}
    assert model.router is not None
    found = inputs_of(model.router)
    return {"url": found["url"], "key": found["key"], "routed": True}


def _payload(job: Job, model: SpeechModel) -> dict[str, Any]:
    """What is too large for a job's row, or what it holds already."""
    if job.kind == AUDITION:
        return {"body": job.inputs["body"]}
    if job.kind not in (REGISTER, RESTORE):
        return {"name": job.inputs["name"]}
    voice = Voice.objects.filter(host=model.row.host, pk=job.inputs["voice"]).first()
    if voice is None:
        raise Refused("This voice was deleted meanwhile.")
    files = {field: base64.b64encode(data).decode() for field, data in voice.files.items()}
    return {"name": voice.name, "ref_text": voice.ref_text, "files": files}


def _row_of(job: Job) -> int:
    """Of the job's inputs, which reports do not load."""
    return int(job.object_id.partition(" ")[0])


def _listed(data: dict[str, Any]) -> list[dict[str, str]]:
    found: Sequence[Any] = untrusted.items(data.get("voices"), "voices", MAX_VOICES)
    return [_voice(item) for item in found]


def _voice(value: Any) -> dict[str, str]:
    facts = untrusted.mapping(value, "a voice")
    kind = untrusted.text(facts.get("kind"), "kind", 16)
    if kind not in KINDS:
        raise untrusted.ReportRefused(f"{kind!r} is no kind of voice")
    return {"name": untrusted.text(facts.get("name"), "name", MAX_NAME_CHARACTERS), "kind": kind}
