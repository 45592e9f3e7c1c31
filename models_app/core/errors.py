"""Errors of the models core. Codes are stable and tested; messages are for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpus_app.core.errors import QuartermasterError, UsageError

if TYPE_CHECKING:
    from models_app.core.catalog import Header

TRANSIENT = ("unreadable", "changed")
"""Codes of errors that may be gone the next time although the file is as it was: they say nothing about its content."""

__all__ = [
    "TRANSIENT",
    "ExportError",
    "HeaderError",
    "LaunchError",
    "MalformedHeader",
    "NotThisFormat",
    "PlanError",
    "QuartermasterError",
    "RecordError",
    "SettingsError",
    "SourceUnreadable",
    "TruncatedHeader",
    "UnsupportedVersion",
    "UsageError",
    "VerifyError",
]


class HeaderError(QuartermasterError):
    """A file whose header cannot be used (headers.md 15).

    `offset` is the absolute byte at which reading stopped; `path` is filled in by whoever opened the file.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        offset: int = 0,
        path: str = "",
        hint: str = "",
        version: int | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.offset = offset
        self.path = path
        self.hint = hint
        self.version = version

    def __str__(self) -> str:
        where = f"{self.path}: " if self.path else ""
        return f"{where}{self.message} (at byte {self.offset:,})"


class SourceUnreadable(HeaderError):
    """Missing, a folder, no permission, or not a regular file."""


class NotThisFormat(HeaderError):
    """Another kind of file, or an empty one."""


class UnsupportedVersion(HeaderError):
    """A real file of this format that no engine here can load."""


class TruncatedHeader(HeaderError):
    """The bytes ran out. `need` is the absolute offset that must be readable to go on."""

    def __init__(
        self,
        message: str,
        *,
        offset: int,
        need: int,
        retryable: bool,
        partial: Header | None = None,
        path: str = "",
    ) -> None:
        super().__init__("truncated", message, offset=offset, path=path)
        self.need = need
        self.retryable = retryable
        self.partial = partial


class MalformedHeader(HeaderError):
    """Corrupt or hostile content."""


class SettingsError(QuartermasterError):
    """A settings or override document with a value of the wrong kind; the message names the key."""


class RecordError(QuartermasterError, ValueError):
    """A stored or transmitted record that was not written by this program, or not by this version."""


class PlanError(QuartermasterError):
    """A model that cannot be planned, with the reason."""


class LaunchError(QuartermasterError):
    """A launch text or command that cannot be taken apart or put together."""


class ExportError(QuartermasterError):
    """A document that must not be written, with the finding that forbids it."""


class VerifyError(QuartermasterError):
    """A plan that could not be compared with llama.cpp. `code` is stable, the message a sentence."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
