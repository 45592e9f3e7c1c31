"""How far a window may be stretched by RoPE scaling (sizing.md 7.4)."""

from __future__ import annotations

import math

DEFAULT_NATIVE_TOKENS = 32768
"""Trained window of a header that names none."""

MAX_FACTOR = 8
STRETCHING = ("linear", "yarn")
"""Values of `--rope-scaling` that lengthen the window."""


def native_window(trained_tokens: int) -> int:
    """The window the model was trained for."""
    return trained_tokens if trained_tokens > 0 else DEFAULT_NATIVE_TOKENS


def stretches(scaling: str) -> bool:
    return scaling.strip().lower() in STRETCHING


def rope_ceiling(scaling: str, requested_tokens: int, trained_tokens: int) -> int:
    """The largest window a plan may choose; beyond the trained one only where scaling is on and asked for."""
    native = native_window(trained_tokens)
    if stretches(scaling) and requested_tokens > native:
        return min(requested_tokens, MAX_FACTOR * native)
    return native


def rope_factor(ctx_tokens: int, trained_tokens: int) -> float:
    """The stretch a window needs, in steps of 0.5 up to 8; 0 where it needs none."""
    native = native_window(trained_tokens)
    if ctx_tokens <= native:
        return 0.0
    return min(float(MAX_FACTOR), math.ceil(ctx_tokens / native * 2) / 2)


def rope_scale(scaling: str, ctx_tokens: int, trained_tokens: int, explicit: float = 0.0) -> float | None:
    """The value of `--rope-scale`, None where the flag is not emitted. An explicit factor wins."""
    if explicit > 0:
        return explicit
    factor = rope_factor(ctx_tokens, trained_tokens) if stretches(scaling) else 0.0
    return factor if factor > 0 else None
