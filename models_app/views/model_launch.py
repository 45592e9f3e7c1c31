"""The Launch tab of a model: the person's launch text, and the command that it makes."""

from __future__ import annotations

from dataclasses import replace

from django.http import HttpResponse, QueryDict
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from models_app import selectors, services
from models_app.core.catalog import Plan
from models_app.core.fields import OVERRIDE_FIELDS
from models_app.core.launch.findings import TextFinding
from models_app.core.launch.ownership import custom_text, text_of
from models_app.core.launch.pins import flag_values
from models_app.core.launch.validate import UNKNOWN, UNVERIFIED
from models_app.core.settings import Override
from models_app.editor_form import EditorForm, posted_texts, posted_version, stored_texts
from models_app.pages.editor_conflict import EditorConflict
from models_app.pages.launch_page import comparisons, launch
from models_app.pages.model_head import model_head, model_notes
from models_app.selectors import Editing
from models_app.selectors.sight import IN_PARTS
from models_app.services import Preview
from models_app.services.arguments import check_arguments
from models_app.services.remarks import note_confirmed, remarks_on, unconfirmed
from models_app.views.model_edit import check_rate, save_form, with_sequence
from quartermaster_site.access.audit import actor_of
from quartermaster_site.access.permissions import Level, may, may_write_arguments, needs, require_arguments
from quartermaster_site.access.redaction import redact
from quartermaster_site.errors import NotAllowed, Refused
from quartermaster_site.http import Request, go_to, page, wants_fragment

FIELDS = tuple(field for field in OVERRIDE_FIELDS if field.key in ("customArgs", "customArgsOff", "customArgsOnly"))
MOST_CHARACTERS = 16_384


@require_http_methods(["GET", "HEAD", "POST"])
@needs(Level.VIEW)
def model_launch(request: Request, pk: int) -> HttpResponse:
    """The text as it is stored; a POST saves it."""
    editing = selectors.editing_of(selectors.get_row(pk, request.user), request.user)
    if request.method != "POST":
        return _page(request, editing, _stored_form(editing))
    require_arguments(request.user, editing.row)
    if not _is_readable(editing):
        raise NotAllowed(IN_PARTS)
    form = _posted_form(request.POST, editing)
    if form.errors:
        return _page(request, editing, form, status=422)
    values = form.values
    try:
        asked = _unconfirmed(request.POST, editing, form)
    except Refused as error:
        return _page(request, editing, form.with_refusal(error.fields), status=422)
    if asked:
        return _page(request, editing, form, status=422, asked=asked)
    if request.POST.get("intent") == "move":
        values = {"customArgs": editing.pinned.override.extra_args, "extraArgs": ""}
    again = save_form(request, editing, form, values, _page)
    if again is not None:
        return again
    if confirmed := request.POST.get("confirm", ""):
        row = editing.row
        note_confirmed(host=row.host, subject=row, label=row.served_id, confirmed=confirmed, actor=actor_of(request))
    return go_to(request, reverse("models:model-launch", args=[pk]))


@require_POST
@needs(Level.VIEW)
def model_launch_preview(request: Request, pk: int) -> HttpResponse:
    """The command and the remarks for a text; nothing is stored."""
    check_rate(request)
    editing = selectors.editing_of(selectors.get_row(pk, request.user), request.user)
    form = _posted_form(request.POST, editing)
    if not wants_fragment(request):
        return _page(request, editing, form, status=422 if form.errors else 200)
    name = "refused" if form.errors else "preview"
    response = page(
        request, f"models/model_launch.html#{name}", _parts(editing, form), status=422 if form.errors else 200
    )
    if form.errors:
        response["HX-Reswap"] = "none"
    return with_sequence(request, response)


def _stored_form(editing: Editing) -> EditorForm:
    stored = editing.pinned.fields
    return EditorForm(FIELDS, editing.limits(), stored, editing.pinned.version, stored_texts(FIELDS, stored))


def _posted_form(posted: QueryDict, editing: Editing) -> EditorForm:
    """The page asks whether to apply the text; stored is that it is off, and only where there is a text."""
    stored = editing.pinned.fields
    sent = {key: str(value) for key, value in posted.items()}
    switches = {
        "customArgsOff": "" if posted.get("apply") else "on",
        "customArgsOnly": "on" if posted.get("only") else "",
    }
    texts = posted_texts(FIELDS, {**sent, **switches}, stored)
    if not texts["customArgs"].strip():
        # Whoever empties the box says nothing any more; what stood beside an empty one stays as it is.
        kept = {} if str(stored.get("customArgs", "")).strip() else stored_texts(FIELDS, stored)
        texts |= {key: kept.get(key, "") for key in switches}
    return EditorForm(FIELDS, editing.limits(), stored, posted_version(posted), texts)


def _override(editing: Editing, form: EditorForm) -> Override:
    return services.edited(editing.row, editing.pinned.override, form.values, editing.is_moe)


def _preview(editing: Editing, override: Override) -> Preview:
    return services.preview_plan(row=editing.row, override=override, facts=editing.facts)


def _parts(editing: Editing, form: EditorForm) -> dict[str, object]:
    """What a change of the text swaps; of a text that no save takes as well, to see all that is wrong at once."""
    override = editing.pinned.override if form.reading.errors else _override(editing, form)
    sight, typed = editing.detail.sight, form.typed["customArgs"] if _is_readable(editing) else ""
    yours = sight.plan(_preview(editing, override).base, typed)
    without = sight.plan(_preview(editing, replace(override, custom_args_off=True)).base)
    findings = _findings(editing, override)
    unknown = {
        name: finding.word
        for finding in findings
        if finding.word in (UNKNOWN, UNVERIFIED)
        for name in finding.argument.split()
    }
    pattern = editing.pinned.pattern
    return {
        "form": form,
        "launch": launch(
            yours,
            editing.pinned.override,
            editing.facts.settings,
            source=f"rule {pattern}" if pattern else "this model",
            doubtful=unknown,
            rules=services.rules_of(editing.row.host),
            without=without,
        ),
        "findings": findings,
        "comparisons": comparisons(without, yours, {"generated": _threads(without), "yours": _threads(yours)}),
        "characters": len(form.typed["customArgs"]),
        "most": MOST_CHARACTERS,
    }


def _findings(editing: Editing, override: Override) -> tuple[TextFinding, ...]:
    return remarks_on(
        editing.row.host,
        custom_text(override),
        editing.engine,
        flags=editing.help_spellings,
        is_moe=editing.is_moe,
        has_tiers=bool(override.ctx_variants or override.variants),
    )


def _unconfirmed(posted: QueryDict, editing: Editing, form: EditorForm) -> str:
    """The arguments that a save of this form asks about first. Raises Refused where no answer would help."""
    if not {"customArgs", "customArgsOff"} & set(form.touched):
        return ""
    override = _override(editing, form)
    check_arguments(editing.row.host, custom_text(override), editing.engine)
    return unconfirmed(_findings(editing, override), posted.get("confirm", ""))


def _is_readable(editing: Editing) -> bool:
    """Whether what is stored may be shown: a save of a text that is not shown whole would lose the rest."""
    stored = editing.pinned.override
    return not any(map(editing.detail.sight.names, (stored.custom_args, stored.extra_args)))


def _threads(plan: Plan) -> str:
    return dict(flag_values(list(plan.argv))).get("threads", "-")


def _page(
    request: Request,
    editing: Editing,
    form: EditorForm,
    *,
    status: int = 200,
    conflict: EditorConflict | None = None,
    asked: str = "",
) -> HttpResponse:
    granted = may_write_arguments(request.user, editing.row) and _is_readable(editing)
    override = editing.pinned.override
    text = form.typed["customArgs"] if _is_readable(editing) else IN_PARTS
    context = {
        **_parts(editing, form),
        "head": model_head(editing.detail, "models:model-launch"),
        "notes": model_notes(editing.detail),
        "takes_arguments": editing.takes_arguments,
        "legacy": override.extra_args if _is_readable(editing) and override.extra_args.strip() else "",
        "legacy_applies": text_of(override) != override.custom_args,
        "granted": granted,
        "may_edit": may(request.user, Level.EDIT, editing.row),
        "text": text if granted else redact(text),
        "applied": not form.typed["customArgsOff"],
        "alone": form.typed["customArgsOnly"] not in ("", "off"),
        "conflict": conflict,
        "asked": asked,
    }
    return page(request, "models/model_launch.html", context, status=status)
