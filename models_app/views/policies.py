"""Policies: what users, groups, roles or everyone may do on hosts and with models. Administrators only."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from models_app.explain_form import ExplainForm
from models_app.pages.policies_page import explained, policy_views
from models_app.policy_form import PolicyForm
from models_app.selectors.policies import explain, matches_of, policy_lines, remark_on
from models_app.services.policies import change_policy, create_policy, delete_policy, get_policy, pattern_problem
from quartermaster_site.access.audit import actor_of
from quartermaster_site.access.grants import rule_of
from quartermaster_site.access.models import Policy
from quartermaster_site.access.permissions import Level, needs
from quartermaster_site.errors import EditConflict, Refused
from quartermaster_site.http import Request, go_to, page


@require_http_methods(["GET", "HEAD", "POST"])
@needs(Level.MANAGE)
def policy_list(request: Request) -> HttpResponse:
    """All in the order in which they are asked; POST adds one."""
    given = {key: request.GET[key][:300] for key in ("subject", "host", "model") if key in request.GET}
    form = PolicyForm(request.POST if request.method == "POST" else None, initial=given or None)
    if form.is_bound and form.is_valid():
        try:
            policy = create_policy(values=form.values(), actor=actor_of(request))
        except Refused as error:
            form.take_refusal(error)
        else:
            _say_stored(request, policy, f"Stored, and in force from the next request on: {policy}.")
            return go_to(request, reverse("models:policy-list"))
    context = {"policies": policy_views(policy_lines()), "form": form}
    return page(request, "access/policy_list.html", context, status=422 if form.is_bound else 200)


@require_http_methods(["GET", "HEAD", "POST"])
@needs(Level.MANAGE)
def policy_edit(request: Request, pk: int) -> HttpResponse:
    policy = get_policy(pk)
    form, status = PolicyForm(request.POST if request.method == "POST" else None, policy=policy), 200
    if form.is_bound:
        status = _save(request, form, policy)
        if status == 200:
            _say_stored(request, get_policy(pk), "The policy is changed, from the next request on.")
            return go_to(request, reverse("models:policy-list"))
    context = {"policy": policy, "form": form, "matches": matches_of(rule_of(policy))}
    return page(request, "access/policy_edit.html", context, status=status)


def _say_stored(request: Request, policy: Policy, text: str) -> None:
    """What was stored, with a warning where other policies stand before it."""
    remark = remark_on(policy)
    if remark:
        messages.warning(request, f"{text} {remark}")
    else:
        messages.success(request, text)


def _save(request: Request, form: PolicyForm, policy: Policy) -> int:
    """200 when it is stored, else the status of the page that says why not."""
    if not form.is_valid():
        return 422
    version = form.cleaned_data["version"] or 0
    try:
        change_policy(policy=policy, values=form.values(), version=version, actor=actor_of(request))
    except Refused as error:
        form.take_refusal(error)
        return 422
    except EditConflict as error:
        form.take_conflict(error)
        return 409
    return 200


@require_http_methods(["GET", "HEAD", "POST"])
@needs(Level.MANAGE)
def policy_delete(request: Request, pk: int) -> HttpResponse:
    """Asks first."""
    policy = get_policy(pk)
    if request.method == "POST":
        version = request.POST.get("version", "")
        number = int(version) if version.isascii() and version.isdigit() and len(version) < 10 else 0
        delete_policy(policy=policy, version=number, actor=actor_of(request))
        messages.success(request, "The policy is gone: what the other policies and the role give holds again.")
        return go_to(request, reverse("models:policy-list"))
    return page(request, "access/policy_delete.html", {"policy": policy, "matches": matches_of(rule_of(policy))})


@require_safe
@needs(Level.MANAGE)
def policy_count(request: Request) -> HttpResponse:
    """What a policy of these values would cover; for the form while it is typed."""
    form = PolicyForm(request.GET)
    form.is_valid()
    pattern = request.GET.get("model", "").strip()
    problem = pattern_problem(pattern) or (form.errors.get("host", [""]) or [""])[0]
    matches = None
    if not problem:
        host = form.values().host if form.is_valid() else None
        matches = matches_of(rule_of(Policy(pk=0, model=pattern, host_id=host)))
    return page(request, "access/_policy_count.html", {"matches": matches, "problem": problem})


@require_safe
@needs(Level.MANAGE)
def policy_explain(request: Request) -> HttpResponse:
    """Why somebody may do what they may: every policy that matches, the one that decides, and what follows."""
    form = ExplainForm(request.GET if "host" in request.GET else None, person=request.GET.get("user", ""))
    context: dict[str, object] = {"form": form}
    if form.is_bound and form.is_valid():
        person, host, model = form.chosen()
        context["found"] = explained(explain(person, host, model), person, host, model)
    status = 422 if form.is_bound and form.errors else 200
    return page(request, "access/policy_explain.html", context, fragments=["explanation"], status=status)
