"""A router file that is not as we left it, against the text that was written last."""

from __future__ import annotations

from dataclasses import dataclass

from gpus_app.models import Host
from models_app.core.errors import ExportError
from models_app.core.export.revisions.causes import Causes
from models_app.core.export.revisions.compare import compare
from models_app.core.export.revisions.effects import effect_of
from models_app.core.export.revisions.outline import outline_of
from models_app.models import DiskVersion, Revision, Row, TargetWatch
from models_app.selectors.comparing import Comparison, live_revision, watch_of
from quartermaster_site.errors import NotFound


@dataclass(frozen=True, slots=True)
class Drifted:
    """`version` is the text that lies there, where it is kept; `older` is ours that somebody put back."""

    watch: TargetWatch
    live: Revision | None
    version: DiskVersion | None
    older: Revision | None

    @property
    def found_text(self) -> str:
        """What lies there, as far as it is known here."""
        if self.version is not None:
            return self.version.text
        return self.older.text if self.older else ""


def drift_of(host: Host) -> Drifted:
    """The last look at a host's file with the texts that it is about."""
    watch = watch_of(host)
    version = older = None
    if watch.has_drifted and watch.sha256:
        version = DiskVersion.objects.filter(host=host, sha256=watch.sha256).first()
        older = Revision.objects.filter(host=host, sha256=watch.sha256).order_by("-number").first()
    return Drifted(watch, live_revision(host), version, older)


def disk_versions(host: Host) -> list[DiskVersion]:
    """Texts of others that are kept, the newest first, without the texts themselves."""
    return list(DiskVersion.objects.filter(host=host).defer("text"))


def get_disk_version(host: Host, pk: int) -> DiskVersion:
    """One of them; NotFound."""
    row = DiskVersion.objects.filter(host=host, pk=pk).first()
    if row is None:
        raise NotFound("This text is not kept any more.")
    return row


def compare_with_disk(drifted: Drifted, ours: str) -> Comparison | None:
    """From the live text to what lies there, by model; None where a router could not read one of them.

    `ours` is the live text without secrets: what lies there is kept like that, and a masked value is no change.
    """
    live = drifted.live
    if live is None or not drifted.found_text:
        return None
    entries = live.summary.get("entries", [])
    try:
        before, after = (outline_of(live.dialect, text, entries) for text in (ours, drifted.found_text))
    except ExportError:
        return None
    difference = compare(before, after)
    return Comparison(
        before=live,
        after=Revision(host=live.host, dialect=live.dialect, text=drifted.found_text, summary=live.summary),
        difference=difference,
        outline=after,
        effect=effect_of(live.dialect, before, after, difference),
        causes=Causes(),
        changes=[],
        undone=False,
        unread_roots=[],
        rows=dict(Row.objects.filter(host=live.host).order_by().values_list("path", "pk")),
    )
