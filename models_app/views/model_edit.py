"""The Settings tab of a model: what is pinned, with a live preview; saved under a version."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from gpus_app.models import Host
from models_app import selectors, services
from models_app.core.discovery.names import slugify
from models_app.core.export.entry import plan_env
from models_app.core.launch.ownership import custom_text, knobs_set
from models_app.core.state.typed import control_text
from models_app.editor_form import EditorForm, posted_texts, posted_version, stored_texts
from models_app.pages.context_curve import curve_section
from models_app.pages.editor_conflict import EditorConflict, editor_conflict
from models_app.pages.editor_page import Facts, control_groups
from models_app.pages.host_page import machine_of
from models_app.pages.model_head import model_head, model_notes
from models_app.pages.plan_panel import PlanPanel, plan_panel
from models_app.selectors import Editing
from models_app.services import Preview
from models_app.services.following import follow_rule
from models_app.services.named_files import file_problems
from models_app.views.model_detail import PREVIEWS
from models_app.whatif_form import PLAIN_KEYS, WhatIfForm
from models_app.whatif_form import Limits as WhatIfLimits
from quartermaster_site.access.audit import actor_of
from quartermaster_site.access.permissions import Level, may, needs, require
from quartermaster_site.access.refusals import tell
from quartermaster_site.errors import Busy, EditConflict, Refused, Withheld
from quartermaster_site.figures import ago
from quartermaster_site.http import Request, go_to, page, wants_fragment

SAVED = "Saved. The models of this host are planned again."
UNCHANGED = "This is what is stored already, so nothing was saved."


@require_http_methods(["GET", "HEAD", "POST"])
@needs(Level.VIEW)
def model_edit(request: Request, pk: int) -> HttpResponse:
    """The form as it is stored; a POST saves it."""
    editing = selectors.editing_of(selectors.get_row(pk, request.user), request.user)
    if request.method != "POST":
        return _page(request, editing, _stored_form(editing))
    require(request.user, Level.EDIT, editing.row)
    form = _posted_form(request, editing)
    if form.errors:
        return _page(request, editing, form, status=422)
    again = save_form(request, editing, form, form.values, _page)
    if again is not None:
        return again
    if request.POST.get("intent") == "review":
        return go_to(request, reverse("models:config-review", args=[editing.row.host.slug]))
    return go_to(request, reverse("models:model-edit", args=[pk]))


@require_POST
@needs(Level.VIEW)
def model_edit_preview(request: Request, pk: int) -> HttpResponse:
    """What the form would give. htmx gets the panel and the slots beside the fields; nobody's rows change."""
    check_rate(request)
    editing = selectors.editing_of(selectors.get_row(pk, request.user), request.user)
    form = _posted_form(request, editing)
    if not wants_fragment(request):
        return _page(request, editing, form, status=422 if form.errors else 200)
    preview = editing.plan if form.errors else preview_of(editing, form)
    context: dict[str, Any] = {"groups": control_groups(form, _facts(editing, preview)), "form": form}
    if form.errors:
        response = page(request, "models/model_edit.html#refused", context, status=422)
        response["HX-Reswap"] = "none"
    else:
        context["panel"] = panel_of(editing, preview, form)
        response = page(request, "models/model_edit.html#preview", context)
    return with_sequence(request, response)


@require_POST
@needs(Level.VIEW)
def model_adopt(request: Request, pk: int) -> HttpResponse:
    """Stores the values of a what-if; with any doubt the Settings form shows them, unsaved."""
    editing = selectors.editing_of(selectors.get_row(pk, request.user, Level.EDIT), request.user)
    if editing.detail.header is None:
        raise Refused("The header of this model was not read: there is nothing to plan with.")
    tried = WhatIfForm(request.POST, limits=WhatIfLimits.of(editing.detail.header), automatic={})
    stored = _stored_form(editing)
    if not tried.is_valid():
        typed = {key: str(request.POST[key]) for key in PLAIN_KEYS if request.POST.get(key)}
        return _page(request, editing, replace(stored, typed={**stored.typed, **typed}), status=422)
    values, flags = tried.settings()
    if flags:
        text = custom_text(editing.pinned.override)
        values["customArgs"] = f"{text}\n{flags}".strip("\n")
    texts = {row.key: control_text(row, values[row.key]) for row in editing.fields if row.key in values}
    form = replace(stored, typed={**stored.typed, **texts}, version=posted_version(request.POST))
    try:
        services.save_override(
            row=editing.row, values=values, version=form.version, actor=actor_of(request), action="adopt"
        )
    except Refused as error:
        tell(request, error)
        return _page(request, editing, form.with_refusal(error.fields), status=422)
    except EditConflict as error:
        conflict = conflict_of(editing, form, error)
        return _page(request, editing, form.with_version(error.version), status=409, conflict=conflict)
    messages.success(request, SAVED)
    return go_to(request, reverse("models:model-edit", args=[pk]))


@require_http_methods(["GET", "HEAD", "POST"])
@needs(Level.VIEW)
def model_reset(request: Request, pk: int) -> HttpResponse:
    """Asks first: GET lists what would be cleared, POST clears it, or with `intent=follow` lets a rule apply again."""
    editing = selectors.editing_of(selectors.get_row(pk, request.user, Level.EDIT), request.user)
    version = posted_version(request.POST)
    if request.method == "POST" and request.POST.get("intent") == "follow":
        follow_rule(row=editing.row, version=version, actor=actor_of(request))
        messages.success(request, "This model has no settings of its own any more.")
        return go_to(request, reverse("models:model-edit", args=[pk]))
    if request.method == "POST":
        services.reset_override(row=editing.row, version=version, actor=actor_of(request))
        messages.success(request, "All settings of this model are automatic again.")
        return go_to(request, reverse("models:model-edit", args=[pk]))
    fields = {**{row.key: row.label for row in editing.fields}, "customArgs": "Custom launch arguments"}
    cleared = [fields.get(key, key) for key in editing.pinned.fields]
    context = {
        "row": editing.row,
        "cleared": cleared,
        "version": editing.pinned.version,
        "rule": editing.detail.rule if editing.pinned.own else None,
        "variant_count": editing.detail.variant_count,
    }
    return page(request, "models/model_reset.html", context)


def save_form(
    request: Request, editing: Editing, form: EditorForm, values: Mapping[str, Any], show: Callable[..., HttpResponse]
) -> HttpResponse | None:
    """Store what a form says. The page again where that was refused or somebody else was first, else None."""
    try:
        saved = services.save_override(row=editing.row, values=values, version=form.version, actor=actor_of(request))
    except Refused as error:
        tell(request, error)
        return show(request, editing, form.with_refusal(error.fields), status=422)
    except EditConflict as error:
        conflict = conflict_of(editing, form, error)
        if conflict.lines:
            return show(request, editing, form.with_version(error.version), status=409, conflict=conflict)
        saved = editing.pinned.own
    changed = saved is not None and saved.version > editing.pinned.version
    messages.success(request, SAVED if changed else UNCHANGED)
    return None


def conflict_of(editing: Editing, form: EditorForm, error: EditConflict, variant: str = "") -> EditorConflict:
    """What differs after somebody else saved; without lines both have saved the same."""
    original = None
    if form.version >= 0:
        original = services.state_at(editing.row, error.saved, form.version, variant)
    return editor_conflict(form, error, original)


def check_rate(request: Request) -> None:
    """Raises Busy where a session previews too often (web.md 3.9)."""
    wait = PREVIEWS.wait_seconds(request.session.session_key or request.user.get_username())
    if wait:
        raise Busy("Too many previews at once.", wait_seconds=max(1, round(wait)))


def tried_page(request: Request, template: str, form: EditorForm, context: Mapping[str, Any]) -> HttpResponse:
    """The answer to a form that is being typed in: its fragment `tried`, or `refused` with the messages alone."""
    name = "refused" if form.errors else "tried"
    response = page(request, f"{template}#{name}", context, status=422 if form.errors else 200)
    if form.errors:
        response["HX-Reswap"] = "none"
    return with_sequence(request, response)


def with_sequence(request: Request, response: HttpResponse) -> HttpResponse:
    """The answer with the number of the form that it is for: a browser drops an older one."""
    sequence = request.POST.get("seq", "")
    response["X-Sequence"] = sequence if sequence.isascii() and sequence.isdigit() and len(sequence) < 16 else "0"
    return response


def preview_of(editing: Editing, form: EditorForm) -> Preview:
    """The plans under a valid form."""
    override = services.edited(editing.row, editing.pinned.override, form.values, editing.is_moe)
    return services.preview_plan(row=editing.row, override=override, facts=editing.facts)


def panel_of(editing: Editing, preview: Preview, form: EditorForm | None, profile_id: str = "") -> PlanPanel:
    """The panel of one profile, of the base where that has none; `form` is what was typed for it."""
    blocks = preview.header.block_count if preview.header else 0
    machine = machine_of(preview.budget, editing.row.host.ram_total_bytes)
    plan = next((plan for plan in preview.plans if plan.profile_id == profile_id), preview.base)
    curve = curve_section(preview.curve(plan.profile_id))
    base_id, variants = editing.row.served_id, preview.override.variants
    own = [variant for variant in variants if plan.profile_id == f"{base_id}-{slugify(variant.name)}"]
    pinned = {knob for layer in (preview.override, *own) for knob in knobs_set(layer)}
    environment, guarded = plan_env(plan, preview.budget), plan.profile_id in preview.guarded
    plan = editing.detail.sight.plan(plan, "\n".join(form.typed.values()) if form else "")
    return plan_panel(
        plan,
        machine,
        block_count=blocks,
        pinned=pinned,
        curve=curve,
        environment=environment,
        guarded=guarded,
    )


def _stored_form(editing: Editing) -> EditorForm:
    fields = editing.pinned.fields
    return EditorForm(
        fields=editing.fields,
        limits=editing.limits(),
        stored=fields,
        version=editing.pinned.version,
        typed=stored_texts(editing.fields, fields),
        locked=editing.locked,
    )


def _posted_form(request: Request, editing: Editing) -> EditorForm:
    fields = editing.pinned.fields
    form = EditorForm(
        fields=editing.fields,
        limits=editing.limits(),
        stored=fields,
        version=posted_version(request.POST),
        typed=posted_texts(editing.fields, request.POST, fields),
        locked=editing.locked,
    )
    return with_own_files(request, editing.row.host, fields, form)


def with_own_files(request: Request, host: Host, stored: Mapping[str, Any], form: EditorForm) -> EditorForm:
    """The form with a message at each setting that names a file which this person may not use."""
    problems = file_problems(request.user, host, stored, form.values)
    if problems and not wants_fragment(request):
        tell(request, Withheld("Some files cannot be used.", fields=problems))
    return form.with_refusal(problems)


def _facts(editing: Editing, preview: Preview) -> Facts:
    changes = list(selectors.changes(editing.row).filter(variant="")[: selectors.MOST_CHANGES])
    now = timezone.now()
    pattern = editing.pinned.pattern
    return Facts(
        settings=editing.facts.settings,
        automatic=editing.automatic(),
        authors={key: f"{who}, {ago(at, now)}" for key, (who, at) in selectors.authors(changes).items()},
        source=f"rule {pattern}" if pattern else "this model",
        backends=editing.backends,
        chains=editing.chains,
        window_tokens=preview.base.placement.ctx_tokens if preview.base.placement else 0,
    )


def _page(
    request: Request, editing: Editing, form: EditorForm, *, status: int = 200, conflict: EditorConflict | None = None
) -> HttpResponse:
    preview = editing.plan if form.errors or not form.touched else preview_of(editing, form)
    context = {
        "head": model_head(editing.detail, "models:model-edit"),
        "notes": model_notes(editing.detail),
        "form": form,
        "groups": control_groups(form, _facts(editing, preview)),
        "panel": panel_of(editing, preview, form),
        "planned": preview.base.verdict != "unplanned",
        "pattern": editing.pinned.pattern,
        "may_edit": may(request.user, Level.EDIT, editing.row),
        "conflict": conflict,
    }
    return page(request, "models/model_edit.html", context, status=status)
