"""How often the folders of a host are looked at."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_POST

from gpus_app.selectors import host_for, watch_settings_of
from gpus_app.services import save_watch_settings
from gpus_app.watch_settings import KEY
from models_app.root_form import RootForm
from models_app.views.host_settings import folders_page
from models_app.watch_form import WatchForm
from quartermaster_site.access.audit import actor_of
from quartermaster_site.access.permissions import Level, needs
from quartermaster_site.errors import EditConflict, Refused
from quartermaster_site.http import Request, go_to


@require_POST
@needs(Level.MANAGE)
def host_watching(request: Request, slug: str) -> HttpResponse:
    host = host_for(request.user, slug)
    form = WatchForm(request.POST, watch=watch_settings_of(host))
    status = 422
    if form.is_valid():
        seconds, version = form.cleaned_data[KEY], form.cleaned_data["version"]
        try:
            save_watch_settings(host=host, seconds=seconds, version=version, actor=actor_of(request))
        except Refused as error:
            form.take_refusal(error)
        except EditConflict as error:
            form.take_conflict(error)
            status = 409
        else:
            messages.success(request, "Applied." if seconds != 0 else "Applied. New files wait for the next scan.")
            return go_to(request, reverse("models:host-folders", args=[slug]))
    return folders_page(request, host, RootForm(), watch_form=form, status=status)
