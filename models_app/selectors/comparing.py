"""Two revisions of a host side by side: what differs, why, what the router does, whether it is a mass change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gpus_app.models import Host
from models_app.core.errors import ExportError
from models_app.core.export.revisions.causes import Causes, Inputs, causes_between, inputs_from_json
from models_app.core.export.revisions.compare import Difference, compare
from models_app.core.export.revisions.effects import Effect, effect_of
from models_app.core.export.revisions.mass_change import MassChange, mass_change
from models_app.core.export.revisions.outline import Outline, outline_from_json, outline_of
from models_app.core.launch.tokens import rules_for
from models_app.models import Change, Publishing, Revision, RevisionDetails, Root, Row, TargetWatch

MOST_CHANGES = 500
UNREAD = (Root.State.MISSING, Root.State.UNREADABLE, Root.State.PARTIAL)


@dataclass(frozen=True, slots=True)
class Comparison:
    """`before` is None where nothing was there. `undone`: `after` is from before the changes of `changes`."""

    before: Revision | None
    after: Revision
    difference: Difference
    outline: Outline
    """Of `after`."""
    effect: Effect
    causes: Causes
    changes: Sequence[Change]
    undone: bool
    unread_roots: Sequence[str]
    rows: Mapping[str, int]
    """Path -> model, for links."""
    outline_before: Outline = field(default_factory=Outline)

    @property
    def mass(self) -> MassChange:
        return mass_change(self.difference, self.unread_roots)


def live_revision(host: Host) -> Revision | None:
    """What Quartermaster wrote to the host last, at the path that is set now."""
    if not host.written_sha256:
        return None
    found = Revision.objects.filter(host=host, state__in=[Revision.State.WRITTEN, Revision.State.WRITING])
    written = found.filter(sha256=host.written_sha256).select_related("host", "author")
    return written.order_by("-number").first()


def compare_revisions(before: Revision | None, after: Revision) -> Comparison:
    """In five queries. Outlines that were not kept are made from the text."""
    wanted = [revision.pk for revision in (before, after) if revision]
    details = {row.revision_id: row for row in RevisionDetails.objects.filter(revision__in=wanted)}
    old = _outline(before, details) if before else Outline()
    new = _outline(after, details)
    difference = compare(old, new)
    inputs = [_inputs(details.get(revision.pk) if revision else None) for revision in (before, after)]
    changes, undone = _changes(after.host, *inputs)
    return Comparison(
        before=before,
        after=after,
        difference=difference,
        outline=new,
        effect=effect_of(after.dialect, old, new, difference),
        causes=causes_between(*inputs),
        changes=changes,
        undone=undone,
        unread_roots=unread_roots(after.host),
        rows=dict(Row.objects.filter(host=after.host).order_by().values_list("path", "pk")),
        outline_before=old,
    )


def mass_change_of(before: Revision | None, after: Revision) -> MassChange:
    """V-18 alone, for those who only have to know whether it holds."""
    wanted = [revision.pk for revision in (before, after) if revision]
    details = {row.revision_id: row for row in RevisionDetails.objects.filter(revision__in=wanted)}
    old = _outline(before, details) if before else Outline()
    return mass_change(compare(old, _outline(after, details)), unread_roots(after.host))


def unread_roots(host: Host) -> list[str]:
    """Folders that the last scan could not read, or not completely."""
    return list(Root.objects.filter(host=host, state__in=UNREAD).values_list("path", flat=True))


def _outline(revision: Revision, details: Mapping[int, RevisionDetails]) -> Outline:
    known = details.get(revision.pk)
    if known is not None:
        return outline_from_json(known.outline)
    try:
        rules = rules_for(revision.host.os_family)
        return outline_of(revision.dialect, revision.text, revision.summary.get("entries", []), rules)
    except ExportError:
        return Outline()


def outline_of_revision(revision: Revision) -> Outline:
    """What the text boils down to, as it was kept with it or else from the text."""
    details = RevisionDetails.objects.filter(revision=revision).first()
    return _outline(revision, {revision.pk: details} if details else {})


def _inputs(details: RevisionDetails | None) -> Inputs:
    return inputs_from_json(details.inputs) if details and details.inputs else Inputs()


def _changes(host: Host, before: Inputs, after: Inputs) -> tuple[Sequence[Change], bool]:
    """Saves of what is pinned that one text saw and the other did not, the newest first."""
    if not before.is_known or not after.is_known:
        return [], False
    low, high = sorted((before.last_change, after.last_change))
    found = Change.objects.filter(host=host, pk__gt=low, pk__lte=high)[:MOST_CHANGES]
    return list(found), after.last_change < before.last_change


def publishing_of(host: Host) -> Publishing:
    """The host's way to its file; one with the defaults, not stored, where nobody set anything."""
    found = Publishing.objects.filter(host=host).select_related("pinned").first()
    return found or Publishing(host=host)


def watch_of(host: Host) -> TargetWatch:
    """The last look at the path that is set now; an unsaved one where nobody looked there yet."""
    found = TargetWatch.objects.filter(host=host, path=host.publish_path).first() if host.publish_path else None
    return found or TargetWatch(host=host)


def seen_on_host(host: Host, watch: TargetWatch) -> tuple[str, Revision | None] | None:
    """(hash, the revision with it) of the file as the host last found it; None where it never looked."""
    if watch.looked_at is None:
        return None
    if not watch.sha256:
        return "", None
    found = Revision.objects.filter(host=host, sha256=watch.sha256).defer("text", "summary", "inputs")
    return watch.sha256, found.order_by("-number").first()
