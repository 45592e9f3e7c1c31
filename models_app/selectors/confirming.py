"""What of a text still has to be confirmed before it is written (V-08)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import chain

from models_app.core.export.confirming import Doubts, confirm_findings, doubts_of, unconfirmed
from models_app.core.export.findings import CheckFinding
from models_app.core.export.revisions.outline import Outline
from models_app.models import Revision
from models_app.selectors.comparing import live_revision, outline_of_revision


@dataclass(frozen=True, slots=True)
class Confirming:
    """Doubtful flags of a text, and those of them that nobody confirmed yet."""

    doubts: Doubts = field(default_factory=dict)
    left: Doubts = field(default_factory=dict)

    @property
    def question(self) -> str:
        """What has to be confirmed, in words; "" for nothing."""
        return next((item.message for item in confirm_findings(self.left, self.left)), "")

    def findings(self, sees: Callable[[str], bool] = lambda name: True) -> list[CheckFinding]:
        """V-08 about the models that a person sees."""
        doubts, left = ({name: flags[name] for name in flags if sees(name)} for flags in (self.doubts, self.left))
        return list(confirm_findings(doubts, left))


def confirming_of(revision: Revision, outline: Outline | None = None, standing: Outline | None = None) -> Confirming:
    """What is live, or was confirmed once, is not asked again. No query where no flag of the text is doubtful.

    `outline` is of the text, `standing` of the live one, where they are known.
    """
    entries = [item for item in revision.summary.get("entries", []) if item.get("doubtful")]
    if not entries:
        return Confirming()
    doubts = doubts_of(outline or outline_of_revision(revision), entries)
    kept = Revision.objects.filter(host=revision.host).exclude(confirmed=[]).values_list("confirmed", flat=True)
    if standing is None:
        live = live_revision(revision.host)
        standing = outline_of_revision(live) if live else Outline()
    return Confirming(doubts, unconfirmed(doubts, standing, chain(revision.confirmed, *kept)))
