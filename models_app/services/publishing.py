"""Who may have a text written when: the policy of a host, submissions, rollbacks and pins, and writing by itself."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import Max
from django.utils import timezone

from gpus_app.models import Host
from gpus_app.services import request_plan
from models_app.core.export.confirming import RULE
from models_app.core.export.dialects import BY_SLUG
from models_app.core.export.findings import BLOCK
from models_app.core.export.stamp import content_digest, stamped, unstamped
from models_app.core.launch.tokens import rules_for
from models_app.models import Publishing, Revision, RevisionDetails
from models_app.selectors.comparing import live_revision, mass_change_of, publishing_of, watch_of
from models_app.selectors.confirming import confirming_of
from models_app.selectors.host_findings import blocking_findings
from models_app.services.key_export import companions_of, export_keys, numbers_held, sha256_to_write
from models_app.services.key_publishing import with_keys_of_today
from models_app.services.revision_details import copy_details
from models_app.services.seen_changes import require_seen
from models_app.services.writing import (
    NO_PIN,
    checked_message,
    queue_write,
    require_ticked,
    require_writable,
    start_write,
)
from quartermaster_site.access.audit import Actor, record
from quartermaster_site.access.permissions import Level, require
from quartermaster_site.errors import Refused, SiteError, Unavailable
from quartermaster_site.jobs.models import UNFINISHED, Job
from quartermaster_site.jobs.services import Started
from quartermaster_site.version import product_version

REST = timedelta(seconds=10)
"""Between two texts that are written by themselves: quick saves end up in one."""
WAITING = (Revision.State.VALIDATED, Revision.State.BLOCKED, Revision.State.SUPERSEDED)
"""States of a newest text that may be due; a superseded one had to make way for an older text that was adopted."""


def save_policy(*, host: Host, policy: str, seen: str | None = None, actor: Actor) -> Publishing:
    """When the texts of a host are written. `seen` is the policy that stood on the page."""
    require(actor.user, Level.MANAGE)
    if policy not in Publishing.Policy.values:
        raise Refused("Choose one of the three ways.", fields={"policy": "Choose one of the three ways."})
    with transaction.atomic():
        row, _ = Publishing.objects.select_for_update().get_or_create(host=host)
        if row.policy == policy:
            return row
        if seen is not None and seen != row.policy:
            raise Refused(f"Somebody changed this meanwhile: it is “{row.get_policy_display().lower()}” now.")
        before, row.policy, row.held = row.policy, policy, ""
        row.save(update_fields=["policy", "held"])
        if before == Publishing.Policy.APPROVAL:
            waiting = Revision.objects.filter(host=host, state=Revision.State.AWAITING)
            waiting.update(state=Revision.State.VALIDATED, submitted_by=None, submitted_at=None)
        changes = {"policy": [before, policy]}
        record(actor, "config.policy", subject=host, host_slug=host.slug, changes=changes)
        transaction.on_commit(lambda: write_if_due(host))
    return row


def submit(
    *,
    revision: Revision,
    message: str = "",
    seen_path: str | None = None,
    confirmed: Collection[str] = (),
    actor: Actor,
) -> Revision:
    """Ask a second person to have this text written. A text that waited before no longer does.

    `confirmed` are the rules that were ticked: the second person is shown that, and not asked again.
    """
    require(actor.user, Level.OPERATE, revision.host)
    message = checked_message(message)
    with transaction.atomic():
        host = Host.objects.select_for_update().get(pk=revision.host_id)
        revision = Revision.objects.select_for_update().get(pk=revision.pk)
        if publishing_of(host).policy != Publishing.Policy.APPROVAL:
            raise Refused("No approval is needed on this host: write the text itself.")
        require_writable(host, revision, seen_path)
        require_seen(host=host, text=revision, actor=actor)
        if revision.state in (Revision.State.WRITING, Revision.State.AWAITING):
            return revision
        require_ticked(revision, confirmed, actor)
        others = Revision.objects.filter(host=host, state=Revision.State.AWAITING)
        others.update(state=Revision.State.VALIDATED, submitted_by=None, submitted_at=None)
        revision.state, revision.state_reason, revision.message = Revision.State.AWAITING, "", message
        revision.submitted_by, revision.submitted_at = actor.user, timezone.now()
        revision.save(update_fields=["state", "state_reason", "message", "submitted_by", "submitted_at"])
        record(actor, "config.submit", subject=revision, host_slug=host.slug, reason=message)
    return revision


def send_back(*, revision: Revision, reason: str = "", actor: Actor) -> Revision:
    """Refuse a submitted text, or take one's own back: it is an ordinary text again."""
    require(actor.user, Level.OPERATE, revision.host)
    with transaction.atomic():
        revision = Revision.objects.select_for_update().select_related("host").get(pk=revision.pk)
        if revision.state != Revision.State.AWAITING:
            raise Refused("This text does not wait for an approval.")
        note = f"not approved by {actor.name}"
        revision.state_reason = f"{note}: {checked_message(reason)}" if reason.strip() else note
        revision.state, revision.submitted_by, revision.submitted_at = Revision.State.VALIDATED, None, None
        revision.save(update_fields=["state", "state_reason", "submitted_by", "submitted_at"])
        record(actor, "config.refuse", subject=revision, host_slug=revision.host.slug, reason=reason)
    return revision


def lift_pin(*, host: Host, actor: Actor) -> None:
    """The host takes newer texts again."""
    require(actor.user, Level.OPERATE, host)
    with transaction.atomic():
        row = Publishing.objects.select_for_update(of=("self",)).select_related("pinned").filter(host=host).first()
        if row is None or row.pinned is None:
            return
        changes = {"pinned": [row.pinned.number, None]}
        Publishing.objects.filter(pk=row.pk).update(**NO_PIN)
        record(actor, "config.unpin", subject=host, host_slug=host.slug, changes=changes)
        transaction.on_commit(lambda: write_if_due(host))


def roll_back(
    *, revision: Revision, message: str = "", seen_path: str | None = None, typed_slug: str = "", actor: Actor
) -> tuple[Revision, Started | None]:
    """A new revision with the old text, written at once, or submitted where a second person has to agree.

    The host is pinned to it when it has been written; nothing that people set is changed. Flags that would have to be
    confirmed (V-08) were on the host before: who asks for that text confirms them.
    """
    require(actor.user, Level.OPERATE, revision.host)
    with transaction.atomic():
        host = Host.objects.select_for_update().get(pk=revision.host_id)
        live = live_revision(host)
        if revision.written_at is None:
            raise Refused(f"Revision {revision.number} was never on the host: there is nothing to go back to.")
        if live is not None and live.body_sha256 == revision.body_sha256:
            raise Refused(f"Nothing to do: the text of revision {revision.number} is live as revision {live.number}.")
        if revision.dialect != host.publish_dialect:
            raise Refused(
                f"Revision {revision.number} is for {revision.get_dialect_display()}: choose that router first."
            )
        fresh = _copy(host, revision, live, actor)
        text = message or f"Rollback to revision {revision.number}"
        if publishing_of(host).policy == Publishing.Policy.APPROVAL:
            return submit(revision=fresh, message=text, seen_path=seen_path, confirmed=(RULE,), actor=actor), None
        started = start_write(
            revision=fresh,
            seen_path=seen_path,
            message=text,
            typed_slug=typed_slug,
            lift_pin=True,
            confirmed=(RULE,),
            actor=actor,
        )
        if not started.created:
            raise Refused("A file is being written to this host already: wait until that is over.")
        record(actor, "config.rollback", subject=fresh, host_slug=host.slug, reason=text)
        request_plan(host=host, actor=actor)  # what people set is a text of its own again, newer than this one
    return fresh, started


def _copy(host: Host, old: Revision, live: Revision | None, actor: Actor) -> Revision:
    """The old text under the next number, with a stamp of its own."""
    number = (Revision.objects.filter(host=host).aggregate(last=Max("number"))["last"] or 0) + 1
    details = RevisionDetails.objects.filter(revision=old).first()
    keys = with_keys_of_today(old, export_keys(host))  # those of then may be over
    plain, companions = (keys.text, keys.companions) if keys else (unstamped(old.text), companions_of(details))
    text = stamped(plain, host=host.slug, revision=number)
    findings = _findings_today(host, old, text)
    fresh = Revision.objects.create(
        host=host,
        number=number,
        origin=Revision.Origin.ROLLBACK,
        state=Revision.State.BLOCKED
        if any(item["severity"] == BLOCK for item in findings)
        else Revision.State.VALIDATED,
        dialect=old.dialect,
        text=text,
        body_sha256=content_digest(plain, companions),
        sha256=sha256_to_write(text),
        findings=findings,
        summary=old.summary,
        inputs={**old.inputs, "keys": numbers_held(text, companions)},
        parent=live,
        author=actor.user,
        restores=old.number,
    )
    copy_details(old, fresh)
    RevisionDetails.objects.filter(revision=fresh).update(companions=[dict(item) for item in companions])
    return fresh


def _findings_today(host: Host, old: Revision, text: str) -> list[dict[str, Any]]:
    """What the rules say of an old text: asked again only where it was checked by another version."""
    if old.inputs.get("version") == product_version():
        found: list[dict[str, Any]] = old.findings
        return found
    return [asdict(item) for item in BY_SLUG[old.dialect].check(text.encode(), rules_for(host.os_family))]


def write_if_due(host: Host) -> Started | None:
    """Write the newest text where the host's policy is to do that by itself and nothing speaks against it.

    Quick saves are one write: a plan that is still to come is waited for, and so is the rest since the last write.
    """
    with transaction.atomic():
        host = Host.objects.select_for_update().get(pk=host.pk)
        row = Publishing.objects.filter(host=host, policy=Publishing.Policy.AUTOMATIC, pinned=None).first()
        if (
            row is None
            or Job.objects.filter(host=host, kind__in=("plan_host", "publish"), state__in=UNFINISHED).exists()
        ):
            return None
        newest = Revision.objects.filter(host=host).order_by("-number").first()
        if newest is None or newest.state not in WAITING:
            return None
        live = live_revision(host)
        if live is not None and live.body_sha256 == newest.body_sha256:
            return None
        if host.written_at and timezone.now() - host.written_at < REST:
            return None
        held = _why_not(host, newest, live)
        if held != row.held:
            Publishing.objects.filter(pk=row.pk).update(held=held[:500])
        if held:
            return None
        try:
            return queue_write(host=host, revision=newest, message="Written by itself", actor=Actor())
        except Unavailable:  # the next look, some seconds later, tries again
            return None


def _why_not(host: Host, revision: Revision, live: Revision | None) -> str:
    """What keeps a text from being written without a person, in words; "" for nothing."""
    try:
        require_writable(host, revision)
    except SiteError as error:
        return str(error)
    worst = sum(item.get("severity") != "note" for item in revision.findings if isinstance(item, dict))
    if worst:
        return f"Revision {revision.number} has {worst} finding(s) that a person should look at."
    if watch_of(host).has_drifted:
        return "The file there was changed by somebody: a person has to write over what was taken from it."
    blocking = next(iter(blocking_findings(host, revision)), None)
    if blocking is not None:
        return f"{blocking.rule}: {blocking.message}."
    if question := confirming_of(revision).question:
        return f"{RULE}: {question}: a person has to confirm that."
    mass = mass_change_of(live, revision)
    if mass.drops_many:
        return f"Revision {revision.number} would drop {mass.dropped} of {mass.live} models."
    return f"A folder could not be read completely: {mass.roots[0]}" if mass.roots else ""


def write_due() -> None:
    """Look at every host that writes by itself."""
    for host in Host.objects.filter(publishing__policy=Publishing.Policy.AUTOMATIC, publishing__pinned=None):
        write_if_due(host)


def may_approve(revision: Revision, user: Any) -> bool:
    """Somebody else than the person who submitted it."""
    return revision.state == Revision.State.AWAITING and revision.submitted_by_id != user.pk
