"""What people set about checks against llama.cpp, and which programs the host has for them."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from gpus_app.selectors import host_for
from models_app.check_form import KEYS, CheckForm
from models_app.check_settings import PROGRAM_KEY, CheckSettings, check_settings_of
from models_app.pages.memory_page import SettingRow
from models_app.services.checks import save_check_settings
from models_app.views.hosts import host_context
from quartermaster_site.access.audit import actor_of
from quartermaster_site.access.permissions import Level, may, needs, require
from quartermaster_site.errors import EditConflict, Refused
from quartermaster_site.http import Request, go_to, page


@require_http_methods(["GET", "HEAD", "POST"])
@needs(Level.VIEW)
def host_checks(request: Request, slug: str) -> HttpResponse:
    host = host_for(request.user, slug)
    if request.method == "POST":
        require(request.user, Level.EDIT, host)
    stored = check_settings_of(host)
    form = CheckForm(request.POST or None, stored=stored, may_name_program=may(request.user, Level.MANAGE))
    status = 200
    if request.method == "POST":
        status = _save(request, slug, form)
        if status == 200:
            messages.success(request, "Applied. The models of this host are planned again.")
            return go_to(request, reverse("models:host-checks", args=[slug]))
    context = host_context(request, host) | {
        "form": form,
        "stored": stored,
        "rows": [_row(form, stored, key) for key in KEYS],
        "programs": list(host.check_programs.all()),
    }
    return page(request, "hosts/host_checks.html", context, status=status)


def _save(request: Request, slug: str, form: CheckForm) -> int:
    """Store a valid form; the status of the answer."""
    if not form.is_valid():
        return 422
    try:
        save_check_settings(
            host=host_for(request.user, slug),
            values=form.values(),
            version=form.cleaned_data["version"],
            actor=actor_of(request),
        )
    except Refused as error:
        form.take_refusal(error)
        return 422
    except EditConflict as error:
        form.take_conflict(error)
        return 409
    return 200


def _row(form: CheckForm, stored: CheckSettings, key: str) -> SettingRow:
    is_set = bool(stored.program) if key == PROGRAM_KEY else not stored.keeps_extra_free
    by = f" · {stored.changed_by}" if stored.changed_by else ""
    default = "beside each server" if key == PROGRAM_KEY else "on"
    return SettingRow(field=form[key], set=is_set, origin=f"set here{by}" if is_set else f"default: {default}")
