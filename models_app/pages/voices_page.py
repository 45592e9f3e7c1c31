"""Voices of a host as their pages show them: which server has which, and what stands in the way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from models_app.models import Audition, Voice
from models_app.selectors.voices import SpeechModel
from quartermaster_site.figures import counted, size
from quartermaster_site.jobs.models import Job
from quartermaster_site.jobs.pages import LOOKS

TYPES = {
    "base": "base model: speaks with voices of your own",
    "custom_voice": "speaks with its own speakers",
    "voice_design": "makes a voice from a description",
}
KINDS = {"speaker": "speaker of the model", "registered": "registered"}


@dataclass(frozen=True, slots=True)
class ListedVoice:
    name: str
    kind: str
    kept: bool
    """It is one of the host's own, which come back when the model is loaded again."""
    registered: bool


@dataclass(frozen=True, slots=True)
class ServerView:
    """One speech model. `problem` says why it cannot be asked; `said` what it answered instead of a list."""

    pk: int
    id: str
    type: str
    tone: str
    word: str
    shape: str
    problem: str
    said: str
    url: str
    seen_at: datetime | None
    current: bool
    takes_voices: bool
    voices: tuple[ListedVoice, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """A kept voice at one model that takes it. `send`: it can be registered there now."""

    pk: int
    id: str
    tone: str
    word: str
    shape: str
    send: bool


@dataclass(frozen=True, slots=True)
class VoiceView:
    pk: int
    name: str
    made_from: str
    has_text: bool
    by: str
    at: datetime
    places: tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class AuditionView:
    """`ready`: there is sound. `running`: it is still awaited."""

    pk: int
    text: str
    how: str
    tone: str
    word: str
    shape: str
    ready: bool
    running: bool
    length: str
    took: str
    error: str
    job: int | None
    by: str
    at: datetime


def server_views(models: Sequence[SpeechModel], voices: Sequence[Voice]) -> list[ServerView]:
    names = {voice.name for voice in voices}
    return [_server(model, names) for model in models]


def _server(model: SpeechModel, kept: set[str]) -> ServerView:
    tone, word, shape = _state(model)
    return ServerView(
        pk=model.row.pk,
        id=model.row.served_id,
        type=TYPES.get(model.type, "its file does not say its type, or was not read yet: then scan its folder again"),
        tone=tone,
        word=word,
        shape=shape,
        problem=model.problem,
        said="" if model.problem else model.server.problem,
        url=model.server.url,
        seen_at=model.server.seen_at,
        current=model.is_current,
        takes_voices=model.type in ("", "base"),
        voices=tuple(
            ListedVoice(name, KINDS[kind], name in kept and kind == "registered", kind == "registered")
            for name, kind in sorted(model.listed.items(), key=lambda item: (item[1] != "registered", item[0]))
        ),
    )


def _state(model: SpeechModel) -> tuple[str, str, str]:
    if model.problem:
        return "", "not running" if model.router and model.router.url and not model.server.url else "unknown", "idle"
    if model.server.problem:
        return "bad", "does not answer", "bad"
    if model.is_current:
        return "ok", "answers", "ok"
    return "act", "not asked yet", "wait"


def voice_views(models: Sequence[SpeechModel], voices: Sequence[Voice]) -> list[VoiceView]:
    return [
        VoiceView(
            pk=voice.pk,
            name=voice.name,
            made_from=f"{voice.get_form_display()}, {voice.seconds:.1f} s, {size(voice.size_bytes)}",
            has_text=bool(voice.ref_text),
            by=voice.by.get_username() if voice.by else "",
            at=voice.at,
            places=tuple(_place(model, voice) for model in models if model.takes(voice)),
        )
        for voice in voices
    ]


def _place(model: SpeechModel, voice: Voice) -> Place:
    live = model.is_current and model.listed.get(voice.name) == "registered"
    if live:
        tone, word, shape = "ok", "live", "ok"
    elif model.problem:
        tone, word, shape = "", "waits for the model", "wait"
    else:
        tone, word, shape = "warn", "not there", "warn"
    return Place(model.row.pk, model.row.served_id, tone, word, shape, not live and not model.problem)


def audition_views(auditions: Sequence[Audition]) -> list[AuditionView]:
    return [_audition(item) for item in auditions]


def _audition(item: Audition) -> AuditionView:
    job: Job | None = item.job
    ready = item.seconds > 0
    tone, word, shape = LOOKS[job.state] if job else ("ok", "done", "ok") if ready else ("", "lost", "off")
    return AuditionView(
        pk=item.pk,
        text=str(item.request.get("input", "")),
        how=_how(item.request),
        tone=tone,
        word=word,
        shape=shape,
        ready=ready,
        running=job is not None and not job.is_finished,
        length=f"{item.seconds:.1f} s" if ready else "",
        took=f"{item.took_seconds:.1f} s" if item.took_seconds else "",
        error=job.error if job else "",
        job=job.pk if job else None,
        by=item.by.get_username() if item.by else "",
        at=item.at,
    )


def _how(request: dict[str, Any]) -> str:
    """Everything but the text, in short."""
    shown = {key: value for key, value in request.items() if key not in ("input", "response_format")}
    return (
        ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in shown.items()) or "as the model does by itself"
    )


def sent_text(count: int, waiting: int) -> str:
    """What happened to a voice that was kept."""
    if count:
        return f"Kept, and being registered with {counted(count, 'running server')}."
    if waiting:
        return "Kept. It is registered as soon as a model that takes it is loaded."
    return "Kept. No model of this host takes it so far."
