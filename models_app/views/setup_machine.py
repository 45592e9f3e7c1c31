"""The step of the wizard that is about where the models are: on this machine, or on one that is added here."""

from __future__ import annotations

from django.http import HttpResponse

from gpus_app import enrolment
from models_app.machine_form import MachineForm
from models_app.pages.host_page import host_lines
from models_app.pages.setup_page import Step, frame, next_url
from models_app.pages.shell import remember_host, shell_of
from models_app.views.machines import enrol_context
from quartermaster_site import env
from quartermaster_site.access.audit import actor_of
from quartermaster_site.errors import NotFound, Refused
from quartermaster_site.http import Request, go_to, page


def host_step(request: Request, step: Step) -> HttpResponse:
    """The machines seen so far, looked at anew every two seconds; the choice holds for the steps that follow."""
    hosts = shell_of(request).hosts
    if slug := request.POST.get("host"):
        chosen = next((host for host in hosts if host.slug == slug), None)
        if chosen is None:
            raise NotFound(f"There is no host {slug!r}.")
        remember_host(request, chosen)
        return go_to(request, next_url(step))
    form, code = MachineForm(request.POST if request.method == "POST" else None), {}
    if request.method == "POST" and form.is_valid():
        try:
            host, text = enrolment.create_host(**form.cleaned_data, actor=actor_of(request))
        except Refused as error:
            form.take_refusal(error)
        else:
            code = enrol_context(request, host, text)
            del request._shell  # type: ignore[attr-defined]  # the new one belongs into the list
            hosts = shell_of(request).hosts
    context = frame(step, has_administrator=True) | {
        "machines": host_lines(hosts, {}),
        "chosen": request.session.get("host") or env.host_slug(),
        "attempts": [host.agent.attempt_problem for host in hosts if getattr(host, "agent", None)],
        "form": form,
        "hindrance": enrolment.why_no_machines(),
        "code": code,
    }
    return page(request, "setup/host.html", context, fragments=["machines"], status=422 if form.errors else 200)
