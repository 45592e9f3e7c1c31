"""The addends behind the figures of a plan, place by place: what is read, and what is multiplied with what.

They repeat the sums of `projection`, `context` and `compute` in a form that people can check by hand; the tests hold
every one of them against the figure that it explains.
"""

from __future__ import annotations

from collections.abc import Iterator

from models_app.core.catalog import TermPart
from models_app.core.planning.context import STATE_ELEMENT_BYTES, cache_bytes
from models_app.core.planning.graph_sizes import working_bytes
from models_app.core.planning.kv_types import element_bytes
from models_app.core.planning.launched import PIPELINE_COPIES, Launched, Stage
from models_app.core.planning.model_facts import Sums

Factor = tuple[float, str]
Place = int | None


def weight_parts(run: Launched, stages: list[Stage]) -> Iterator[TermPart]:
    """Tensors by what decides their place; all that is not zero."""
    table, sums, parts = run.table, run.table.sums, run.table.globals
    for device, stage in enumerate(stages):
        start, end = stage.start, stage.end
        own = min(max(start, run.cpu_moe_blocks), end)
        yield from _blocks(run, device, (start, end), (own, end))
        yield from _named(device, ("tensors before the first block", parts.first_block * (start == 0 < end)))
        yield from _named(device, ("output", parts.output * stage.has_output))
        yield from _named(device, ("token embedding once more, as the output", parts.tied * stage.has_output))
        yield from _named(device, ("RoPE factors", parts.rope * (sums.reads_rope[end] > sums.reads_rope[start])))
    blocks = run.host_blocks
    yield from _named(None, ("token embedding and other tables", parts.host))
    yield from _blocks(run, None, (0, blocks), (0, max(blocks, run.cpu_moe_blocks)))
    yield from _named(None, ("tensors before the first block", parts.first_block * (blocks > 0)))
    tied = parts.tied if table.rules.tied_on_host else 0
    yield from _named(None, ("output", (parts.output + tied) * run.host_has_output))
    yield from _named(None, ("RoPE factors", parts.rope * (sums.reads_rope[blocks] > 0)))


def _blocks(run: Launched, place: Place, others: tuple[int, int], experts: tuple[int, int]) -> Iterator[TermPart]:
    sums = run.table.sums
    without = " without experts" if run.table.is_moe else ""
    yield from _named(place, (f"{_range(others)}{without}", _over(sums.other_bytes, *others)))
    yield from _named(place, (f"experts of {_range(experts)}", _over(sums.expert_bytes, *experts)))


def _named(place: Place, part: tuple[str, int]) -> Iterator[TermPart]:
    label, size_bytes = part
    if size_bytes:
        yield TermPart(place, label, size_bytes)


def _range(blocks: tuple[int, int]) -> str:
    start, end = blocks
    return f"block {start}" if end - start == 1 else f"blocks {start} to {end - 1}"


def _over(sums: Sums, start: int, end: int) -> int:
    return sums[end] - sums[start]


def context_parts(run: Launched, stages: list[Stage]) -> Iterator[TermPart]:
    """Full caches, sliding caches and recurrent states of every place."""
    if run.launch.kv_offload:
        for device, stage in enumerate(stages):
            yield from _caches(run, device, stage.start, stage.end)
    yield from _caches(run, None, 0, run.host_blocks if run.launch.kv_offload else run.table.trunk)


def _caches(run: Launched, place: Place, start: int, end: int) -> Iterator[TermPart]:
    sums, geo = run.table.sums, run.geo
    for name, cells, keys, values, owns in (
        ("whole window", geo.cells, sums.k_full, sums.v_full, sums.owns_full),
        ("sliding window", geo.window_cells, sums.k_sliding, sums.v_sliding, sums.owns_sliding),
    ):
        layers = _over(owns, start, end)
        widths = {"K": _over(keys, start, end), "V": _over(values, start, end)}
        if not run.launch.flash_attn:
            widths["V"] = layers * run.table.v_width_largest
        yield from _one_cache(run, place, name, cells, layers, widths)
    yield from _states(run, place, start, end)


def _one_cache(
    run: Launched, place: Place, name: str, cells: int, layers: int, widths: dict[str, int]
) -> Iterator[TermPart]:
    """K and V of one kind of layer, together where they are of one type."""
    types = {"K": run.launch.type_k, "V": run.launch.type_v}
    together = types["K"] == types["V"] and widths["K"] and widths["V"]
    groups = [("K and V", types["K"], sum(widths.values()))] if together else [(k, types[k], widths[k]) for k in "KV"]
    for side, kv_type, width in groups:
        if not width:
            continue
        factors: list[Factor] = [(cells, "cells")]
        if run.geo.streams > 1:
            factors.append((run.geo.streams, "slots"))
        factors += [*_per_layer(width, layers), (element_bytes(kv_type), f"bytes of {kv_type}")]
        yield TermPart(place, f"{side}, {name}", cache_bytes(cells * run.geo.streams * width, kv_type), tuple(factors))


def _per_layer(total: int, layers: int) -> list[Factor]:
    """Values per cell: layers times width where all are alike, else their sum."""
    if layers and total % layers == 0:
        return [(layers, "layers" if layers > 1 else "layer"), (total // layers, "values")]
    return [(total, f"values of {layers} layers")]


def _states(run: Launched, place: Place, start: int, end: int) -> Iterator[TermPart]:
    table, launch = run.table, run.launch
    values = _over(table.sums.state_r, start, end) + _over(table.sums.state_s, start, end)
    if not values:
        return
    copies = run.geo.slots * (1 + (launch.rollback_snapshots if table.rolls_back else 0))
    layers = sum(1 for cache in table.caches[start:end] if cache.state_r or cache.state_s)
    factors = [(copies, "states" if copies > 1 else "state"), *_per_layer(values, layers)]
    factors.append((STATE_ELEMENT_BYTES, "bytes"))
    yield TermPart(place, "recurrent state", copies * values * STATE_ELEMENT_BYTES, tuple(factors))


def compute_parts(run: Launched, stages: list[Stage], device_bytes: tuple[int, ...], ram: int) -> Iterator[TermPart]:
    """Masks, the widest step, and what else is there at the peak, from the figures as planned."""
    for device, (stage, total) in enumerate(zip(stages, device_bytes, strict=True)):
        work = working_bytes(run.table, run.sizes, stage.start, stage.end, run.cpu_moe_blocks)
        yield from _peak(run, device, (stage.start, stage.end), work, total)
    yield from _peak(run, None, (0, run.table.trunk), 0, ram)


def _peak(run: Launched, place: Place, blocks: tuple[int, int], work: int, total: int) -> Iterator[TermPart]:
    """Parts that fit under the peak; the rest in one figure, since buffers take each other's room."""
    tokens, found = run.geo.tokens, []
    if total and run.table.rules.has_cache:
        found = [part for part in _masks(run, place, *blocks) if part.size_bytes <= total]
    if work and work % (4 * tokens) == 0:
        factors = ((tokens, "tokens"), (work // (4 * tokens), "values"), (4, "bytes"))
        found.append(TermPart(place, "widest step of a block", work, factors))
    rest = total - sum(part.size_bytes for part in found)
    if rest < 0:
        found, rest = [], total
    yield from found
    yield from _named(place, ("rows between the steps, inputs and results" if found else "largest step", rest))


def _masks(run: Launched, place: Place, start: int, end: int) -> Iterator[TermPart]:
    sums, geo = run.table.sums, run.geo
    each = 2 if run.launch.flash_attn and run.table.rules.flash else 4
    copies = PIPELINE_COPIES if run.pipelined else 1
    for name, uses, cells in (
        ("mask, whole window", sums.uses_full, geo.cells),
        ("mask, sliding window", sums.uses_sliding, geo.window_cells),
    ):
        if uses[end] > uses[start]:
            factors: list[Factor] = [(geo.tokens, "tokens"), (cells, "cells"), (each, "bytes")]
            if copies > 1:
                factors.append((copies, "copies of a pipeline"))
            yield TermPart(place, name, geo.tokens * cells * each * copies, tuple(factors))
