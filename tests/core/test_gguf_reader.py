"""What a GGUF header says: files of the reference writer, and headers spelled out by hand (headers.md 1 to 9)."""

from __future__ import annotations

from io import BytesIO

import numpy as np
import pytest
from gguf import GGMLQuantizationType, GGUFWriter
from gguf.constants import GGML_QUANT_SIZES

from models_app.core.catalog import Header
from models_app.core.readers import read_header, read_shard_set
from models_app.core.readers.gguf import read_gguf
from models_app.core.readers.quant_label import quant_label
from models_app.core.readers.shard_names import shard_siblings
from models_app.core.readers.tensor_types import BY_ID, TENSOR_TYPES, tensor_bytes
from tests.gguf_bytes import gguf, header_bytes, pair, tensor


def read(kv=(), tensors=(), *, size: int | None = None) -> Header:
    raw = header_bytes({"kv": kv, "tensors": tensors})
    return read_gguf(BytesIO(raw), size or len(raw))


def arch(*kv, name="x"):
    return [["general.architecture", "string", name], *kv]


def info(name, shape, type_id=0):
    return {"name": name, "shape": shape, "type": type_id}


def test_a_file_of_the_reference_writer(tmp_path):
    path = tmp_path / "model.gguf"
    writer = GGUFWriter(path, "llama")
    writer.add_block_count(2)
    writer.add_context_length(4096)
    writer.add_embedding_length(64)
    writer.add_head_count(4)
    writer.add_head_count_kv([2, 1])
    writer.add_rope_freq_base(10000.0)
    writer.add_token_list(["a", "b", "c"])
    writer.add_chat_template("{% if reasoning_effort not in ('high', 'low') %}x{% endif %}")
    for index in range(2):
        writer.add_tensor(f"blk.{index}.attn_q.weight", np.zeros((64, 64), dtype=np.float16))
    writer.add_tensor("token_embd.weight", np.zeros((3, 64), dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()

    header = read_header(str(path))

    assert (header.architecture, header.block_count, header.context_length) == ("llama", 2, 4096)
    assert header.head_count_kv_arr == (2, 1)
    assert header.head_count_kv_sum == 3
    assert header.key_length == header.value_length == 16
    assert header.vocab_size == 3
    assert header.effort_levels == ("high", "low")
    assert header.has_chat_template
    assert header.quant_label == "F16"
    assert header.data_complete is True
    assert header.param_count == 2 * 64 * 64 + 3 * 64
    assert header.weights.total_bytes == 2 * 64 * 64 * 2 + 3 * 64 * 4
    assert len(header.weights.layers) == 2
    assert header.extra["tokenizer.ggml.tokens"] == 3
    assert header.file_size_bytes == path.stat().st_size
    assert header.path == str(path)


def test_the_type_table_agrees_with_the_package_where_that_is_right():
    """Release 0.19.0 has a wrong size for Q8_1 and does not know Q2_0 (headers.md 2)."""
    for kind in TENSOR_TYPES:
        if kind.name in ("Q8_1", "Q1_0", "Q2_0"):
            continue
        assert GGML_QUANT_SIZES[GGMLQuantizationType(kind.id)] == (kind.block, kind.block_bytes), kind.name
        assert GGMLQuantizationType(kind.id).name == kind.name


def test_ids_and_names_are_unique():
    assert len({kind.id for kind in TENSOR_TYPES}) == len({kind.name for kind in TENSOR_TYPES}) == len(TENSOR_TYPES)
    assert set(BY_ID).isdisjoint({4, 5, 31, 32, 33, 36, 37, 38})


def test_bytes_are_floored_to_whole_blocks():
    assert tensor_bytes(12, [257]) == 144
    assert tensor_bytes(0, []) == 4
    assert tensor_bytes(250, [256]) is None


def test_keys_before_the_architecture_count_too():
    header = read([["x.block_count", "u32", 7], ["x.rope.scaling.type", "string", "yarn"], *arch()])
    assert header.block_count == 7
    assert header.rope_scaling_type == "yarn"


@pytest.mark.parametrize("kind", ["u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64"])
def test_any_integer_type_will_do(kind):
    assert read(arch(["x.block_count", kind, 42])).block_count == 42


@pytest.mark.parametrize(
    ("kind", "value"),
    [("f32", 4.0), ("bool", True), ("string", "4"), ("array<u32>", [4]), ("i32", -4), ("u64", 1 << 63)],
)
def test_a_count_of_another_kind_reads_as_absent(kind, value):
    assert read(arch(["x.block_count", kind, value])).block_count == 0


def test_a_stated_zero_is_not_absent():
    header = read(
        arch(
            ["x.embedding_length", "u32", 4096],
            ["x.attention.head_count", "u32", 32],
            ["x.attention.key_length", "u32", 0],
            ["x.attention.head_count_kv", "u32", 0],
            ["x.block_count", "u32", 4],
        )
    )
    assert (header.key_length, header.value_length) == (0, 128)
    assert (header.head_count_kv, header.head_count_kv_sum) == (0, 0)


def test_absent_kv_heads_are_all_heads():
    header = read(arch(["x.attention.head_count", "u32", 12], ["x.block_count", "u32", 3]))
    assert (header.head_count_kv, header.head_count_kv_sum, header.head_count_kv_arr) == (12, 36, ())


@pytest.mark.parametrize(
    ("kind", "value"),
    [("array<f32>", [1.0]), ("array<string>", ["1"]), ("array<array<u32>>", [[1]]), ("array<i32>", [-1])],
)
def test_a_per_layer_array_of_another_kind_is_ignored_with_a_warning(kind, value):
    header = read(arch(["x.attention.head_count", "u32", 12], ["x.attention.head_count_kv", kind, value]))
    assert (header.head_count_kv, header.head_count_kv_arr) == (12, ())
    assert any("head_count_kv" in warning for warning in header.warnings)


def test_head_counts_per_layer():
    header = read(
        arch(["x.attention.head_count", "array<i32>", [0, 20, 24]], ["x.expert_used_count", "array<u32>", [0, 8, 6]])
    )
    assert header.head_count == 20
    assert header.expert_used == 8
    assert header.extra["attention.head_count"] == (0, 20, 24)


def test_a_sliding_pattern_of_bools():
    header = read(arch(["x.attention.sliding_window_pattern", "array<bool>", [True, True, False]]))
    assert header.sliding_window_pattern_arr == (1, 1, 0)
    assert header.sliding_window_pattern == 0


def test_extra_keeps_small_things_without_the_prefix():
    header = read(
        arch(
            ["x.feed_forward_length", "array<u32>", [8, 16]],
            ["x.attention.recurrent_layers", "array<bool>", [True, False]],
            ["general.sampling.temp", "f32", 0.5],
            ["tokenizer.ggml.tokens", "array<string>", ["a", "b"]],
            ["tokenizer.ggml.scores", "array<f32>", [1.0]],
            ["other.block_count", "u32", 3],
            ["x.some.text", "string", "not kept"],
            ["x.nan", "f32", float("nan")],
            ["x.block_count", "u32", 2],
        )
    )
    assert dict(header.extra) == {
        "feed_forward_length": (8, 16),
        "attention.recurrent_layers": (True, False),
        "general.sampling.temp": 0.5,
        "tokenizer.ggml.tokens": 2,
        "other.block_count": 3,
    }


def test_an_odd_architecture_is_none_with_a_warning():
    for name in ("llama\ncmd: x", "a" * 65, "${x}", "quo'te", "bad\x00"):
        header = read(arch(["x.block_count", "u32", 2], name=name))
        assert header.architecture == ""
        assert header.warnings


def test_bad_utf8_is_replaced():
    header = read([["general.name", "string", {"hex": "ff41"}]])
    assert header.general_name == "\N{REPLACEMENT CHARACTER}A"


def test_the_token_table_wins_over_the_output_wherever_it_stands():
    tensors = [info("output.weight", [8, 100]), info("token_embd.weight", [8, 90])]
    assert read(arch(["x.embedding_length", "u32", 8]), tensors).vocab_size == 90
    assert read(arch(["x.embedding_length", "u32", 8]), tensors[:1]).vocab_size == 100


def test_the_vocabulary_without_a_table_comes_from_the_keys():
    assert read(arch(["x.vocab_size", "u32", 321])).vocab_size == 321
    assert read(arch(["tokenizer.ggml.tokens", "array<string>", ["a"] * 5])).vocab_size == 5


def test_the_expert_share_counts_expert_matrices_alone():
    tensors = [
        info("blk.0.ffn_up_exps.weight", [32, 30]),
        info("blk.0.ffn_up_shexp.weight", [32, 10]),
        info("blk.0.ffn_gate_inp.weight", [32, 10]),
        info("blk.0.ffn_up_chexps.weight", [32, 10]),
    ]
    assert read(arch(), tensors).expert_weight_share == 0.5


def test_an_unknown_type_degrades_only_share_and_label():
    tensors = [info("token_embd.weight", [8, 10]), info("blk.0.ffn_up_exps.weight", [8, 10], 250)]
    header = read(arch(["x.embedding_length", "u32", 8]), tensors)
    assert (header.quant_label, header.expert_weight_share, header.vocab_size) == ("", 0.0, 10)
    assert header.data_complete is None
    assert header.weights.complete is False
    assert header.warnings


@pytest.mark.parametrize(
    ("names", "kind"),
    [
        (["input_blocks.0.weight", "label_emb.0.weight"], "sdxl"),
        (["model.diffusion_model.input_blocks.0.weight"], "sd1"),
        (["double_blocks.0.img_mod.weight"], "flux"),
        (["img_in.weight", "txt_in.weight", "transformer_blocks.0.weight"], "qwen_image"),
        (["img_in.weight", "transformer_blocks.0.weight"], ""),
        (["label_emb.0.weight"], ""),
    ],
)
def test_diffusion_kinds(names, kind):
    assert read((), [info(name, [4, 4]) for name in names]).diffusion_kind == kind


@pytest.mark.parametrize(
    ("names", "kind", "audio"),
    [
        (["video_patch_proj.weight", "final_layer.audio_out.weight"], "minimax_h3", True),
        (["model.diffusion_model.final_layer.video_out.weight"], "minimax_h3", False),
        (["patchify_proj.weight"], "ltxav", False),
        (["audio_patchify_proj.weight"], "", False),
        (["patchify_proj.weight", "audio_patchify_proj.weight"], "ltxav", True),
        (["x.patchify_proj.weight"], "", False),
    ],
)
def test_video_kinds(names, kind, audio):
    header = read((), [info(name, [4, 4]) for name in names])
    assert (header.video_kind, header.has_audio_out) == (kind, audio)


def test_a_flattened_wan_tensor_is_known_by_its_original_shape():
    tensors = [info("patch_embedding.weight", [64, 5120])]
    shape = ["comfy.gguf.orig_shape.patch_embedding.weight", "array<i32>", [5120, 16, 1, 2, 2]]
    assert read((), tensors).video_kind == ""
    assert read([shape], tensors).video_kind == "wan"


def test_baked_encoders():
    assert read((), [info("cond_stage_model.x", [1])]).has_baked_encoders
    assert read((), [info("conditioner.embedders.0.x", [1])]).has_baked_encoders


@pytest.mark.parametrize(
    "config",
    ["nonsense", "[]", '{"transformer":{"caption_channels":true}}', "[" * 5000, '{"transformer":{}}', "1" * 9000],
)
def test_an_odd_diffusers_config_gives_no_width(config):
    assert read([["config", "string", config]]).cond_hidden == 0


def test_a_caption_tensor_beats_the_config():
    config = ["config", "string", '{"transformer":{"caption_channels":1}}']
    assert read([config], [info("text_proj.weight", [7, 2])]).cond_hidden == 7


def test_the_end_of_the_data_is_checked():
    raw = header_bytes({"kv": [], "tensors": [info("a", [32]), info("b", [8])]})
    start = -(-len(raw) // 32) * 32
    assert read_gguf(BytesIO(raw), start + 128 + 32).data_complete is True
    short = read_gguf(BytesIO(raw), start + 128 + 31)
    assert short.data_complete is False
    assert short.warnings


def test_overlapping_tensors_are_told():
    raw = gguf([], [tensor("a", [32], 0, 0), tensor("b", [32], 0, 64)])
    assert any("overlap" in warning for warning in read_gguf(BytesIO(raw), 10_000).warnings)
    raw = gguf([], [tensor("b", [32], 0, 128), tensor("a", [32], 0, 0)])
    assert read_gguf(BytesIO(raw), 10_000).warnings == ()


def test_a_mix_needs_less_than_seven_tenths():
    assert quant_label({12: 70, 14: 30}) == "Q4_K"
    assert quant_label({12: 69, 14: 31}) == "Q4_K mix"
    assert quant_label({}) == ""
    assert quant_label({1: 0}) == ""


def write_shards(folder, count=3, skip=()):
    """A set whose first shard has the keys and no tensors."""
    paths = []
    for index in range(count):
        split = [["split.no", "u16", index], ["split.count", "u16", count], ["split.tensors.count", "i32", 2]]
        kv = [*arch(["x.embedding_length", "u32", 8]), *split] if index == 0 else split
        names = [] if index == 0 else ["token_embd.weight"] if index == 1 else ["blk.0.ffn_up_exps.weight"]
        raw = header_bytes({"kv": kv, "tensors": [info(name, [8, 16]) for name in names]})
        path = folder / f"m-{index + 1:05d}-of-{count:05d}.gguf"
        if index + 1 not in skip:
            path.write_bytes(raw.ljust(len(raw) + 1024, b"\0"))
            paths.append(str(path))
    return paths


def test_a_split_set_is_one_model_from_any_of_its_shards(tmp_path):
    paths = write_shards(tmp_path)
    whole = read_shard_set(paths)
    assert whole.vocab_size == 16
    assert whole.expert_weight_share == 0.5
    assert whole.quant_label == "F32"
    assert whole.data_complete is True
    assert whole.warnings == ()
    assert whole.path == paths[0]
    assert read_header(paths[2]) == whole
    assert shard_siblings(paths[1]) == tuple(paths)
    assert shard_siblings("model.gguf") == ()


def test_missing_shards_are_told(tmp_path):
    paths = write_shards(tmp_path, skip=(2,))
    header = read_header(paths[0])
    assert header.architecture == "x"
    assert header.data_complete is False
    assert any("1 of 3 parts" in warning for warning in header.warnings)


def test_a_set_without_its_first_shard_has_no_facts(tmp_path):
    paths = write_shards(tmp_path, skip=(1,))
    header = read_header(paths[0])
    assert header.architecture == ""
    assert any("first part" in warning for warning in header.warnings)


def test_a_lone_shard_of_a_set_is_flagged(tmp_path):
    paths = write_shards(tmp_path, skip=(2, 3))
    assert read_header(paths[0]).data_complete is False


def test_version_2_and_alignment():
    raw = gguf([pair("general.alignment", "u32", 64)], [tensor("a", [4], 0)], version=2)
    start = -(-len(raw) // 64) * 64
    assert read_gguf(BytesIO(raw), start + 16).data_complete is True
    assert read_gguf(BytesIO(raw), start + 15).data_complete is False
