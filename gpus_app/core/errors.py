"""The one base of every error that a person is meant to read."""

from __future__ import annotations


class QuartermasterError(Exception):
    """An expected failure. `str(error)` is a sentence a user can act on, `advice` what to do about it."""

    advice = ""


class UsageError(QuartermasterError):
    """The request itself makes no sense (unknown option, impossible combination); exit code 2."""
