"""The rules of a host: the list in its order, the form of one, moving and deleting."""

from __future__ import annotations

from collections.abc import Mapping

from django.contrib import messages
from django.http import HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from gpus_app.models import Host
from gpus_app.selectors import host_for
from models_app import convert
from models_app.core.fields.rules import IDENTITY_FIELDS, rule_fields
from models_app.core.launch.backends import engine_of
from models_app.core.launch.findings import TextFinding
from models_app.core.launch.locks import locked_fields
from models_app.core.planning.drafters import ALL_CHAINS
from models_app.core.state.checks import Limits
from models_app.editor_form import EditorForm, posted_texts, posted_version, stored_texts
from models_app.models import Override
from models_app.pages.editor_conflict import EditorConflict, editor_conflict
from models_app.pages.editor_page import Facts, control_groups
from models_app.pages.impact_page import ImpactText, impact_text
from models_app.pages.rules_page import identity_controls, own_rows, rule_row, rule_rows, set_fields
from models_app.selectors.editing import MOST_CHANGES, authors
from models_app.selectors.rule_sight import held_text, seen_rule, seen_rules
from models_app.selectors.rules import RuleLine, shared_changes
from models_app.services import host_facts, rules_of
from models_app.services import rules as rule_services
from models_app.services.impact import overrides_impact
from models_app.services.remarks import note_confirmed, remarks_on, unconfirmed
from models_app.views.hosts import host_context
from models_app.views.model_edit import SAVED, UNCHANGED, check_rate, tried_page, with_own_files
from quartermaster_site.access.audit import actor_of
from quartermaster_site.access.permissions import Level, may, may_write_arguments, needs, require
from quartermaster_site.access.refusals import tell
from quartermaster_site.errors import EditConflict, Refused
from quartermaster_site.figures import ago
from quartermaster_site.http import Request, go_to, page, wants_fragment

TRIES = ("impact", "reset", "reset-group", "pick")
"""What a button of the form may ask for without storing anything."""


@require_http_methods(["GET", "HEAD", "POST"])
@needs(Level.VIEW)
def rule_list(request: Request, slug: str) -> HttpResponse:
    """All rules in their order; a POST adds one at the end. `?match=` proposes a pattern."""
    host = host_for(request.user, slug)
    if request.method != "POST":
        return _list_page(request, host, {"match": request.GET.get("match", "")[:1024]})
    require(request.user, Level.EDIT, host)
    typed = {key: request.POST.get(key, "").strip() for key in rule_services.IDENTITY}
    try:
        rule = rule_services.add_rule(host=host, match=typed["match"], quant=typed["quant"], actor=actor_of(request))
    except Refused as error:
        tell(request, error)
        return _list_page(request, host, typed, problems=error.fields, status=422)
    messages.success(request, "The rule is added, as the last one. Say here what it sets.")
    return go_to(request, reverse("models:rule-edit", args=[slug, rule.pk]))


@require_http_methods(["GET", "HEAD", "POST"])
@needs(Level.VIEW)
def rule_edit(request: Request, slug: str, pk: int) -> HttpResponse:
    """The form of one rule. `intent=impact` shows what saving would do, otherwise a POST saves."""
    host = host_for(request.user, slug)
    rule = rule_services.get_rule(host, pk)
    editing = RuleForm(request, host, rule)
    if request.method != "POST":
        return editing.page(editing.stored())
    form = editing.posted()
    if wants_fragment(request):
        return editing.tried(form)
    if form.errors:
        return editing.page(form, status=422)
    if request.POST.get("intent") == "impact" or any(request.POST.get(name) for name in TRIES[1:]):
        return editing.page(form, impact=editing.impact(form))
    require(request.user, Level.EDIT, host)
    confirmed = request.POST.get("confirm", "")
    if "customArgs" in form.touched and (asked := unconfirmed(editing.remarks(form), confirmed)):
        return editing.page(form, status=422, asked=asked)
    try:
        saved = rule_services.save_rule(rule=rule, values=form.values, version=form.version, actor=actor_of(request))
    except Refused as error:
        tell(request, error)
        return editing.page(form.with_refusal(error.fields), status=422)
    except EditConflict as error:
        original = rule_services.rule_at(rule, form.version) if form.version >= 0 else None
        conflict = editor_conflict(form, error, original)
        return editing.page(form.with_version(error.version), status=409, conflict=conflict)
    if confirmed:
        note_confirmed(host=host, subject=rule, label=rule.match, confirmed=confirmed, actor=actor_of(request))
    messages.success(request, SAVED if saved.version > rule.version else UNCHANGED)
    return go_to(request, reverse("models:rule-edit", args=[slug, pk]))


@require_POST
@needs(Level.VIEW)
def rule_move(request: Request, slug: str, pk: int) -> HttpResponse:
    """One place up or down. `beside` is the rule that the page showed there."""
    host = host_for(request.user, slug, Level.EDIT)
    beside = request.POST.get("beside", "")
    number = int(beside) if beside.isascii() and beside.isdigit() and len(beside) < 19 else 0
    up = request.GET.get("to") != "down"
    try:
        rule_services.move_rule(
            rule=seen_rule(request.user, host, pk).rule, up=up, beside=number, actor=actor_of(request)
        )
    except EditConflict as error:
        return _list_page(request, host, {}, moved=str(error), status=409)
    return go_to(request, reverse("models:rule-list", args=[slug]))


@require_http_methods(["GET", "HEAD", "POST"])
@needs(Level.VIEW)
def rule_delete(request: Request, slug: str, pk: int) -> HttpResponse:
    """Asks first: GET says what would change, POST deletes."""
    host = host_for(request.user, slug, Level.EDIT)
    line, rule = seen_rule(request.user, host, pk), rule_services.get_rule(host, pk)
    if request.method == "POST":
        rule_services.delete_rule(rule=rule, version=posted_version(request.POST), actor=actor_of(request))
        messages.success(request, "The rule is deleted. The history can bring it back.")
        return go_to(request, reverse("models:rule-list", args=[slug]))
    without = rule_services.overrides_with(host, {pk: None})
    context = {
        "host": host,
        "rule": rule_row(line),
        "version": rule.version,
        "impact": impact_text(overrides_impact(host, without, request.user)),
    }
    return page(request, "hosts/rule_delete.html", context)


def _list_page(
    request: Request,
    host: Host,
    typed: Mapping[str, str],
    *,
    problems: Mapping[str, str] | None = None,
    moved: str = "",
    status: int = 200,
) -> HttpResponse:
    found = seen_rules(request.user, host)
    context = host_context(request, host) | {
        "rules": rule_rows(found),
        "own": own_rows(found),
        "own_count": len(found.own),
        "identity": identity_controls(typed, problems or {}),
        "moved": moved,
    }
    return page(request, "hosts/rule_list.html", context, status=status)


class RuleForm:
    """The form of one rule, with the models that it matches now."""

    def __init__(self, request: Request, host: Host, rule: Override) -> None:
        self.request, self.host, self.rule = request, host, rule
        self.values = rule_services.rule_values(rule)
        self.line: RuleLine = seen_rule(request.user, host, rule.pk)
        self.facts = host_facts(host)
        override = convert.core_override(rule)
        kinds = {
            (item.model_class, engine_of(self.facts.settings, override, item.model_class)) for item in self.line.matched
        }
        self.engine = "sd" if {engine for _, engine in kinds} == {"sd"} else "llama"
        self.fields = (*IDENTITY_FIELDS, *rule_fields(kinds, arguments=may_write_arguments(request.user, host)))

    def stored(self) -> EditorForm:
        return self._form(stored_texts(self.fields, self.values), self.rule.version)

    def posted(self) -> EditorForm:
        posted = self.request.POST
        form = self._form(posted_texts(self.fields, posted, self.values), posted_version(posted))
        return with_own_files(self.request, self.host, self.values, form)

    def _form(self, typed: Mapping[str, str], version: int) -> EditorForm:
        text = typed.get("customArgs", str(self.values.get("customArgs", "")))
        rules = rules_of(self.host)
        owned = {**locked_fields(text, "sd", rules=rules), **locked_fields(text, "llama", rules=rules)}
        off = typed.get("customArgsOff", "on" if self.values.get("customArgsOff") else "")
        return EditorForm(
            fields=self.fields,
            limits=Limits(device_count=self.host.devices.count()),
            stored=self.values,
            version=version,
            typed=typed,
            locked={} if off else {key: flag for key, flag in owned.items() if key in typed},
        )

    def remarks(self, form: EditorForm) -> tuple[TextFinding, ...]:
        text = str(form.reading.values.get("customArgs") or "")
        override = convert.core_override(self.rule)
        model_class = next((item.model_class for item in self.line.matched), "llm")
        flags = self.facts.backend_for(override, model_class).flags
        return remarks_on(self.host, text, self.engine, flags=flags) if text.strip() else ()

    def impact(self, form: EditorForm) -> ImpactText:
        changed = rule_services.edited_rule(self.rule, form.values)
        overrides = rule_services.overrides_with(self.host, {self.rule.pk: changed})
        return impact_text(overrides_impact(self.host, overrides, self.request.user))

    def tried(self, form: EditorForm) -> HttpResponse:
        """While somebody types: what the form would change, and the slots beside the fields."""
        check_rate(self.request)
        context = {
            "form": form,
            "identity": identity_controls(form.typed, form.errors),
            "groups": control_groups(form, self._page_facts()),
            "impact": None if form.errors else self.impact(form),
        }
        return tried_page(self.request, "hosts/rule_edit.html", form, context)

    def page(
        self,
        form: EditorForm,
        *,
        status: int = 200,
        conflict: EditorConflict | None = None,
        impact: ImpactText | None = None,
        asked: str = "",
    ) -> HttpResponse:
        facts = self._page_facts()
        held = held_text(self.request.user, self.host, [(self.rule.match, self.rule.quant)])
        context = host_context(self.request, self.host) | {
            "held": held,
            "may_edit": not held and may(self.request.user, Level.EDIT, self.host),
            "rule": rule_row(self.line),
            "variants": [(variant.name, set_fields(variant)) for variant in self.rule.variants.all()],
            "form": form,
            "identity": identity_controls(form.typed, form.errors),
            "groups": control_groups(form, facts),
            "conflict": conflict,
            "impact": impact,
            "asked": asked,
            "findings": self.remarks(form),
            "preview_url": self.request.path,
        }
        return page(self.request, "hosts/rule_edit.html", context, status=status)

    def _page_facts(self) -> Facts:
        changes = list(shared_changes(self.host, rule=self.rule.pk)[:MOST_CHANGES])
        now = timezone.now()
        return Facts(
            settings=self.facts.settings,
            authors={key: f"{who}, {ago(at, now)}" for key, (who, at) in authors(changes).items()},
            source="this rule",
            chains=ALL_CHAINS,
            backends=tuple((row.slug, f"{row.name or row.path} ({row.kind})") for row in self.host.backends.all()),
        )
