"""The comparison of `test_truth_table` on models that nobody published, drawn from seeds: a blind check.

Settings reach further too: micro-batches of 128 to 4096 tokens, up to 8 slots, any layer as the boundary. Weights and
context must be equal to the byte; of the compute buffers so many may miss the aims as stand here.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from models_app.core.planning.table import model_table
from models_app.core.units import MIB
from tests import truth_table

pytestmark = pytest.mark.xdist_group("truth")  # in one process: headers and replays are shared


@pytest.fixture(scope="module")
def points(header_of):
    return truth_table.compute_points(header_of, truth_table.VARIANT_ROWS, every=5)


def test_every_variant_is_known_exactly(header_of):
    tables = [model_table(header_of(name)) for name in truth_table.VARIANT_MODELS]
    assert {(table.engine, table.warnings) for table in tables} == {("exact", ())}


def test_weights_and_context_are_equal_to_the_byte(header_of):
    for row, _, ours, theirs in truth_table.compared(header_of, "server", truth_table.VARIANT_ROWS):
        assert abs(ours.model_bytes - theirs["model_mib"] * MIB) < 1, (row["model"], row["args"], ours)
        assert abs(ours.context_bytes - theirs["context_mib"] * MIB) < 1, (row["model"], row["args"], ours)


@pytest.mark.parametrize(("outputs", "share"), [("server", 0.99), ("all", 0.98)])
def test_compute_buffers_in_numbers(points, outputs, share):
    chosen = [point for point in points if point.outputs == outputs]
    good = [point for point in chosen if point.in_aim and point.not_under]
    assert len(good) >= share * len(chosen), f"{len(good)} of {len(chosen)}"


def test_no_server_figure_is_far_below(points):
    assert min(point.error for point in points if point.outputs == "server") > -128


@pytest.mark.once
@pytest.mark.slow
def test_the_error_table_in_the_docs_is_current(header_of):
    text = (Path(__file__).parent.parent.parent / "docs" / "memory-model.md").read_text()
    assert truth_table.error_table(truth_table.compute_points(header_of, truth_table.VARIANT_ROWS)) in text
