"""Expected failures of the site. The middleware turns each into a status page, or a fragment for htmx."""

from __future__ import annotations

from typing import Any

from gpus_app.core.errors import QuartermasterError

__all__ = [
    "Busy",
    "EditConflict",
    "Gone",
    "NotAllowed",
    "NotFound",
    "QuartermasterError",
    "Refused",
    "SiteError",
    "Unavailable",
    "Withheld",
]


class SiteError(QuartermasterError):
    """Has a status and a title; `str(error)` is the sentence under it."""

    status = 400
    title = "This request cannot be used"


class Refused(SiteError):
    """A value that cannot be taken: `fields` maps a form field to its message, "" for the form as a whole."""

    status = 422
    title = "Please correct this"

    def __init__(self, message: str, *, fields: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.fields = fields or {"": message}


class Withheld(Refused):
    """A value that is kept from this person, not from everybody: the audit log hears of it."""


class NotAllowed(SiteError):
    status = 403
    title = "Not allowed"


class NotFound(SiteError):
    status = 404
    title = "Not found"


class Gone(SiteError):
    """What somebody holds was good once, and never will be again."""

    status = 410
    title = "Not valid any more"


class EditConflict(SiteError):
    """Somebody else saved meanwhile. `saved` is their version, `by` and `at` say who and when."""

    status = 409
    title = "Changed meanwhile"

    def __init__(self, message: str, *, saved: dict[str, Any], version: int, by: str = "", at: Any = None) -> None:
        super().__init__(message)
        self.saved = saved
        self.version = version
        self.by = by
        self.at = at


class Busy(SiteError):
    """Too many requests; `wait_seconds` says when to try again."""

    status = 429
    title = "Too many requests"

    def __init__(self, message: str, *, wait_seconds: int) -> None:
        super().__init__(message)
        self.wait_seconds = wait_seconds


class Unavailable(SiteError):
    """A part that is needed is down (broker, worker, database); the sentence says what still works."""

    status = 503
    title = "Not available right now"
