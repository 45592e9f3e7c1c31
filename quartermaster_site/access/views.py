"""A person's own page: the look, sign-in settings, and where they are signed in."""

from __future__ import annotations

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from quartermaster_site.access.audit import actor_of
from quartermaster_site.access.models import ApiToken
from quartermaster_site.access.permissions import Level, needs
from quartermaster_site.access.preferences_form import PreferencesForm
from quartermaster_site.access.selectors import AuditFilter, audit_entries, open_sessions
from quartermaster_site.access.services import save_email, save_preferences
from quartermaster_site.access.sessions import end_other_sessions, end_session
from quartermaster_site.access.token_form import TokenForm
from quartermaster_site.access.tokens import create_token, revoke_token
from quartermaster_site.errors import NotFound, Refused
from quartermaster_site.figures import counted
from quartermaster_site.http import go_to, page

RECENT = 10
"""Own entries of the audit log that the page shows."""


@require_http_methods(["GET", "HEAD", "POST"])
@needs(Level.VIEW)
def account(request: HttpRequest) -> HttpResponse:
    preferences = PreferencesForm(request.POST if request.method == "POST" else None, user=request.user)
    if request.method == "POST" and preferences.is_valid():
        save_preferences(user=request.user, values=preferences.preferences())
        save_email(user=request.user, email=preferences.cleaned_data["email"], actor=actor_of(request))
        messages.success(request, "Saved.")
        return go_to(request, reverse("access:account"))
    return _account_page(request, TokenForm(), preferences, status=422 if preferences.is_bound else 200)


def _account_page(
    request: HttpRequest, form: TokenForm, preferences: PreferencesForm | None = None, status: int = 200
) -> HttpResponse:
    context = {
        "preferences": preferences or PreferencesForm(user=request.user),
        "entries": audit_entries(AuditFilter()).filter(user=request.user.pk)[:RECENT],
        "sessions": open_sessions(request.user),
        "current_key": request.session.session_key,
        "tokens": ApiToken.objects.filter(user=request.user.pk),
        "now": timezone.now(),
        "form": form,
        "sign_on": settings.SIGN_ON,
    }
    return page(request, "access/account.html", context, status=status)


@require_POST
@needs(Level.VIEW)
def token_create(request: HttpRequest) -> HttpResponse:
    """A token for scripts; its secret is on this answer and nowhere else."""
    form = TokenForm(request.POST)
    if form.is_valid():
        try:
            row, secret = create_token(**form.values(), actor=actor_of(request))
        except Refused as error:
            form.take_refusal(error)
        else:
            return page(request, "access/token_created.html", {"token": row, "secret": secret})
    return _account_page(request, form, status=422)


@require_POST
@needs(Level.VIEW)
def token_revoke(request: HttpRequest, pk: int) -> HttpResponse:
    revoke_token(user=request.user, number=pk, actor=actor_of(request))
    messages.success(request, "The token is revoked; scripts with it are refused from now on.")
    return go_to(request, reverse("access:account"))


@require_POST
@needs(Level.VIEW)
def session_end(request: HttpRequest) -> HttpResponse:
    """End one of one's own sessions, or all but this one."""
    number, key = request.POST.get("session", ""), request.session.session_key or ""
    if number == "others":
        ended = end_other_sessions(user=request.user, current_key=key, actor=actor_of(request))
        messages.success(
            request, f"{counted(ended, 'other session')} ended." if ended else "There was no other session."
        )
    elif number.isdecimal() and len(number) < 18:
        end_session(user=request.user, number=int(number), actor=actor_of(request))
        messages.success(request, "The session is ended.")
    else:
        raise NotFound("There is no such session any more.")
    return go_to(request, reverse("access:account"))
