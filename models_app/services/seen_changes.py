"""Nobody has a change written that is hidden from them (web.md 7.3, case 8)."""

from __future__ import annotations

from gpus_app.models import Host
from models_app.models import Revision
from models_app.selectors.comparing import compare_revisions, live_revision, outline_of_revision
from models_app.selectors.drift import compare_with_disk, drift_of
from models_app.selectors.entry_sight import EntrySight, note_entries, seen_part
from models_app.services.drift import storable_text
from quartermaster_site.access.audit import Actor
from quartermaster_site.errors import NotAllowed
from quartermaster_site.figures import counted


def unseen_text(count: int) -> str:
    """`1 change you cannot see`."""
    return f"{counted(count, 'change')} you cannot see"


def require_seen(*, host: Host, text: Revision, actor: Actor) -> None:
    """Raise NotAllowed where a change from what is live to this text is hidden from a person.

    Who acts for nobody, as the clock and the command line do, is asked nothing.
    """
    if actor.user is None:
        return
    sight = EntrySight(actor.user, host)
    if not sight.whole:
        _refuse(seen_part(compare_revisions(live_revision(host), text), sight).unseen)


def require_drift_seen(*, host: Host, live: Revision, actor: Actor) -> None:
    """The same for the live text over what lies on the host; where these cannot be compared, for all of the text."""
    if actor.user is None:
        return
    sight = EntrySight(actor.user, host)
    if sight.whole:
        return
    comparison = compare_with_disk(drift_of(host), storable_text(host, live.text))
    if comparison is not None:
        _refuse(seen_part(comparison, sight).unseen)
    else:
        _refuse(note_entries(outline_of_revision(live), sight))


def _refuse(unseen: int) -> None:
    if unseen:
        raise NotAllowed(f"{unseen_text(unseen)}: somebody who sees all of this host can have it written.")
