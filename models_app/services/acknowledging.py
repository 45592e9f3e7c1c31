"""Findings that somebody has seen and leaves as they are."""

from __future__ import annotations

from django.db import transaction

from models_app.models import Finding
from models_app.selectors.sight import seen_findings
from quartermaster_site.access.audit import Actor, record
from quartermaster_site.access.permissions import Level, require
from quartermaster_site.errors import NotFound, Refused


def acknowledge_finding(*, pk: int, seen: bool, actor: Actor) -> None:
    """Leave a finding out of the lists until it says something else, or show it again.

    Raises Refused for an error: that stays until it is mended. What is hidden from the person is not found.
    """
    with transaction.atomic():
        found = seen_findings(actor.user).filter(pk=pk).order_by().values("pk")
        locked = Finding.objects.select_for_update(of=("self",)).select_related("host", "row").filter(pk__in=found)
        finding = locked.first()
        if finding is None:
            raise NotFound("There is no such finding any more.")
        require(actor.user, Level.OPERATE, finding.row or finding.host)
        if seen and finding.level == "error":
            raise Refused("An error stays until it is mended.")
        text = finding.text if seen else ""
        if finding.seen_text == text:
            return
        finding.seen_text, finding.seen_by = text, str(actor.user or "") if seen else ""
        finding.save(update_fields=["seen_text", "seen_by"])
        action = "finding.acknowledge" if seen else "finding.reopen"
        record(actor, action, subject=finding, label=finding.path[-150:], host_slug=finding.host.slug)
