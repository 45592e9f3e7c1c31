"""Weights per block, summed while a tensor table is walked."""

from __future__ import annotations

import pytest

from models_app.core.catalog import LayerWeights, TensorInfo
from models_app.core.readers.weights import MAX_BLOCKS, MAX_GLOBALS, OTHER_GLOBALS, WeightTally


def tally(*tensors):
    table = WeightTally()
    for name, shape, size_bytes in tensors:
        table.add(TensorInfo(name, shape, 0, size_bytes))
    return table.table()


def test_each_tensor_is_rounded_up():
    table = tally(
        ("output_norm.weight", (1,), 33), ("blk.0.attn_norm.weight", (1,), 1), ("blk.0.attn_q.bias", (1,), 32)
    )
    assert dict(table.globals) == {"output_norm.weight": 64}
    assert table.layers[0].other_bytes == 64
    assert table.total_bytes == 128


def test_experts_are_apart_and_so_are_their_biases_and_scales():
    table = tally(
        ("blk.1.ffn_up_exps.weight", (64, 48, 8), 320),
        ("blk.1.ffn_gate_exps.bias", (48, 8), 32),
        ("blk.1.ffn_down_exps.weight", (48, 64, 8), 640),
        ("blk.1.ffn_down_exps.scale", (8,), 32),
        ("blk.1.ffn_up_chexps.weight", (64, 48, 8), 96),
        ("blk.1.ffn_gate_inp.weight", (64, 8), 64),
        ("blk.1.ffn_up_shexp.weight", (64, 96), 128),
    )
    assert table.layers[0] == LayerWeights()
    assert table.layers[1].expert_bytes == 320 + 32 + 640 + 32 + 96
    assert table.layers[1].other_bytes == 64 + 128
    assert table.layers[1].largest_up_bytes == 320
    assert table.layers[1].largest_down_bytes == 640
    assert table.layers[1].largest_tensor_bytes == 640
    assert table.layers[1].expert_width == 48
    assert table.layers[1].shared_expert_width == 96


@pytest.mark.parametrize(
    ("tensors", "gated", "width"),
    [
        ((("ffn_up", (64, 256)), ("ffn_down", (256, 64))), False, 256),
        ((("ffn_up", (64, 256)), ("ffn_gate", (64, 256)), ("ffn_down", (256, 64))), True, 256),
        ((("ffn_up", (64, 512)), ("ffn_down", (256, 64))), True, 256),
    ],
    ids=["no gate", "gate", "gate and up fused"],
)
def test_widths_of_a_dense_feed_forward(tensors, gated, width):
    layer = tally(*((f"blk.0.{name}.weight", shape, 32) for name, shape in tensors)).layers[0]
    assert (layer.gated, layer.down_width) == (gated, width)


def test_fused_experts_have_half_the_rows():
    layer = tally(("blk.0.ffn_gate_up_exps.weight", (64, 96, 8), 32)).layers[0]
    assert (layer.expert_gated, layer.expert_width) == (True, 48)


def test_the_sums_hold_whatever_the_order():
    tensors = [(f"blk.{block}.{part}.weight", (8, 8), 40) for block in range(3) for part in ("ffn_up", "ffn_up_exps")]
    assert tally(*tensors) == tally(*reversed(tensors))
    table = tally(*tensors)
    assert table.total_bytes == sum(layer.other_bytes + layer.expert_bytes for layer in table.layers) == 6 * 64


def test_blocks_of_encoder_and_decoder_share_a_number():
    table = tally(("enc.blk.0.attn_q.weight", (4, 4), 32), ("dec.blk.0.attn_q.weight", (4, 4), 64))
    assert [layer.other_bytes for layer in table.layers] == [96]


def test_a_type_of_unknown_size_makes_the_table_incomplete():
    table = tally(("blk.0.attn_q.weight", (4, 4), None))
    assert not table.complete
    assert table.total_bytes == 0


def test_absurd_names_cost_no_memory():
    names = [
        f"blk.{MAX_BLOCKS}.x",
        "blk.999999999999.x",
        "blk.-1.x",
        "blk..x",
        "blk.0",
        "blk.\N{ARABIC-INDIC DIGIT ONE}.x",
    ]
    table = tally(*((name, (1,), 32) for name in [*names, *(f"name{number}" for number in range(2 * MAX_GLOBALS))]))
    assert table.layers == ()
    assert len(table.globals) == MAX_GLOBALS + 1
    assert sum(table.globals.values()) == table.total_bytes
    assert table.globals[OTHER_GLOBALS] > 0
