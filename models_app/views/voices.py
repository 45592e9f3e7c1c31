"""The Voices pages of a host: what its speech servers speak with, keeping voices, and trying them."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from gpus_app.models import Host
from gpus_app.selectors import host_for
from models_app.core.classes.qwentts import CUSTOM_VOICE, SPEAKERS
from models_app.pages.shell import remember_host, shell_of
from models_app.pages.voices_page import audition_views, sent_text, server_views, voice_views
from models_app.selectors import voices as selectors
from models_app.services import voice_jobs
from models_app.services import voices as services
from models_app.voice_form import AddressForm, AuditionForm, VoiceForm
from quartermaster_site.access.audit import actor_of
from quartermaster_site.access.permissions import Level, may, needs, require
from quartermaster_site.errors import NotFound, Refused
from quartermaster_site.http import Request, go_to, page, part_of
from quartermaster_site.jobs.models import Job
from quartermaster_site.jobs.sight import job_sight

AT_WORK = tuple(kind for kind in voice_jobs.ACTIONS if kind != voice_jobs.AUDITION)


@require_safe
@needs(Level.VIEW)
def voices_home(request: Request) -> HttpResponse:
    """To the voices of the host looked at last; to the hosts where there is none yet."""
    host = shell_of(request).host
    return go_to(request, reverse("models:voice-list", args=[host.slug]) if host else reverse("models:host-list"))


@require_safe
@needs(Level.VIEW)
def voice_list(request: Request, slug: str) -> HttpResponse:
    """Servers with what they list, and the voices kept for them."""
    host = next((host for host in shell_of(request).hosts if host.slug == slug), None) or host_for(request.user, slug)
    remember_host(request, host)
    models, voices = selectors.seen_speech_models(host, request.user), list(selectors.voices_of(host))
    jobs = selectors.jobs_at(host, AT_WORK, request.user)
    context = {
        "host": host,
        "servers": server_views(models, voices),
        "voices": voice_views(models, voices),
        "at_work": [job for job in jobs if not job.is_finished],
        "failed": [job for job in jobs if job.error and job.kind != voice_jobs.LIST],
        "may_operate": may(request.user, Level.OPERATE, host),
        "may_edit": may(request.user, Level.EDIT, host),
        "may_manage": may(request.user, Level.MANAGE),
    }
    return page(request, "voices/voice_list.html", context, fragments=["voices-state"])


@require_http_methods(["GET", "HEAD", "POST"])
@needs(Level.VIEW)
def voice_new(request: Request, slug: str) -> HttpResponse:
    """The form of a new voice; a POST keeps it and sends it to the servers that run."""
    host = host_for(request.user, slug, Level.EDIT)
    remember_host(request, host)
    form = VoiceForm(request.POST or None, request.FILES or None)
    if request.method == "POST" and form.is_valid():
        try:
            voice, jobs = services.keep_voice(host=host, new=form.values(), actor=actor_of(request))
        except Refused as error:
            form.take_refusal(error)
        else:
            waiting = sum(model.takes(voice) for model in selectors.seen_speech_models(host, request.user))
            sent = job_sight(request.user).seen(Job.objects.filter(pk__in=[started.job.pk for started in jobs])).count()
            messages.success(request, sent_text(sent, waiting))
            return _home(request, host)
    context = {"host": host, "form": form}
    return page(request, "voices/voice_new.html", context, status=422 if request.method == "POST" else 200)


@require_http_methods(["GET", "HEAD", "POST"])
@needs(Level.VIEW)
def voice_delete(request: Request, slug: str, pk: int) -> HttpResponse:
    """Asks first."""
    host = host_for(request.user, slug, Level.EDIT)
    voice = selectors.get_voice(host, pk)
    if request.method == "POST":
        services.delete_voice(voice=voice, actor=actor_of(request))
        messages.success(request, f"{voice.name} is deleted.")
        return _home(request, host)
    return page(request, "voices/voice_delete.html", {"host": host, "voice": voice})


@require_POST
@needs(Level.VIEW)
def voice_send(request: Request, slug: str, pk: int) -> HttpResponse:
    """Register a kept voice with the server that the form names."""
    host = host_for(request.user, slug)
    voice = selectors.get_voice(host, pk)
    number = _number(request.POST.get("model", ""))
    model = selectors.speech_model_for(request.user, host, number, Level.OPERATE)
    services.send_voice(voice=voice, model=model, actor=actor_of(request))
    return _home(request, host)


@require_POST
@needs(Level.VIEW)
def server_ask(request: Request, slug: str, model: int) -> HttpResponse:
    """Have a server list its voices."""
    host = host_for(request.user, slug)
    found = selectors.speech_model_for(request.user, host, model, Level.OPERATE)
    services.ask_voices(model=found, actor=actor_of(request))
    return _home(request, host)


@require_POST
@needs(Level.VIEW)
def server_drop(request: Request, slug: str, model: int) -> HttpResponse:
    """Have a server drop a voice that is not kept here."""
    host, name = host_for(request.user, slug), request.POST.get("name", "")
    found = selectors.speech_model_for(request.user, host, model, Level.EDIT)
    services.drop_voice(model=found, name=name, actor=actor_of(request))
    return _home(request, host)


@require_http_methods(["GET", "HEAD", "POST"])
@needs(Level.MANAGE)
def server_address(request: Request, slug: str, model: int) -> HttpResponse:
    """Where the server of a model listens that the router does not run."""
    host = host_for(request.user, slug)
    found = selectors.speech_model_for(request.user, host, model)
    form = AddressForm(request.POST if request.method == "POST" else None, url=found.server.url)
    if request.method == "POST" and form.is_valid():
        try:
            services.save_address(model=found, url=form.cleaned_data["url"], actor=actor_of(request))
        except Refused as error:
            form.take_refusal(error)
        else:
            messages.success(request, "Applied.")
            return _home(request, host)
    context = {"host": host, "row": found.row, "form": form}
    return page(request, "voices/server_address.html", context, status=422 if form.errors else 200)


@require_http_methods(["GET", "HEAD", "POST"])
@needs(Level.VIEW)
def audition(request: Request, slug: str, model: int) -> HttpResponse:
    """What was tried with a model; a POST has it speak."""
    host = host_for(request.user, slug)
    remember_host(request, host)
    found = selectors.speech_model_for(request.user, host, model)
    form = AuditionForm(
        request.POST if request.method == "POST" else None,
        model_type=found.type,
        voices=sorted(found.listed) or (SPEAKERS if found.type == CUSTOM_VOICE else ()),
        chosen=request.GET.get("voice", ""),
    )
    if request.method == "POST":
        require(request.user, Level.OPERATE, found.row)
        if form.is_valid():
            try:
                started = services.start_audition(model=found, body=form.body(), actor=actor_of(request))
            except Refused as error:
                form.take_refusal(error)
            else:
                if not started.created:
                    messages.info(request, "This model speaks already: wait for it, then try again.")
                return go_to(request, reverse("models:voice-audition", args=[slug, model]))
    tried = audition_views(list(selectors.auditions_of(found.row)[: voice_jobs.MAX_AUDITIONS]))
    context = {
        "host": host,
        "row": found.row,
        "problem": found.problem,
        "form": form,
        "tried": tried,
        "at_work": any(item.running for item in tried),
        "may_operate": may(request.user, Level.OPERATE, found.row),
    }
    return page(request, "voices/audition.html", context, fragments=["auditions"], status=422 if form.errors else 200)


@require_safe
@needs(Level.VIEW)
def audition_audio(request: Request, slug: str, pk: int) -> HttpResponse:
    """The sound, whole or in the part that a player asks for."""
    found = selectors.get_audition(host_for(request.user, slug), pk, request.user)
    if not found.audio:
        raise NotFound("There is no sound of this audition.")
    response = part_of(request, bytes(found.audio), "audio/wav")
    kind = "attachment" if request.GET.get("download") else "inline"
    response["Content-Disposition"] = f'{kind}; filename="audition-{found.pk}.wav"'
    return response


def _home(request: Request, host: Host) -> HttpResponse:
    return go_to(request, reverse("models:voice-list", args=[host.slug]))


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else 0
