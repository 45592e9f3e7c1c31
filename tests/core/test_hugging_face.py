"""Hugging Face folders: which are models, and what their config says (headers.md 12)."""

from __future__ import annotations

import json
from io import BytesIO

import pytest

from models_app.core.errors import NotThisFormat, SourceUnreadable
from models_app.core.readers import read_header
from models_app.core.readers.hugging_face import (
    config_header,
    detect_folder,
    is_generative,
    parse_config,
    quant_of_config,
    weight_bytes,
)

LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "hidden_size": 4096,
    "max_position_embeddings": 131072,
    "torch_dtype": "bfloat16",
    "vocab_size": 128256,
}


def parsed(config) -> dict | None:
    raw = config if isinstance(config, bytes) else json.dumps(config).encode()
    found = parse_config(BytesIO(raw), len(raw))
    return None if found is None else dict(found)


def header(config):
    return config_header(parsed(config))


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "Llama-3-8B"
    path.mkdir()
    (path / "config.json").write_text(json.dumps(LLAMA))
    (path / "model-00001-of-00002.safetensors").write_bytes(bytes(1000))
    (path / "model-00002-of-00002.SafeTensors").write_bytes(bytes(24))
    return path


def test_a_folder_reads_as_its_config(folder):
    found = read_header(str(folder))
    assert found.format == "hf"
    assert found.path == str(folder)
    assert found.file_size_bytes == 1024
    assert (found.architecture, found.block_count, found.context_length) == ("llama", 32, 131072)
    assert (found.head_count, found.head_count_kv, found.key_length, found.value_length) == (32, 8, 128, 128)
    assert found.quant_label == "BF16"
    assert found.extra["vocab_size"] == 128256
    assert (found.vocab_size, found.head_count_kv_sum, found.sliding_window) == (0, 0, 0)


def test_sizes_follow_links(folder, tmp_path):
    (tmp_path / "blob").write_bytes(bytes(500))
    (folder / "extra.safetensors").symlink_to(tmp_path / "blob")
    (folder / "gone.safetensors").symlink_to(tmp_path / "missing")
    assert detect_folder(str(folder)).weight_bytes == 1524


def test_files_below_do_not_count(folder):
    (folder / "sub").mkdir()
    (folder / "sub" / "x.safetensors").write_bytes(bytes(9))
    (folder / "x.safetensors.d").mkdir()
    assert detect_folder(str(folder)).weight_bytes == 1024


def test_a_gguf_beside_it_wins(folder):
    (folder / "Model.GGUF").write_bytes(b"x")
    assert detect_folder(str(folder)) is None
    assert weight_bytes([("a.safetensors", 5), ("b.gguf", 1)]) == 0


def test_a_folder_without_weights_or_config_is_no_model(folder, tmp_path):
    assert detect_folder(str(tmp_path)) is None
    assert detect_folder(str(tmp_path / "missing")) is None
    with pytest.raises(SourceUnreadable) as caught:
        read_header(str(tmp_path))
    assert caught.value.code == "unreadable"
    for path in folder.glob("*.[sS]afe*"):
        path.write_bytes(b"")
    assert detect_folder(str(folder)) is None
    with pytest.raises(NotThisFormat):
        read_header(str(folder))


def test_an_unfinished_download_is_told(folder):
    weight_map = {f"t{number}": f"model-0000{number}-of-00002.safetensors" for number in (1, 3, 4)}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {"a": [1]}, "weight_map": weight_map}))
    found = read_header(str(folder))
    assert found.data_complete is False
    assert "2 listed shards" in found.warnings[0]
    assert detect_folder(str(folder)).missing_shards == tuple(sorted(weight_map.values())[1:])


@pytest.mark.parametrize("text", ["", "{", "[]", '{"weight_map":[1]}', '{"weight_map":{"a":1}}', '{"weight_map":"x"}'])
def test_a_broken_index_says_nothing(folder, text):
    (folder / "model.safetensors.index.json").write_text(text)
    assert read_header(str(folder)).data_complete is None


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (LLAMA, True),
        ({"architectures": ["T5ForConditionalGeneration"]}, False),
        ({"architectures": ["XForConditionalGeneration"], "vision_config": {}}, True),
        ({"architectures": ["XForConditionalGeneration"], "text_config": {}}, True),
        ({"architectures": ["XForConditionalGeneration"], "vision_config": None}, False),
        ({"architectures": ["BertForMaskedLM"]}, False),
        ({"architectures": ["BertForMaskedLM", "XForCausalLM"]}, True),
        ({"architectures": "XForCausalLM"}, False),
        ({"architectures": [1, None]}, False),
        ({}, False),
    ],
)
def test_generative(config, expected):
    assert is_generative(parsed(config)) is expected


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b"null", b'{"a":', b"\xff", b'{"a":1} x', b'{"a":' + b"[" * 3000])
def test_a_broken_config_is_no_config(raw):
    assert parsed(raw) is None


def test_a_config_over_the_limit_is_no_config():
    assert parse_config(BytesIO(b"{}"), (16 << 20) + 1) is None


@pytest.mark.parametrize(
    ("config", "quant"),
    [
        ({"quantization_config": {"quant_method": " awq "}, "torch_dtype": "float16"}, "AWQ"),
        ({"quantization_config": {"quant_method": ""}, "torch_dtype": "Float16"}, "F16"),
        ({"quantization_config": "x", "dtype": "float32"}, "F32"),
        ({"torch_dtype": "", "dtype": "bfloat16"}, "BF16"),
        ({"text_config": {"dtype": "bfloat16"}}, "BF16"),
        ({"torch_dtype": "int3", "text_config": {"dtype": "bfloat16"}}, ""),
        ({"quantization_config": {"quant_method": "a\nb"}}, ""),
        ({}, ""),
    ],
)
def test_quant(config, quant):
    assert quant_of_config(parsed(config)) == quant


def test_a_nested_config_gives_the_dimensions():
    inner = {"model_type": "inner", "num_hidden_layers": 4, "num_attention_heads": 8, "hidden_size": 64, "head_dim": 16}
    found = header({"model_type": "outer", "max_position_embeddings": 99, "text_config": inner})
    assert (found.architecture, found.block_count, found.key_length, found.context_length) == ("outer", 4, 16, 99)
    outer_wins = header({"num_hidden_layers": 2, "text_config": inner})
    assert outer_wins.block_count == 2


@pytest.mark.parametrize("value", [None, "8", [8, 8], 8.5, True, -8, 0])
def test_a_number_of_another_kind_reads_as_absent(value):
    found = header({**LLAMA, "num_key_value_heads": value, "head_dim": value})
    assert (found.head_count_kv, found.key_length) == (32, 128)


@pytest.mark.parametrize("kind", ["linear_attention", "Mamba2", "conv", "recurrent", "rwkv", "gated_deltanet", "ssm"])
def test_layers_without_kv(kind):
    found = header({**LLAMA, "num_hidden_layers": 3, "layer_types": [kind, "full_attention", "sliding"]})
    assert (found.head_count_kv_arr, found.attn_layer_count) == ((0, 8, 8), 2)


def test_an_odd_architecture_is_none():
    assert header({**LLAMA, "model_type": "a\n  b: c"}).architecture == ""


def test_a_gguf_and_a_config_of_one_model_agree():
    from tests.core.test_gguf_reader import arch, read

    gguf = read(
        arch(
            ["llama.block_count", "u32", 32],
            ["llama.context_length", "u32", 131072],
            ["llama.embedding_length", "u32", 4096],
            ["llama.attention.head_count", "u32", 32],
            ["llama.attention.head_count_kv", "u32", 8],
            name="llama",
        )
    )
    found = header(LLAMA)
    for name in (
        "block_count",
        "context_length",
        "embedding_length",
        "head_count",
        "head_count_kv",
        "key_length",
        "value_length",
    ):
        assert getattr(found, name) == getattr(gguf, name)
