"""Context checkpoints: how many, how far apart (sizing.md 5, launch.md 3.5)."""

from __future__ import annotations

from dataclasses import dataclass

SERVER_COUNT = 32
SERVER_SPACING = 8192
"""What llama-server itself does; a command line without the flags is charged for these."""

RECURRENT_COUNT = 2
DEFAULT_COUNT = 3
WINDOW_SPACING = 1024
DEFAULT_SPACING = 256


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """`--ctx-checkpoints` and `-cms` (tokens); the spacing is emitted only when the count is above zero."""

    count: int
    spacing: int


def checkpoint_defaults(recurrent: bool, sliding: bool) -> Checkpoints:
    """`sliding`: part of the cache does not grow with the window, and the model is not recurrent."""
    count = RECURRENT_COUNT if recurrent else DEFAULT_COUNT
    return Checkpoints(count, WINDOW_SPACING if sliding and not recurrent else DEFAULT_SPACING)


def resolve_checkpoints(recurrent: bool, sliding: bool, count: int | None, *spacings: int | None) -> Checkpoints:
    """Explicit values win (a count of 0 switches checkpoints off); the first spacing above zero counts."""
    default = checkpoint_defaults(recurrent, sliding)
    spacing = next((value for value in spacings if value is not None and value > 0), default.spacing)
    return Checkpoints(default.count if count is None else max(0, count), spacing)
