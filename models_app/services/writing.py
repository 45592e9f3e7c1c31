"""Writing a revision's text to its host, and noting what became of it."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django.db import transaction
from django.utils import timezone

from gpus_app.models import Host
from models_app.core.export.confirming import RULE, record_of
from models_app.core.export.revisions.mass_change import MASS_CHANGE
from models_app.models import Publishing, Revision, RevisionDetails
from models_app.selectors.comparing import live_revision, mass_change_of, publishing_of, watch_of
from models_app.selectors.confirming import confirming_of
from models_app.selectors.entry_sight import EntrySight
from models_app.selectors.host_findings import adapters_to_check, blocking_findings, files_to_check
from models_app.services.drift import forget_question, note_ours, require_undrifted
from models_app.services.key_export import companions_of
from models_app.services.routers import reload_inputs
from models_app.services.seen_changes import require_seen
from quartermaster_site.access.audit import Actor, record
from quartermaster_site.access.models import AuditEntry
from quartermaster_site.access.permissions import Level, may, require
from quartermaster_site.errors import EditConflict, NotAllowed, Refused
from quartermaster_site.jobs.models import Job
from quartermaster_site.jobs.services import Started, start_job

MOST_MESSAGE = 500


def start_write(
    *,
    revision: Revision,
    replace: bool = False,
    seen_path: str | None = None,
    message: str = "",
    typed_slug: str = "",
    lift_pin: bool = False,
    confirmed: Collection[str] = (),
    actor: Actor,
) -> Started:
    """Hand the text, its hash and what the file must look like now to the host.

    `replace`: a person allows whatever lies there to be replaced (after a backup), for this write alone. `seen_path`
    is the path that was shown to the person who asked; EditConflict when the target is another one by now, or the text
    is no longer the newest. `typed_slug` confirms a mass change (V-18), `lift_pin` gives a pinned host free.
    `confirmed` are the rules that somebody ticked (V-08).
    """
    require(actor.user, Level.MANAGE if replace else Level.OPERATE, revision.host)
    message = checked_message(message)
    with transaction.atomic():
        host = Host.objects.select_for_update().get(pk=revision.host_id)
        revision = Revision.objects.select_for_update().get(pk=revision.pk)
        require_writable(host, revision, seen_path)
        require_seen(host=host, text=revision, actor=actor)
        publishing = publishing_of(host)
        if publishing.pinned and publishing.pinned != revision and not lift_pin:
            raise Refused(f"{host} is pinned to revision {publishing.pinned.number}: lift the pin first.")
        if publishing.policy == Publishing.Policy.APPROVAL and revision.sha256 != host.written_sha256:
            _approve(revision, actor)
        require_ticked(revision, confirmed, actor)
        _require_confirmed(host, revision, typed_slug, actor)
        _require_host_agrees(host, revision, actor)
        return queue_write(host=host, revision=revision, replace=replace, message=message, actor=actor)


def _require_host_agrees(host: Host, revision: Revision, actor: Actor) -> None:
    """The rules that need the host. Whether a file of others lies there now (V-13) only the host can say."""
    first = next((item for item in blocking_findings(host, revision) if item.rule != "V-13"), None)
    if first is not None:
        raise Refused(EntrySight(actor.user, host).shown(f"{first.rule}: {first.message}."))


def checked_message(text: str) -> str:
    """What a person says about a text, as it is stored. Raises Refused."""
    text = " ".join(text.split())
    if len(text) > MOST_MESSAGE:
        raise Refused(f"A message has at most {MOST_MESSAGE} characters; this one has {len(text)}.")
    return text


def require_writable(host: Host, revision: Revision, seen_path: str | None = None) -> None:
    """The target is the one that was seen, nothing blocks the text, and no newer one says something else."""
    if not host.publish_path:
        raise Refused("This host has no target yet: set the path of the router's file first.")
    if seen_path is not None and seen_path != host.publish_path:
        raise _moved(host)
    require_undrifted(host)
    if revision.state == Revision.State.BLOCKED:
        raise Refused("This text has findings that block it. Correct them, then plan again.")
    newer = Revision.objects.filter(host=host, number__gt=revision.number).exclude(body_sha256=revision.body_sha256)
    newest = newer.order_by("-number").values_list("number", flat=True).first()
    waits = revision.origin == Revision.Origin.ROLLBACK and revision.written_at is None  # meant to be older
    if newest and not waits and revision.sha256 != host.written_sha256:
        message = f"Changed since you reviewed: revision {newest} is newer. Look at it, then write that one."
        raise EditConflict(message, saved={"number": newest}, version=newest)


def _moved(host: Host) -> EditConflict:
    message = f"The target was changed meanwhile: it is {host.publish_path} now. Look at it, then write again."
    return EditConflict(message, saved={"publish_path": host.publish_path}, version=0)


def _approve(revision: Revision, actor: Actor) -> None:
    """The second person. Who asked for a text cannot be the one who agrees."""
    if revision.state != Revision.State.AWAITING:
        raise Refused("On this host a second person agrees before a text is written: submit it for approval.")
    if revision.submitted_by_id == getattr(actor.user, "pk", None):
        raise NotAllowed("You submitted this text: somebody else has to approve it.")
    revision.approved_by = actor.user
    revision.save(update_fields=["approved_by"])


def _require_confirmed(host: Host, revision: Revision, typed_slug: str, actor: Actor) -> None:
    """V-18: a file that drops many models, or that was made while a folder was away."""
    if not mass_change_of(live_revision(host), revision).holds:
        return
    if not may(actor.user, Level.MANAGE):
        raise NotAllowed("This text drops many models, or a folder is away: an administrator can have it written.")
    if typed_slug.strip() != host.slug:
        text = f"Type {host.slug} to confirm: this text drops many models, or a folder is away."
        raise Refused(text, fields={"slug": text})
    _keep_confirmed(revision, {"rule": MASS_CHANGE}, actor)


def require_ticked(revision: Revision, confirmed: Collection[str], actor: Actor) -> None:
    """V-08: flags that somebody has to confirm, unless that was done before. Keeps who did it with the text."""
    confirming = confirming_of(revision)
    if not confirming.left:
        return
    if RULE not in confirmed:
        text = f"Confirm {RULE} first: {confirming.question}."
        raise Refused(EntrySight(actor.user, revision.host).shown(text), fields={"confirm": f"Tick {RULE}."})
    _keep_confirmed(revision, record_of(confirming.left), actor)
    record(
        actor, "config.confirm", subject=revision, host_slug=revision.host.slug, reason=f"{RULE}: {confirming.question}"
    )


def _keep_confirmed(revision: Revision, what: dict[str, Any], actor: Actor) -> None:
    revision.confirmed = [*revision.confirmed, {**what, "by": actor.name}]
    revision.save(update_fields=["confirmed"])


def queue_write(
    *,
    host: Host,
    revision: Revision,
    replace: bool = False,
    expected_sha256: str | None = None,
    checks_files: bool = True,
    message: str = "",
    actor: Actor,
) -> Started:
    """The job itself, everything having been checked. Runs in the caller's transaction.

    `expected_sha256` is of the bytes that may be replaced; None for those that were written last, or that somebody has
    taken over. `checks_files`: the host looks whether every file that the text names is there.
    """
    inputs: dict[str, Any] = {
        "path": host.publish_path,
        "text": revision.text,
        "sha256": revision.sha256,
        "expected_sha256": _replaceable(host) if expected_sha256 is None else expected_sha256,
        "adopt": replace,
        "keep_backups": publishing_of(host).keep_backups,
    }
    if beside := companions_of(RevisionDetails.objects.filter(revision=revision).first()):
        inputs["companions"] = beside
    if adapters := adapters_to_check(host, revision):
        inputs["adapters"] = adapters
    if checks_files:
        inputs["must_exist"] = files_to_check(host, revision)
    if router := reload_inputs(host):
        inputs["router"] = router
    subject = ("revision", str(revision.pk), f"revision {revision.number}")
    started = start_job(kind="publish", host=host, inputs=inputs, subject=subject, actor=actor)
    if started.created:
        forget_question(host)
        changed = {"state": Revision.State.WRITING, "state_reason": ""} | ({"message": message} if message else {})
        Revision.objects.filter(pk=revision.pk).update(**changed)
        changes: dict[str, list[Any]] = {"replace": [False, True]} if replace else {}
        record(actor, "config.write", subject=revision, host_slug=host.slug, changes=changes, reason=message)
    return started


def _replaceable(host: Host) -> str:
    watch = watch_of(host)
    return watch.sha256 if watch.is_taken else host.written_sha256


def note_written(*, job: Job, path: str, sha256: str) -> None:
    """The host wrote the text: from now on a file that differs is drift."""
    revision = _revision_of(job)
    if revision is None:
        return
    if sha256 != revision.sha256:
        note_failed(job=job, reason="the host reports another text than the one it was handed")
        return
    take_as_written(revision, path=path, by=job.started_by)


def take_as_written(revision: Revision, *, path: str, by: Any = None) -> None:
    """This text is on the host. A rollback pins the host to it, any other text lifts a pin."""
    now = timezone.now()
    host = revision.host
    earlier = Revision.objects.filter(host=host, state=Revision.State.WRITTEN).exclude(pk=revision.pk)
    earlier.update(state=Revision.State.SUPERSEDED)
    rollback, keys_only = (revision.origin == origin for origin in (Revision.Origin.ROLLBACK, Revision.Origin.KEYS))
    Revision.objects.filter(pk=revision.pk).update(
        state=Revision.State.WRITTEN,
        origin=revision.origin if rollback or keys_only else Revision.Origin.PUBLISH,
        state_reason="",
        written_at=now,
        written_path=path,
        author=by,
    )
    Host.objects.filter(pk=host.pk).update(written_sha256=revision.sha256, written_at=now)
    pin = {"pinned": revision, "pinned_by": by.get_username() if by else "", "pinned_at": now} if rollback else NO_PIN
    if revision.sha256 == host.written_sha256:  # the same bytes again, over what somebody else had put there
        pin = {}
    if keys_only:  # the text that is pinned, with other keys
        pin = {"pinned": revision} if publishing_of(host).pinned else {}
    Publishing.objects.update_or_create(host=host, defaults={**pin, "held": ""})
    note_ours(host, revision.sha256)
    record(Actor(name=f"worker of {host.slug}"), "config.written", subject=revision, host_slug=host.slug)


NO_PIN: dict[str, Any] = {"pinned": None, "pinned_by": "", "pinned_at": None}


def note_failed(*, job: Job, reason: str) -> None:
    """Nothing was written, or it is not known: the text stays a candidate, or what was written last, as it was."""
    revision = _revision_of(job)
    if revision is None:
        return
    was_written = revision.sha256 == revision.host.written_sha256
    state = Revision.State.WRITTEN if was_written else Revision.State.FAILED
    Revision.objects.filter(pk=revision.pk).update(state=state, state_reason=reason[:500])
    worker = Actor(name=f"worker of {revision.host.slug}")
    failed = AuditEntry.Result.FAILED
    record(worker, "config.write", subject=revision, host_slug=revision.host.slug, result=failed, reason=reason)


def _revision_of(job: Job) -> Revision | None:
    if not job.object_id.isdigit():
        return None
    return Revision.objects.select_related("host").filter(pk=job.object_id, host=job.host).first()
