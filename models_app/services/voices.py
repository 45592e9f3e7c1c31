"""What people do with voices: keep one, have it sent again, delete it, try it, and say where a server is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import Sum
from django.utils import timezone

from gpus_app.models import Host
from gpus_app.services import request_plan
from models_app.core.classes.voices import (
    MAX_REFERENCE_CHARACTERS,
    MAX_TEXT_CHARACTERS,
    Recording,
    VoiceError,
    check_latents,
    check_name,
    check_wav,
    request_problem,
)
from models_app.models import Audition, Voice
from models_app.router.connection import checked_url
from models_app.selectors.voices import SpeechModel, speech_models
from models_app.services.voice_jobs import AUDITION, DELETE, LIST, REGISTER, note_server, prune_auditions, start
from quartermaster_site.access.audit import Actor, record
from quartermaster_site.access.permissions import Level, require
from quartermaster_site.errors import Refused
from quartermaster_site.jobs.services import Started

MAX_VOICES = 32
MAX_TOTAL_BYTES = 256 << 20
"""Of all voices of a host."""


@dataclass(frozen=True, slots=True)
class NewVoice:
    """A voice as it was uploaded: a recording, or a speaker file with its codes."""

    name: str
    ref_text: str = ""
    wav: bytes = b""
    spk: bytes = b""
    rvq: bytes = b""
    replaces: bool = False
    """A voice of this name may be there already."""


def keep_voice(*, host: Host, new: NewVoice, actor: Actor) -> tuple[Voice, list[Started]]:
    """Store a voice and send it to the running servers that take it. Raises Refused with a message per field."""
    require(actor.user, Level.EDIT, host)
    try:
        name, facts = check_name(new.name), _checked(new)
    except VoiceError as error:
        raise Refused(str(error), fields={error.field: str(error)}) from error
    if len(new.ref_text) > MAX_REFERENCE_CHARACTERS:
        raise _refusal("ref_text", f"What is said may have {MAX_REFERENCE_CHARACTERS:,} characters at most.")
    models = speech_models(host)
    _check_fit(facts, models)
    with transaction.atomic():
        Host.objects.select_for_update().get(pk=host.pk)
        known = Voice.objects.filter(host=host, name=name).defer("wav", "spk", "rvq").first()
        if known is not None and not new.replaces:
            raise _refusal("name", f"There is a voice {name} already. Tick “Replace” to take this one instead.")
        _check_room(host, known, facts)
        voice = _stored(host, name, new, facts, known, actor)
        changes = {"voice": ["", name], "made from": ["", f"{voice.form} {facts.sha256[:16]}"]}
        record(
            actor, "voice.replace" if known else "voice.register", subject=host, host_slug=host.slug, changes=changes
        )
        _plan_again(host, actor, voice, known)
        jobs = [send_voice(voice=voice, model=model, actor=actor) for model in models if _can_take(model, voice)]
    return voice, jobs


def _checked(new: NewVoice) -> Recording:
    if new.wav and (new.spk or new.rvq):
        raise VoiceError("wav", "Choose a recording or a speaker file with its codes, not both.")
    if new.wav:
        return check_wav(new.wav)
    if new.spk or new.rvq:
        if not (new.spk and new.rvq):
            raise VoiceError("spk" if new.rvq else "rvq", "A speaker file and its codes belong together: choose both.")
        return check_latents(new.spk, new.rvq)
    raise VoiceError("wav", "Choose a recording, or a speaker file with its codes.")


def _check_fit(facts: Recording, models: list[SpeechModel]) -> None:
    """Latents of a width that no model here has would fail only when they speak."""
    bases = [model for model in models if model.type in ("", "base")]
    if models and not bases:
        raise _refusal("", "No base model is here: only those take voices of one's own.")
    widths = {model.width for model in bases}
    if facts.width and widths and 0 not in widths and facts.width not in widths:
        here = " and ".join(f"{width:,}" for width in sorted(widths))
        raise _refusal("spk", f"It was made for a talker {facts.width:,} wide; those of this host are {here} wide.")


def _check_room(host: Host, known: Voice | None, facts: Recording) -> None:
    others = Voice.objects.filter(host=host).exclude(pk=known.pk if known else 0)
    if others.count() >= MAX_VOICES:
        raise _refusal("", f"{MAX_VOICES} voices are kept for a host at most: delete one first.")
    if (others.aggregate(n=Sum("size_bytes"))["n"] or 0) + facts.size_bytes > MAX_TOTAL_BYTES:
        raise _refusal("", f"All voices of a host may have {MAX_TOTAL_BYTES >> 20} MiB: delete one first.")


def _stored(host: Host, name: str, new: NewVoice, facts: Recording, known: Voice | None, actor: Actor) -> Voice:
    voice = Voice(
        pk=known.pk if known else None,
        host=host,
        name=name,
        form=Voice.Form.WAV if new.wav else Voice.Form.LATENTS,
        ref_text=new.ref_text.strip(),
        wav=new.wav,
        spk=new.spk,
        rvq=new.rvq,
        sha256=facts.sha256,
        size_bytes=facts.size_bytes,
        seconds=facts.seconds,
        width=facts.width,
        by=actor.user,
        at=timezone.now(),
    )
    voice.save()
    return voice


def _plan_again(host: Host, actor: Actor, voice: Voice | None, before: Voice | None) -> None:
    """Recordings take memory of their own in every server: the first and the last one change plans."""
    forms = {item.form for item in (voice, before) if item}
    gone = before is not None and before.form == Voice.Form.WAV and (voice is None or voice.form != Voice.Form.WAV)
    others = Voice.objects.filter(host=host, form=Voice.Form.WAV).exclude(pk=voice.pk if voice else 0).exists()
    if Voice.Form.WAV in forms and not others and (gone or before is None or before.form != Voice.Form.WAV):
        transaction.on_commit(lambda: request_plan(host=host, actor=actor))


def _can_take(model: SpeechModel, voice: Voice) -> bool:
    return not model.problem and model.takes(voice)


def send_voice(*, voice: Voice, model: SpeechModel, actor: Actor) -> Started:
    """Register a kept voice with one running server. Raises Refused where it does not fit or nothing runs."""
    require(actor.user, Level.OPERATE, voice.host)
    if not model.takes(voice):
        raise Refused(f"{voice.name} does not fit {model.row.served_id}: voices are for base models of the same width.")
    started = start(REGISTER, model, actor, voice.name, voice=voice.pk)
    if started.created:
        changes = {"voice": ["", voice.name]}
        record(actor, "voice.send", subject=model.row, host_slug=model.row.host.slug, changes=changes)
    return started


def delete_voice(*, voice: Voice, actor: Actor) -> list[Started]:
    """Forget a voice, and have every running server that lists it drop it. One that is gone has none anyway."""
    require(actor.user, Level.EDIT, voice.host)
    host = voice.host
    with transaction.atomic():
        record(actor, "voice.delete", subject=host, host_slug=host.slug, changes={"voice": [voice.name, ""]})
        name = voice.name
        voice.delete()
        _plan_again(host, actor, None, voice)
        holding = [model for model in speech_models(host) if model.listed.get(name) == "registered"]
        return [start(DELETE, model, actor, name) for model in holding if not model.problem]


def drop_voice(*, model: SpeechModel, name: str, actor: Actor) -> Started:
    """Have one server drop a voice that somebody else registered there."""
    require(actor.user, Level.EDIT, model.row)
    if model.listed.get(name) != "registered":
        raise Refused("The server did not list such a voice when it was asked last; speakers of a model stay.")
    started = start(DELETE, model, actor, name)
    if started.created:
        changes = {"voice": [name, ""]}
        record(actor, "voice.drop", subject=model.row, host_slug=model.row.host.slug, changes=changes)
    return started


def ask_voices(*, model: SpeechModel, actor: Actor) -> Started:
    """Have a server list its voices."""
    require(actor.user, Level.OPERATE, model.row)
    return start(LIST, model, actor)


def start_audition(*, model: SpeechModel, body: Mapping[str, Any], actor: Actor) -> Started:
    """Have a running server speak a short text. One at a time for each model. Raises Refused."""
    require(actor.user, Level.OPERATE, model.row)
    if len(str(body.get("input", ""))) > MAX_TEXT_CHARACTERS:
        raise _refusal("input", f"A text may have {MAX_TEXT_CHARACTERS:,} characters at most.")
    if problem := request_problem(body, model.type, model.listed):
        raise Refused(problem)
    row = model.row
    with transaction.atomic():
        started = start(AUDITION, model, actor, body=dict(body))
        if started.created:
            Audition.objects.create(row=row, job=started.job, request=dict(body), by=actor.user)
            prune_auditions(row)
            changes = {"voice": ["", str(body.get("voice", ""))]}
            record(actor, "voice.audition", subject=row, host_slug=row.host.slug, changes=changes)
    return started


def save_address(*, model: SpeechModel, url: str, actor: Actor) -> None:
    """Where the server of a model listens, as the host's worker reaches it; blank: through the router."""
    require(actor.user, Level.MANAGE)
    try:
        url = checked_url(url)
    except ValueError as problem:
        raise _refusal("url", str(problem)) from problem
    before = model.server.url
    if url == before:
        return
    with transaction.atomic():
        note_server(model.row.pk, url=url, listed=[], seen_at=None, problem="", served="")
        changes = {"speech server": [before, url]}
        record(actor, "speech-server.address", subject=model.row, host_slug=model.row.host.slug, changes=changes)


def _refusal(field: str, message: str) -> Refused:
    return Refused(message, fields={field: message})
