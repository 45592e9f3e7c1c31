"""Slots, micro-batch and batch of a launch (sizing.md 6.1 and 7.3, launch.md 3.1)."""

from __future__ import annotations

MAX_SLOTS = 8
LONG_WINDOW_TOKENS = 65536
"""From here on a profile counts as long."""

DENSE_UBATCH = 512
MOE_UBATCH = 1024
"""Raising it past 512 is flat for a resident dense model, but pays for experts in RAM (sizing.md 6.1)."""

DEFAULT_BATCH = 2048
SMALL_BUDGET_GIB = 12.0


def slot_count(*wishes: int | None) -> int:
    """The value of `--parallel`: the first wish above zero (the most special one comes first), 1 to 8.

    Sizing and emission both call this, so that the pool that was planned is the pool that is launched.
    """
    for wish in wishes:
        if wish is not None and wish > 0:
            return min(wish, MAX_SLOTS)
    return 1


def is_long(ctx_tokens: int, marked_long: bool = False) -> bool:
    """Is this a long profile? Either it was marked so, or its window says it."""
    return marked_long or ctx_tokens >= LONG_WINDOW_TOKENS


def effective_ubatch(
    is_moe: bool, long: bool, target_gib: float, override_ubatch: int = 0, profile_ubatch: int = 0
) -> int:
    """The value of `-ub`. `target_gib` is the budget of the whole machine, 0 when it is not known."""
    if profile_ubatch > 0:
        return profile_ubatch
    if override_ubatch > 0:
        return override_ubatch
    if long and 0 < target_gib < SMALL_BUDGET_GIB:
        return DENSE_UBATCH
    return MOE_UBATCH if is_moe else DENSE_UBATCH


def effective_batch(ubatch: int, slot_ctx_tokens: int) -> int:
    """The value of `-b`: 2048, raised to the micro-batch, then lowered to the window of one slot."""
    return min(max(DEFAULT_BATCH, ubatch), slot_ctx_tokens)
