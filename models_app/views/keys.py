"""API keys of the router's clients: list, make, limit, rotate, revoke; each secret is shown once."""

from __future__ import annotations

import secrets

from django.contrib import messages
from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from gpus_app.models import Host
from gpus_app.selectors import host_for
from models_app.core.export.keys import variable_of
from models_app.key_form import KeyForm
from models_app.models import ApiKey
from models_app.pages.keys_page import key_view, key_views
from models_app.selectors.api_keys import get_key, key_line, keys_page
from models_app.selectors.key_environment import environment_of, environments
from models_app.services.api_keys import (
    change_key,
    create_key,
    revoke_key,
    rotate_key,
)
from models_app.services.key_environment import (
    FILE_NAME,
    environment_file,
    hold_secrets,
    name_variables,
    note_variables_set,
)
from models_app.services.key_hosts import set_required, set_self_service
from quartermaster_site.access.audit import actor_of
from quartermaster_site.access.permissions import Level, needs
from quartermaster_site.errors import EditConflict, Refused
from quartermaster_site.http import Request, go_to, page


@require_safe
@needs(Level.MANAGE)
def key_list(request: Request) -> HttpResponse:
    return _list(request)


def _list(request: Request, *, problem: str = "", status: int = 200) -> HttpResponse:
    found = keys_page()
    context = {"keys": key_views(found.keys), "hosts": found.hosts, "problem": problem}
    return page(request, "keys/key_list.html", context, status=status)


@require_http_methods(["GET", "HEAD", "POST"])
@needs(Level.MANAGE)
def key_add(request: Request) -> HttpResponse:
    """The form, and after it the page that shows the secret: it has no address of its own and is not kept."""
    form = KeyForm(request.POST if request.method == "POST" else None)
    token = request.POST.get("once", "")[:64] or secrets.token_urlsafe(16)
    if form.is_bound and form.is_valid():
        try:
            key, secret = create_key(values=form.values(), form_token=token, actor=actor_of(request))
            return key_made(request, key, secret)
        except Refused as error:
            form.take_refusal(error)
    context = {"form": form, "once": token}
    return page(request, "keys/key_add.html", context, status=422 if form.is_bound else 200)


def key_made(request: Request, key: ApiKey, secret: str, back: str = "models:key-list") -> HttpResponse:
    """The one page that shows a secret."""
    naming = [found.host for found in environments(list(key.hosts.all())) if found.is_on]
    context = {"key": key, "secret": secret, "naming": naming, "variable": variable_of(key.pk), "back": reverse(back)}
    return page(request, "keys/key_made.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@needs(Level.MANAGE)
def key_edit(request: Request, pk: int) -> HttpResponse:
    key = get_key(pk)
    form = KeyForm(request.POST if request.method == "POST" else None, key=key)
    status = 422 if form.is_bound else 200
    if form.is_bound and form.is_valid():
        version = form.cleaned_data["version"] or 0
        try:
            change_key(key=key, values=form.values(), version=version, actor=actor_of(request))
            messages.success(request, f"{key.name} is saved; its secret stays.")
            return go_to(request, reverse("models:key-list"))
        except Refused as error:
            form.take_refusal(error)
        except EditConflict as error:
            form.take_conflict(error)
            status = 409
    context = {"key": key, "view": key_view(key_line(key)), "form": form}
    return page(request, "keys/key_edit.html", context, status=status)


@require_POST
@needs(Level.MANAGE)
def key_rotate(request: Request, pk: int) -> HttpResponse:
    """A new secret, shown once."""
    key, secret = rotate_key(key=get_key(pk), overlap_days=overlap_days(request), actor=actor_of(request))
    return key_made(request, key, secret)


def overlap_days(request: Request) -> int:
    """For how many days an old secret stays valid, as the form says. Raises Refused."""
    days = request.POST.get("days", "")
    if not (days.isascii() and days.isdigit() and len(days) < 3):
        raise Refused("Choose for how many days the old secret stays valid.")
    return int(days)


@require_http_methods(["GET", "HEAD", "POST"])
@needs(Level.MANAGE)
def key_revoke(request: Request, pk: int) -> HttpResponse:
    """GET asks, POST takes it out of every file."""
    key = get_key(pk)
    if request.method == "POST":
        revoke_key(key=key, actor=actor_of(request))
        messages.success(request, f"{key.name} is revoked. The list says when it has left every host.")
        return go_to(request, reverse("models:key-list"))
    return page(request, "keys/key_revoke.html", {"key": key, "hosts": list(key.hosts.all())})


@require_POST
@needs(Level.MANAGE)
def key_required(request: Request, slug: str) -> HttpResponse:
    """Whether the router of a host asks for a key."""
    host = host_for(request.user, slug)
    try:
        set_required(
            host=host,
            required=request.POST.get("required") == "1",
            typed_slug=request.POST.get("slug", ""),
            actor=actor_of(request),
        )
    except Refused as error:
        return _list(request, problem=str(error), status=422)
    return go_to(request, reverse("models:key-list"))


@require_POST
@needs(Level.MANAGE)
def key_self_service(request: Request, slug: str) -> HttpResponse:
    """Whether people make keys of their own for a host."""
    host = host_for(request.user, slug)
    try:
        set_self_service(host=host, allowed=request.POST.get("allowed") == "1", actor=actor_of(request))
    except Refused as error:
        return _list(request, problem=str(error), status=422)
    return go_to(request, reverse("models:key-list"))


@require_http_methods(["GET", "HEAD", "POST"])
@needs(Level.MANAGE)
def key_environment(request: Request, slug: str) -> HttpResponse:
    """Whether a host's file holds secrets or names variables, and which are set."""
    host, problem = host_for(request.user, slug), ""
    if request.method == "POST":
        try:
            messages.success(request, _set_environment(request, host))
            return go_to(request, reverse("models:key-environment", args=[host.slug]))
        except Refused as error:
            problem = str(error)
    context = {"found": environment_of(host), "problem": problem}
    return page(request, "keys/key_environment.html", context, status=422 if problem else 200)


def _set_environment(request: Request, host: Host) -> str:
    """What a form of that page asks for; a sentence about what came of it. Raises Refused."""
    numbers = [int(number) for number in request.POST.getlist("key") if number.isascii() and number.isdigit()]
    intent, actor = request.POST.get("intent", ""), actor_of(request)
    if intent == "inline":
        hold_secrets(host=host, actor=actor)
        return f"The file of {host.name} holds the secrets again with the next write of keys, which follows at once."
    if request.POST.get("sure") != "on":
        raise Refused("Tick that the variables are set: a router refuses a whole file that names one which is not.")
    if intent == "names":
        name_variables(host=host, numbers=numbers, actor=actor)
    elif intent == "set":
        note_variables_set(host=host, numbers=numbers, actor=actor)
    else:
        raise Refused("Choose what the file holds.")
    return f"The file of {host.name} names these variables with the next write of keys, which follows at once."


@require_POST
@needs(Level.MANAGE)
def key_environment_file(request: Request, slug: str) -> HttpResponse:
    """The variables that are still to be set, with their secrets: on record."""
    text = environment_file(host=host_for(request.user, slug), actor=actor_of(request))
    response = HttpResponse(text, content_type="text/plain; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{FILE_NAME}"'
    return response
