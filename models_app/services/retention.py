"""How many texts of a host are kept, here and as backups beside its file."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import pairwise

from django.db import transaction
from django.utils import timezone

from gpus_app.models import Host
from models_app.models import Publishing, Revision
from models_app.publish_rows import LEAST_BACKUPS, LEAST_REVISIONS, MOST_BACKUPS, MOST_REVISIONS
from models_app.selectors.comparing import live_revision, publishing_of
from quartermaster_site.access.audit import Actor, record
from quartermaster_site.access.permissions import Level, require
from quartermaster_site.errors import Refused

LONG = timedelta(hours=24)
"""A text that was live for longer is kept for a year."""
YEAR = timedelta(days=365)
UNFINISHED = (Revision.State.WRITING, Revision.State.AWAITING)
_BATCH = 100


def save_keeping(*, host: Host, revisions: int, backups: int, actor: Actor) -> Publishing:
    """How many of each are kept. Raises Refused with a message per field."""
    require(actor.user, Level.MANAGE)
    problems = {}
    if not LEAST_REVISIONS <= revisions <= MOST_REVISIONS:
        problems["revisions"] = f"Between {LEAST_REVISIONS} and {MOST_REVISIONS:,} revisions."
    if not LEAST_BACKUPS <= backups <= MOST_BACKUPS:
        problems["backups"] = f"Between {LEAST_BACKUPS} and {MOST_BACKUPS} backups."
    if problems:
        raise Refused(" ".join(problems.values()), fields=problems)
    with transaction.atomic():
        row, _ = Publishing.objects.select_for_update().get_or_create(host=host)
        pairs = {"revisions": [row.keep_revisions, revisions], "backups": [row.keep_backups, backups]}
        changes = {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
        if changes:
            row.keep_revisions, row.keep_backups = revisions, backups
            row.save(update_fields=["keep_revisions", "keep_backups"])
            record(actor, "config.keeping", subject=host, host_slug=host.slug, changes=changes)
    return row


def prune_revisions(host: Host) -> int:
    """Forget old texts; how many. Numbers are never used again."""
    keep = publishing_of(host).keep_revisions
    numbers = Revision.objects.filter(host=host).order_by("-number").values_list("number", flat=True)
    oldest = list(numbers[keep - 1 : keep])
    if not oldest:
        return 0
    spared = _spared(host, timezone.now())
    old = Revision.objects.filter(host=host, number__lt=oldest[0]).exclude(state__in=UNFINISHED)
    gone = [pk for pk in old.values_list("pk", flat=True) if pk not in spared]
    for start in range(0, len(gone), _BATCH):
        Revision.objects.filter(pk__in=gone[start : start + _BATCH]).delete()
    if gone:
        record(Actor(), "config.purge", subject=host, host_slug=host.slug, changes={"revisions": [len(gone), 0]})
    return len(gone)


def _spared(host: Host, now: datetime) -> set[int]:
    """What is live or pinned, and what was live for more than a day within the last year."""
    live, pinned = live_revision(host), publishing_of(host).pinned_id
    written = Revision.objects.filter(host=host, written_at__isnull=False).order_by("written_at", "number")
    times = [(pk, at) for pk, at in written.values_list("pk", "written_at") if at is not None]
    spans = pairwise([*times, (0, now)])
    long = {pk for (pk, start), (_, end) in spans if end - start > LONG and now - end < YEAR}
    return long | ({live.pk} if live else set()) | ({pinned} if pinned else set())
