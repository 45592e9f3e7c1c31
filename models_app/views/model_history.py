"""The History tab of a model: what changed, by whom, and the way back."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from models_app import selectors, services
from models_app.editor_form import posted_version
from models_app.pages.history_page import field_choices, history
from models_app.pages.model_head import model_head, model_notes
from models_app.services.variants import profile_of
from quartermaster_site.access.audit import actor_of
from quartermaster_site.access.permissions import Level, may, needs, require
from quartermaster_site.errors import NotFound
from quartermaster_site.http import Request, go_to, page


@require_safe
@needs(Level.VIEW)
def model_history(request: Request, pk: int) -> HttpResponse:
    """All changes, or with ?field= those of one field."""
    editing = selectors.editing_of(selectors.get_row(pk, request.user), request.user)
    only = request.GET.get("field", "")[:64]
    row = editing.row
    changes = [
        change
        for change in selectors.changes(row)[: selectors.MOST_CHANGES]
        if not change.variant or may(request.user, Level.VIEW, profile_of(row, change.variant))
    ]
    versions = {"": editing.pinned.version, **selectors.variant_versions(editing.pinned)}
    context = {
        "head": model_head(editing.detail, "models:model-history"),
        "notes": model_notes(editing.detail),
        "entries": history(
            changes,
            versions,
            only,
            address=lambda change: reverse("models:change-restore", args=[pk, change]),
            shown=editing.detail.sight.text,
        ),
        "fields": field_choices(changes),
        "only": only,
        "may_edit": may(request.user, Level.EDIT, editing.row),
        "most": selectors.MOST_CHANGES,
    }
    return page(request, "models/model_history.html", context)


@require_POST
@needs(Level.VIEW)
def change_restore(request: Request, pk: int, change: int) -> HttpResponse:
    """Brings the state after one change back, as a change of its own."""
    row = selectors.get_row(pk, request.user)
    held = selectors.get_change(row, change)
    subject = profile_of(row, held.variant) if held.variant else row
    if not may(request.user, Level.VIEW, subject):
        raise NotFound(selectors.NO_CHANGE)
    require(request.user, Level.EDIT, subject)
    version, actor = posted_version(request.POST), actor_of(request)
    if held.variant:
        services.restore_variant(row=row, change=held, version=version, actor=actor)
    else:
        services.restore_override(row=row, change=held, version=version, actor=actor)
    messages.success(request, "Restored. The models of this host are planned again.")
    return go_to(request, reverse("models:model-history", args=[pk]))
