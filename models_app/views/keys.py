"""API keys of the router's clients: list, make, limit, rotate, revoke; each secret is shown once."""

from __future__ import annotations

import secrets

from django.contrib import messages
from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from gpus_app.selectors import host_for
from models_app.key_form import KeyForm
from models_app.models import ApiKey
from models_app.pages.keys_page import key_view, key_views
from models_app.selectors.api_keys import get_key, key_line, keys_page
from models_app.services.api_keys import change_key, create_key, revoke_key, rotate_key, set_required
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
            return _made(request, key, secret)
        except Refused as error:
            form.take_refusal(error)
    context = {"form": form, "once": token}
    return page(request, "keys/key_add.html", context, status=422 if form.is_bound else 200)


def _made(request: Request, key: ApiKey, secret: str) -> HttpResponse:
    return page(request, "keys/key_made.html", {"key": key, "secret": secret})


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
    days = request.POST.get("days", "")
    if not (days.isascii() and days.isdigit() and len(days) < 3):
        raise Refused("Choose for how many days the old secret stays valid.")
    key, secret = rotate_key(key=get_key(pk), overlap_days=int(days), actor=actor_of(request))
    return _made(request, key, secret)


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
