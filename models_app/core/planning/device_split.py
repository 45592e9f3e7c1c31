"""Shares of several devices, as numbers of layers and as the ratio that llama.cpp turns into exactly those.

Units are the layers that go to a GPU, the output counted as the last of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import accumulate

from models_app.core.planning.weight_placement import split_units

DeviceFits = Callable[[tuple[int, ...], int], bool]
"""Does this device fit when the layers are counted out like this?"""

_DIGITS = (2, 3, 4, 6)


def shares_of(counts: Sequence[int]) -> tuple[float, ...]:
    """The ratio with the fewest decimals that gives every device its number of layers."""
    units = sum(counts)
    if units == 0:
        return (1.0,) * len(counts)
    for digits in _DIGITS:
        scale = 10**digits
        limits = [done * scale // units for done in accumulate(counts)]
        shares = tuple((limit - before) / scale for before, limit in zip([0, *limits], limits, strict=False))
        if counts_of(shares, units) == tuple(counts):
            return shares
    return tuple(float(count) for count in counts)


def counts_of(shares: tuple[float, ...], units: int) -> tuple[int, ...]:
    """How many of so many layers each device gets under a ratio."""
    return tuple(end - start for start, end in split_units(max(0, units - 1), None, shares).ranges)


def proportional(weights: Sequence[int], units: int) -> tuple[int, ...]:
    """Layers by weight, rounded along the running sum so that nothing is lost."""
    total = sum(weights)
    if total <= 0:
        return (units, *(0,) * (len(weights) - 1))
    limits = [round(done * units / total) for done in accumulate(weights)]
    return tuple(limit - before for before, limit in zip([0, *limits], limits, strict=False))


def filled_in_order(devices: int, units: int, fits: DeviceFits, guess: tuple[int, ...] = ()) -> tuple[int, ...] | None:
    """Each device in turn takes as many layers as it can hold; None when some are left over.

    What a device holds depends on its own range alone, so this finds a distribution whenever there is one. A good
    guess saves trials.
    """
    counts: tuple[int, ...] = ()
    for device in range(devices - 1):
        left = units - sum(counts)
        likely = guess[device] if len(guess) == devices else left // (devices - device)
        taken = _largest(left, min(likely, left), partial(_holds, fits, counts, left, devices))
        counts = (*counts, taken)
    counts = (*counts, units - sum(counts))
    return counts if fits(counts, devices - 1) else None


def _holds(fits: DeviceFits, done: tuple[int, ...], left: int, devices: int, count: int) -> bool:
    """Does the next device hold so many layers? What is left lies on the last one meanwhile."""
    between = (0,) * (devices - len(done) - 2)
    return fits((*done, count, *between, left - count), len(done))


def _largest(most: int, likely: int, holds: Callable[[int], bool]) -> int:
    """The largest count that still holds, looked for around a likely one; holding is monotone, and 0 holds."""
    low, high, stride = 0, most + 1, 1
    probe = likely
    while low < probe < high:
        if holds(probe):
            low, probe = probe, probe + stride
        else:
            high, probe = probe, probe - stride
        stride *= 2
    while low + 1 < high:
        middle = (low + high) // 2
        if holds(middle):
            low = middle
        else:
            high = middle
    return low
