"""llama.cpp's graphs, scheduler and allocator, played again: small cases by hand, and measured launches to the byte."""

from __future__ import annotations

from dataclasses import replace

import pytest

from models_app.core.catalog import Launch
from models_app.core.planning.projection import project
from models_app.core.planning.replay.allocator import Room, peaks
from models_app.core.planning.replay.scheduler import compute_buffers
from models_app.core.planning.replay.styles import STYLES
from models_app.core.planning.replay.tensors import Graph, Tensor
from models_app.core.planning.table import model_table
from models_app.core.units import MIB
from tests import truth_table

pytestmark = pytest.mark.xdist_group("truth")  # in one process: headers are shared

HOST = 1
ROW = 64
"""Bytes of a tensor of 16 floats."""

NOT_TO_THE_BYTE = {
    "ernie4_5-moe": "the headers of the zoo lack the bias that the published files have",
}


def row(graph: Graph, *sources: Tensor, home: int | None = 0) -> Tensor:
    return graph.op((16,), *sources, home=home)


def test_the_smallest_room_that_is_large_enough_is_taken_and_of_equal_ones_the_last():
    room = Room()
    offsets = [room.take(size) for size in (64, 32, 96, 32, 64, 32, 32)]
    for index, size in ((0, 64), (2, 96), (4, 64)):
        room.give_back(offsets[index], size)
    assert room.take(64) == offsets[4]
    assert room.take(64) == offsets[0]
    assert room.take(96) == offsets[2]
    assert room.peak_bytes == sum((64, 32, 96, 32, 64, 32, 32))


def test_neighbouring_rooms_become_one():
    room = Room()
    first, second, third, _ = (room.take(32) for _ in range(4))
    room.give_back(first, 32)
    room.give_back(third, 32)
    room.give_back(second, 32)
    assert room.take(96) == first


def test_a_result_is_written_over_a_source_that_nothing_else_reads():
    graph = Graph(HOST)
    made = row(graph, row(graph, graph.stored(16, home=0)))
    graph.expand(graph.over(made, home=0))
    assert compute_buffers(graph, 1)[0] == 2 * ROW


def test_a_view_is_not_written_over():
    graph = Graph(HOST)
    made = row(graph, graph.stored(16, home=0))
    graph.expand(graph.over(graph.reshape(made, 4, 4), home=0))
    assert compute_buffers(graph, 1)[0] == 2 * ROW


def test_what_is_kept_is_not_written_over():
    made = Tensor((16, 1, 1, 1), (4, 64, 64, 64), (Tensor((1, 1, 1, 1), (4, 4, 4, 4), fixed=True),), home=0)
    made.is_kept = True
    graph = Graph(HOST)
    result = graph.over(made, home=0)
    assert peaks([], [made, result], 1) == [2 * ROW]


def test_what_lies_elsewhere_is_copied_once_and_in_a_pipeline_four_times():
    def crossing() -> Graph:
        graph = Graph(HOST)
        made = row(graph, graph.stored(16, home=HOST), home=HOST)
        first = row(graph, made)
        graph.expand(first, row(graph, first, made))
        return graph

    # The copy, and what is computed from it; the last result takes no room of theirs.
    assert compute_buffers(crossing(), 1) == [3 * ROW, ROW]
    assert compute_buffers(crossing(), 4) == [6 * ROW, ROW]


def test_nodes_without_weights_join_the_device_before_them_and_only_then_the_host():
    graph = Graph(HOST)
    on_host = row(graph, graph.stored(16, home=HOST), home=HOST)
    between = row(graph, on_host, home=None)
    on_device = row(graph, between)
    graph.expand(on_device, row(graph, on_device, home=None))
    compute_buffers(graph, 1)
    assert [node.place for node in graph.nodes] == [HOST, 0, 0, 0]


ROWS = truth_table.ROWS[::31] + truth_table.MORE_ROWS[::37] + truth_table.VARIANT_ROWS[::53]


@pytest.mark.parametrize("outputs", truth_table.COLUMNS)
def test_measured_launches_are_played_to_the_byte(header_of, outputs):
    played = set()
    for measured, _, ours, theirs in truth_table.compared(header_of, outputs, ROWS, replays=True):
        header = header_of(measured["model"])
        architecture = header.architecture
        if architecture in STYLES and architecture not in NOT_TO_THE_BYTE and header.pooling_type <= 0:
            played.add(architecture)
            wanted = theirs[truth_table.COLUMNS[outputs]] * MIB
            # Six decimals of a MiB are half a byte at most.
            assert abs(ours.compute_bytes - wanted) < 1, (measured["model"], measured["args"])
    assert len(played) > len(STYLES) // 3


@pytest.mark.parametrize(
    ("model", "gpu_layers", "compute_bytes"),
    [
        # llama.cpp 11434: the device, then the host.
        ("llama31-8b-q4_k_m", None, [322973696, 46153728]),
        ("deepseek-v2-lite-q4_k_m", 12, [218103808, 205537280]),
        ("gemma3-12b-q4_k_m", 20, [544735232, 218650624]),
        ("granite4-h-small-q4_k_m", None, [314583104, 46151712]),
    ],
)
def test_without_flash_attention(zoo_header, model, gpu_layers, compute_bytes):
    launch = Launch(4096, flash_attn=False, gpu_layers=gpu_layers, outputs="all")
    use = project(model_table(zoo_header(model)), launch)
    assert [place.compute_bytes for place in (*use.devices, use.host)] == compute_bytes


def test_plans_keep_to_the_formulas(header_of):
    table = model_table(header_of("jamba-3"))
    launch = truth_table.launch_of(truth_table.ROWS[0]["args"], "all", header_of("jamba-3"))
    played, by_formula = project(table, launch), project(table, launch, replays=False)
    assert played.devices[0].compute_bytes != by_formula.devices[0].compute_bytes
    server = replace(launch, outputs="server")
    assert project(table, server) == project(table, server, replays=False)
    assert project(table, server, cuda=True, replays=True) == project(table, server, cuda=True)


@pytest.mark.parametrize(
    "broken",
    [
        {"expert_used": 0},
        {"expert_used": 500, "expert_count": 16},
        {"ssm_conv_kernel": 0},
        {"head_count_kv_arr": (), "head_count_kv": 0, "block_count": 3000},
    ],
)
@pytest.mark.parametrize("model", ["jamba-3", "qwen35moe-2", "nemotron-2"])
def test_headers_that_make_no_graph_are_projected_by_formula(header_of, model, broken):
    header = replace(header_of(model), **broken)
    launch = truth_table.launch_of(truth_table.ROWS[0]["args"], "all", header)
    assert project(model_table(header), launch).devices[0].compute_bytes >= 0
