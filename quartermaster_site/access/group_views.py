"""Groups of people. Administrators only."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.models import Group
from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from quartermaster_site.access.audit import actor_of
from quartermaster_site.access.group_form import GroupForm
from quartermaster_site.access.groups import delete_group, get_group, group_values, save_group
from quartermaster_site.access.permissions import Level, needs
from quartermaster_site.errors import EditConflict, Refused
from quartermaster_site.http import go_to, page


@require_http_methods(["GET", "HEAD", "POST"])
@needs(Level.MANAGE)
def group_list(request: HttpRequest) -> HttpResponse:
    """All groups; POST makes another one."""
    form = GroupForm(request.POST if request.method == "POST" else None)
    if form.is_bound and form.is_valid():
        try:
            group = save_group(group=None, values=form.values(), actor=actor_of(request))
        except Refused as error:
            form.take_refusal(error)
        else:
            messages.success(request, f"The group {group} is made. What it may do is said under Policies.")
            return go_to(request, reverse("access:group-list"))
    counted = Group.objects.annotate(policy_count=Count("policies", distinct=True)).prefetch_related("user_set")
    context = {"groups": counted.order_by("name"), "form": form}
    return page(request, "access/group_list.html", context, status=422 if form.is_bound else 200)


@require_http_methods(["GET", "HEAD", "POST"])
@needs(Level.MANAGE)
def group_edit(request: HttpRequest, pk: int) -> HttpResponse:
    group = get_group(pk)
    form, status = GroupForm(request.POST if request.method == "POST" else None, group=group), 200
    if form.is_bound:
        status = _save(request, form, group)
        if status == 200:
            messages.success(request, "The group is changed, from the next request on.")
            return go_to(request, reverse("access:group-list"))
    policies = group.policies.select_related("host", "group")
    context = {"group": group, "form": form, "seen": group_values(group), "policies": policies}
    return page(request, "access/group_edit.html", context, status=status)


def _save(request: HttpRequest, form: GroupForm, group: Group) -> int:
    """200 when it is stored, else the status of the page that says why not."""
    if not form.is_valid():
        return 422
    try:
        save_group(group=group, values=form.values(), seen=form.seen(), actor=actor_of(request))
    except Refused as error:
        form.take_refusal(error)
        return 422
    except EditConflict as error:
        names = ", ".join(error.saved["members"]) or "nobody"
        form.add_error(None, f"{error} It is now: {error.saved['name']} with {names}.")
        return 409
    return 200


@require_http_methods(["GET", "HEAD", "POST"])
@needs(Level.MANAGE)
def group_delete(request: HttpRequest, pk: int) -> HttpResponse:
    """Asks first: the policies about the group go with it."""
    group = get_group(pk)
    if request.method == "POST":
        gone = delete_group(group=group, actor=actor_of(request))
        also = f", and with it {gone} polic{'y' if gone == 1 else 'ies'}" if gone else ""
        messages.success(request, f"The group {group.name} is gone{also}.")
        return go_to(request, reverse("access:group-list"))
    policies = list(group.policies.select_related("host", "group"))
    return page(request, "access/group_delete.html", {"group": group, "policies": policies})
