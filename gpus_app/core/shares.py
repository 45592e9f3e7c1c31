"""A number of bytes shared among devices."""

from __future__ import annotations

from collections.abc import Sequence


def shared(target_bytes: int, weights: Sequence[int], limits: Sequence[int]) -> tuple[int, ...]:
    """The target by weight, no share above its limit."""
    shares = [0] * len(weights)
    open_ends = [position for position, weight in enumerate(weights) if weight > 0]
    left = target_bytes
    while open_ends:
        total = sum(weights[position] for position in open_ends)
        wanted = {position: left * weights[position] // total for position in open_ends}
        full = [position for position in open_ends if wanted[position] >= limits[position]]
        for position in full or open_ends:
            shares[position] = min(wanted[position], limits[position])
        left -= sum(shares[position] for position in full)
        open_ends = [position for position in open_ends if full and position not in full]
    return tuple(shares)


def in_order(target_bytes: int, weights: Sequence[int], least: Sequence[int], ranks: Sequence[int]) -> tuple[int, ...]:
    """The least for each, and the rest up to their weights, those of a lower rank first."""
    shares = list(least)
    left = target_bytes - sum(least)
    for rank in sorted(set(ranks)):
        more = [weight - held if own == rank else 0 for weight, held, own in zip(weights, least, ranks, strict=True)]
        given = shared(min(left, sum(more)), more, more)
        shares = [held + size for held, size in zip(shares, given, strict=True)]
        left -= sum(given)
    return tuple(shares)
