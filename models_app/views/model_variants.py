"""The Variants tab: profiles of a model, and the editor of one variant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from models_app import convert, selectors, services
from models_app.core.launch.findings import TextFinding
from models_app.editor_form import EditorForm, posted_texts, posted_version, stored_texts
from models_app.models import Row, Variant
from models_app.pages.editor_conflict import EditorConflict
from models_app.pages.editor_page import Facts, control_groups
from models_app.pages.model_head import model_head, model_notes
from models_app.pages.plan_panel import PlanPanel
from models_app.pages.variants_page import profile_lines
from models_app.selectors import Editing
from models_app.selectors.sight import sees_profile
from models_app.services.fleet_variants import fleet_fields, fleet_section
from models_app.services.remarks import note_confirmed, remarks_on, unconfirmed
from models_app.services.variants import NO_VARIANT, profile_of
from models_app.views.model_edit import (
    SAVED,
    UNCHANGED,
    check_rate,
    conflict_of,
    panel_of,
    with_own_files,
    with_sequence,
)
from quartermaster_site.access.audit import actor_of
from quartermaster_site.access.permissions import Level, may, may_write_arguments, needs, require
from quartermaster_site.access.refusals import tell
from quartermaster_site.errors import EditConflict, NotFound, Refused
from quartermaster_site.http import Request, go_to, page, wants_fragment


@require_http_methods(["GET", "HEAD", "POST"])
@needs(Level.VIEW)
def variant_list(request: Request, pk: int) -> HttpResponse:
    """All profiles of a model; a POST adds a variant, empty or with the fields of another, or hides a shared one."""
    editing = _editing(request, pk)
    if request.method != "POST":
        return _list_page(request, editing)
    require(request.user, Level.EDIT, editing.row)
    if hidden := request.POST.get("hide", ""):
        return _hide_shared(request, editing, hidden)
    name = request.POST.get("name", "").strip()
    like = request.POST.get("like", "")
    try:
        source = _variant(request, editing.row, int(like)) if _is_number(like) else None
        added = services.add_variant(
            row=editing.row, name=name, actor=actor_of(request), values=source.fields if source else None
        )
    except Refused as error:
        problem = error.fields.get("name") or next(iter(error.fields.values()))
        return _list_page(request, editing, name=name, problem=problem, status=422)
    messages.success(request, f"The variant {name} is added. Set here what is different about it.")
    return go_to(request, reverse("models:variant-edit", args=[pk, added.pk]))


@require_http_methods(["GET", "HEAD", "POST"])
@needs(Level.VIEW)
def variant_edit(request: Request, pk: int, variant: int) -> HttpResponse:
    """The form of one variant; a POST saves it."""
    editing = _editing(request, pk)
    held = _variant(request, editing.row, variant)
    if request.method != "POST":
        return _page(request, editing, held, _form(request, editing, held))
    require(request.user, Level.EDIT, profile_of(editing.row, held.name))
    form = _form(request, editing, held, request.POST)
    if form.errors:
        return _page(request, editing, held, form, status=422)
    if asked := _unconfirmed(request, editing, form):
        return _page(request, editing, held, form, status=422, asked=asked)
    try:
        saved = services.save_variant(
            row=editing.row, variant=held, values=form.values, version=form.version, actor=actor_of(request)
        )
    except Refused as error:
        tell(request, error)
        return _page(request, editing, held, form.with_refusal(error.fields), status=422)
    except EditConflict as error:
        conflict = conflict_of(editing, form, error, held.name)
        if conflict.lines:
            return _page(request, editing, held, form.with_version(error.version), status=409, conflict=conflict)
        saved = held
    if confirmed := request.POST.get("confirm", ""):
        label = _profile_id(editing.row, held)
        note_confirmed(host=editing.row.host, subject=held, label=label, confirmed=confirmed, actor=actor_of(request))
    messages.success(request, SAVED if saved.version > held.version else UNCHANGED)
    return go_to(request, reverse("models:variant-edit", args=[pk, variant]))


@require_POST
@needs(Level.VIEW)
def variant_preview(request: Request, pk: int, variant: int) -> HttpResponse:
    """What the form would give; nothing is stored."""
    check_rate(request)
    editing = _editing(request, pk)
    held = _variant(request, editing.row, variant)
    form = _form(request, editing, held, request.POST)
    if not wants_fragment(request):
        return _page(request, editing, held, form, status=422 if form.errors else 200)
    context: dict[str, Any] = {"groups": control_groups(form, _facts(editing, held)), "form": form}
    if form.errors:
        response = page(request, "models/model_edit.html#refused", context, status=422)
        response["HX-Reswap"] = "none"
    else:
        context["panel"] = _panel(editing, held, form)
        response = page(request, "models/model_edit.html#preview", context)
    return with_sequence(request, response)


@require_POST
@needs(Level.VIEW)
def variant_rename(request: Request, pk: int, variant: int) -> HttpResponse:
    """Another name, and with it another id for clients."""
    editing = _editing(request, pk)
    held = _variant(request, editing.row, variant, Level.EDIT)
    name = request.POST.get("name", "").strip()
    try:
        services.rename_variant(row=editing.row, variant=held, name=name, actor=actor_of(request))
    except Refused as error:
        form = _form(request, editing, held)
        return _page(request, editing, held, form, status=422, naming=error.fields.get("name", str(error)))
    messages.success(request, f"The variant is called {name}. Clients use its new id after the next write.")
    return go_to(request, reverse("models:variant-edit", args=[pk, variant]))


@require_http_methods(["GET", "HEAD", "POST"])
@needs(Level.VIEW)
def variant_delete(request: Request, pk: int, variant: int) -> HttpResponse:
    """Asks first: GET is the question, POST the answer."""
    row = selectors.get_row(pk, request.user)
    held = _variant(request, row, variant, Level.EDIT)
    if request.method == "POST":
        version = posted_version(request.POST)
        services.delete_variant(row=row, variant=held, version=version, actor=actor_of(request))
        messages.success(request, f"The variant {held.name} is deleted. The history can bring it back.")
        return go_to(request, reverse("models:variant-list", args=[pk]))
    return page(request, "models/variant_delete.html", {"row": row, "variant": held, "id": _profile_id(row, held)})


def _editing(request: Request, pk: int) -> Editing:
    return selectors.editing_of(selectors.get_row(pk, request.user), request.user)


def _variant(request: Request, row: Row, pk: int, level: Level = Level.VIEW) -> Variant:
    """A variant on which the person has `level`; NotFound where it is hidden from them, else NotAllowed."""
    held = services.get_variant(row, pk)
    profile = profile_of(row, held.name)
    if not may(request.user, Level.VIEW, profile):
        raise NotFound(NO_VARIANT)
    require(request.user, level, profile)
    return held


def _hide_shared(request: Request, editing: Editing, name: str) -> HttpResponse:
    """The model gets a variant of its own in the place of a shared one: the same, but not listed to clients."""
    row = editing.row
    fields = fleet_fields(fleet_section(row.host), name)
    actor = actor_of(request)
    added = services.add_variant(row=row, name=name, actor=actor, values={**fields, "unlisted": True})
    messages.success(
        request, f"{_profile_id(row, added)} is served as before, but not listed. It is this model's own now."
    )
    return go_to(request, reverse("models:variant-list", args=[row.pk]))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 9


def _profile_id(row: Row, held: Variant) -> str:
    return profile_of(row, held.name).profile_id


def _form(request: Request, editing: Editing, held: Variant, posted: Mapping[str, str] | None = None) -> EditorForm:
    """The stored form, or what was posted. The launch text is part of it for those who may write one."""
    profile = profile_of(editing.row, held.name)
    stored = held.fields
    fields = editing.variant_fields(held.name, arguments=may_write_arguments(request.user, profile))
    fields = editing.readable(fields, stored)
    form = EditorForm(
        fields=fields,
        limits=editing.limits(editing.pinned.override.rope_scaling),
        stored=stored,
        version=held.version if posted is None else posted_version(posted),
        typed=stored_texts(fields, stored) if posted is None else posted_texts(fields, posted, stored, on_variant=True),
        locked=editing.variant_locked(convert.core_variant(held)),
        on_variant=True,
    )
    return with_own_files(request, editing.row.host, stored, form)


def _facts(editing: Editing, held: Variant) -> Facts:
    return Facts(
        settings=editing.facts.settings,
        automatic=editing.variant_values(convert.core_variant(held), _profile_id(editing.row, held)),
        source=f"variant {held.name}",
        inherited=editing.inherited,
        chains=editing.chains,
    )


def _remarks(editing: Editing, form: EditorForm) -> tuple[TextFinding, ...]:
    text = str(form.reading.values.get("customArgs") or "")
    return remarks_on(editing.row.host, text, editing.engine, flags=editing.help_spellings, is_moe=editing.is_moe)


def _unconfirmed(request: Request, editing: Editing, form: EditorForm) -> str:
    """The arguments that a save of this form asks about first."""
    if "customArgs" not in form.touched:
        return ""
    return unconfirmed(_remarks(editing, form), request.POST.get("confirm", ""))


def _panel(editing: Editing, held: Variant, form: EditorForm | None) -> PlanPanel:
    """The plan of this profile, as stored or under a valid form."""
    preview = editing.plan
    if form is not None:
        values = {**held.fields, **form.values}
        override = services.edited_variant(editing.row, editing.pinned.override, held.name, values)
        preview = services.preview_plan(row=editing.row, override=override, facts=editing.facts)
    return panel_of(editing, preview, form, _profile_id(editing.row, held))


def _page(
    request: Request,
    editing: Editing,
    held: Variant,
    form: EditorForm,
    *,
    status: int = 200,
    conflict: EditorConflict | None = None,
    naming: str = "",
    asked: str = "",
) -> HttpResponse:
    context = {
        "head": model_head(editing.detail, "models:variant-list"),
        "notes": model_notes(editing.detail),
        "variant": held,
        "profile_id": _profile_id(editing.row, held),
        "form": form,
        "groups": control_groups(form, _facts(editing, held)),
        "panel": _panel(editing, held, None if form.errors else form),
        "may_edit": may(request.user, Level.EDIT, profile_of(editing.row, held.name)),
        "conflict": conflict,
        "naming": naming,
        "asked": asked,
        "findings": _remarks(editing, form),
    }
    return page(request, "models/variant_edit.html", context, status=status)


def _list_page(
    request: Request, editing: Editing, *, name: str = "", problem: str = "", status: int = 200
) -> HttpResponse:
    own = editing.pinned.own
    row = editing.row
    variants = [
        variant
        for variant in (own.variants.all() if own else ())
        if sees_profile(request.user, row, _profile_id(row, variant))
    ]
    plans = [
        editing.detail.sight.plan(plan)
        for plan in editing.plan.plans
        if sees_profile(request.user, row, plan.profile_id)
    ]
    context = {
        "head": model_head(editing.detail, "models:variant-list"),
        "notes": model_notes(editing.detail),
        "lines": profile_lines(
            plans,
            variants,
            row.served_id,
            [item.name for item in editing.facts.settings.default_variants],
        ),
        "variants": variants,
        "pattern": editing.pinned.pattern,
        "may_edit": may(request.user, Level.EDIT, row),
        "may_edit_host": may(request.user, Level.EDIT, row.host),
        "editable": {item.pk for item in variants if may(request.user, Level.EDIT, profile_of(row, item.name))},
        "name": name,
        "problem": problem,
    }
    return page(request, "models/variant_list.html", context, status=status)
