"""The first-run wizard: one-time token, checks, administrator, host, folders, memory, first scan, done.

Until an administrator exists the token's proof, kept in the session, opens it; after that the administrator does.
Once finished every address here is gone for good.
"""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlencode

from django.contrib.auth import login
from django.contrib.auth.decorators import login_not_required
from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from gpus_app.selectors import hosts
from models_app.administrator_form import AdministratorForm
from models_app.pages.setup_page import Step, frame, next_url, run_checks, step_named
from models_app.views.setup_host import done_step, folders_step, memory_step, scan_step
from models_app.views.setup_machine import host_step
from models_app.views.setup_router import backends_step, router_step
from quartermaster_site.access import services
from quartermaster_site.access.audit import actor_of
from quartermaster_site.access.permissions import Level, require
from quartermaster_site.access.selectors import administrator_exists, setup_finished_at
from quartermaster_site.errors import NotAllowed, NotFound, Refused
from quartermaster_site.http import Request, go_to, page

PROOF = "setup-proof"
BACKEND = "quartermaster_site.access.backends.WithAccount"
View = Callable[[Request, Step], HttpResponse]


@require_http_methods(["GET", "HEAD", "POST"])
@login_not_required
def setup(request: Request) -> HttpResponse:
    """Takes the one-time token, from the printed link or typed, and goes to the first step."""
    _require_unfinished()
    if administrator_exists() or request.user.is_authenticated:
        return go_to(request, reverse("models:setup-step", args=["folders"]))
    token = request.POST.get("token") or request.GET.get("token") or ""
    if not token.strip():
        if _is_claimed(request):
            return go_to(request, reverse("models:setup-step", args=["checks"]))
        return page(request, "setup/token.html")
    try:
        request.session[PROOF] = services.claim_setup(token=token.strip())
    except NotAllowed as error:
        return page(request, "setup/token.html", {"problem": str(error)}, status=403)
    return go_to(request, reverse("models:setup-step", args=["checks"]))


@require_http_methods(["GET", "HEAD", "POST"])
@login_not_required
def setup_step(request: Request, name: str) -> HttpResponse:
    _require_unfinished()
    step = step_named(name)
    if step is None:
        raise NotFound("The set-up has no such step.")
    if administrator_exists():
        if not request.user.is_authenticated:
            return go_to(request, f"{reverse('account_login')}?{urlencode({'next': step.url})}")
        require(request.user, Level.MANAGE)
    elif name in _LATE or not _is_claimed(request):
        return go_to(request, reverse("models:setup"))
    return (_EARLY | _LATE)[name](request, step)


def _is_claimed(request: Request) -> bool:
    return services.holds_setup(proof=request.session.get(PROOF, ""))


def _require_unfinished() -> None:
    if setup_finished_at() is not None:
        raise NotFound("This installation has been set up already.")


def _checks(request: Request, step: Step) -> HttpResponse:
    found = run_checks(hosts().first())
    blocked = any(check.blocks for check in found)
    if request.method == "POST" and not blocked:
        return go_to(request, next_url(step))
    context = frame(step, has_administrator=administrator_exists()) | {"checks": found, "blocked": blocked}
    return page(request, "setup/checks.html", context, status=422 if request.method == "POST" else 200)


def _administrator(request: Request, step: Step) -> HttpResponse:
    if administrator_exists():
        return go_to(request, next_url(step))
    form = AdministratorForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            user = services.create_administrator(
                proof=request.session[PROOF],
                username=form.cleaned_data["username"],
                email=form.cleaned_data["email"],
                password=form.cleaned_data["password"],
                actor=actor_of(request),
            )
        except Refused as error:
            form.take_refusal(error)
        else:
            login(request, user, backend=BACKEND)
            return go_to(request, next_url(step))
    context = frame(step, has_administrator=False) | {"form": form}
    return page(request, "setup/administrator.html", context, status=422 if request.method == "POST" else 200)


_EARLY: dict[str, View] = {"checks": _checks, "administrator": _administrator}
_LATE: dict[str, View] = {
    "host": host_step,
    "folders": folders_step,
    "backends": backends_step,
    "memory": memory_step,
    "scan": scan_step,
    "router": router_step,
    "done": done_step,
}
