"""Keys that people make for themselves, under Account: within what they may use, where an administrator lets them."""

from __future__ import annotations

import secrets

from django.contrib import messages
from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from models_app.key_form import OwnKeyForm
from models_app.pages.keys_page import key_views
from models_app.selectors.api_keys import key_lines
from models_app.selectors.own_keys import get_own_key, hosts_for_own_keys, own_keys
from models_app.services.api_keys import create_own_key, revoke_key, rotate_key
from models_app.views.keys import key_made, overlap_days
from quartermaster_site.access.audit import actor_of
from quartermaster_site.access.permissions import Level, needs
from quartermaster_site.errors import Refused
from quartermaster_site.http import Request, go_to, page

LIST = "models:own-keys"


@require_safe
@needs(Level.OPERATE)
def own_key_list(request: Request) -> HttpResponse:
    context = {"keys": key_views(key_lines(own_keys(request.user))), "hosts": hosts_for_own_keys(request.user)}
    return page(request, "keys/own_list.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@needs(Level.OPERATE)
def own_key_add(request: Request) -> HttpResponse:
    """The form, and after it the page that shows the secret."""
    form = OwnKeyForm(request.POST if request.method == "POST" else None, user=request.user)
    token = request.POST.get("once", "")[:64] or secrets.token_urlsafe(16)
    if form.is_bound and form.is_valid():
        try:
            key, secret = create_own_key(values=form.values(), form_token=token, actor=actor_of(request))
            return key_made(request, key, secret, LIST)
        except Refused as error:
            form.take_refusal(error)
    context = {"form": form, "once": token, "hosts": form.fields["hosts"].queryset}  # type: ignore[attr-defined]
    return page(request, "keys/own_add.html", context, status=422 if form.is_bound else 200)


@require_POST
@needs(Level.OPERATE)
def own_key_rotate(request: Request, pk: int) -> HttpResponse:
    """A new secret, shown once."""
    key = get_own_key(pk, request.user)
    fresh, secret = rotate_key(key=key, overlap_days=overlap_days(request), actor=actor_of(request))
    return key_made(request, fresh, secret, LIST)


@require_http_methods(["GET", "HEAD", "POST"])
@needs(Level.OPERATE)
def own_key_revoke(request: Request, pk: int) -> HttpResponse:
    """GET asks, POST takes it out of every file."""
    key = get_own_key(pk, request.user)
    if request.method == "POST":
        revoke_key(key=key, actor=actor_of(request))
        messages.success(request, f"{key.name} is revoked. The list says when it has left every host.")
        return go_to(request, reverse(LIST))
    return page(request, "keys/own_revoke.html", {"key": key})
