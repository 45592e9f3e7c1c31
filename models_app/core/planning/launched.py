"""A launch taken apart, as the rules of compute buffers need it."""

from __future__ import annotations

from typing import NamedTuple

from models_app.core.catalog import Launch
from models_app.core.planning.block_caches import BlockCache
from models_app.core.planning.context import cache_bytes
from models_app.core.planning.geometry import Geometry
from models_app.core.planning.graph_sizes import GraphSizes
from models_app.core.planning.model_facts import ModelTable

SERVER_OUTPUTS = "server"
"""`outputs` of a launch that returns logits for one row of each slot."""

PIPELINE_COPIES = 4
"""Copies of every input that a pipeline over several devices keeps."""


class Stage(NamedTuple):
    """One device's part of a launch."""

    start: int
    end: int
    """Blocks from `start` up to but not `end`."""
    has_output: bool


class Launched(NamedTuple):
    """A launch taken apart, as the rules below need it."""

    table: ModelTable
    launch: Launch
    geo: Geometry
    sizes: GraphSizes
    host_blocks: int
    """Blocks that lie on the host."""
    host_has_output: bool
    cpu_moe_blocks: int
    """Blocks below this one have their experts on the host; 0 when no expert is moved by that."""
    pipelined: bool


def runs_experts(run: Launched, stage: Stage) -> bool:
    """Some block of this stage has its experts here."""
    sums = run.table.sums.expert_bytes
    start = min(max(stage.start, run.cpu_moe_blocks), stage.end)
    return sums[stage.end] > sums[start]


def block_cache_bytes(run: Launched, cache: BlockCache) -> int:
    """K and V of one block, in the types of the launch."""
    geo, launch = run.geo, run.launch
    cells = geo.streams * (geo.window_cells if cache.sliding else geo.cells)
    return cache_bytes(cells * cache.k_width, launch.type_k) + cache_bytes(cells * cache.v_width, launch.type_v)
