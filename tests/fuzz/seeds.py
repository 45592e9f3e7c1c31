"""Small valid inputs for each reader, from which a fuzzer starts."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator

from tests.gguf_bytes import header_bytes


def gguf() -> Iterator[bytes]:
    kv = [
        ["general.architecture", "string", "llama"],
        ["general.name", "string", "Tiny 1B"],
        ["llama.block_count", "u32", 2],
        ["llama.embedding_length", "u64", 64],
        ["llama.attention.head_count_kv", "array<u32>", [1, 2]],
        ["llama.rope.freq_base", "f32", 10000.0],
        ["tokenizer.ggml.tokens", "array<string>", ["a", "b"]],
        ["tokenizer.chat_template", "string", "{% if reasoning_effort %}{{ 'low' }}{% endif %}"],
        ["general.nested", "array<array<u8>>", [[1], [2]]],
    ]
    tensors = [
        {"name": "token_embd.weight", "shape": [64, 8], "type": 1},
        {"name": "blk.0.ffn_up_exps.weight", "shape": [64, 8, 2], "type": 8},
        {"name": "model.diffusion_model.patch_embedding.weight", "shape": [2, 2, 1, 4, 8], "type": 0},
    ]
    yield header_bytes({"kv": kv, "tensors": tensors})
    yield header_bytes({"kv": [["config", "string", '{"transformer": {"caption_channels": 3840}}']], "version": 2})
    yield header_bytes({})


def safetensors() -> Iterator[bytes]:
    table = {
        "__metadata__": {"format": "pt"},
        "decoder.conv_in.weight": {"dtype": "F16", "shape": [512, 16, 3, 3], "data_offsets": [0, 147456]},
        "odd": {"shape": [1], "extra": [{}, None, 1.5e3, "\u00e9\\"], "dtype": "BF16", "data_offsets": [0, 2]},
    }
    for document in (table, {}):
        text = json.dumps(document).encode()
        yield struct.pack("<Q", len(text)) + text


def hugging_face() -> Iterator[bytes]:
    plain = {
        "architectures": ["Qwen3ForCausalLM"],
        "model_type": "qwen3",
        "num_hidden_layers": 4,
        "hidden_size": 64,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "max_position_embeddings": 4096,
        "torch_dtype": "bfloat16",
        "layer_types": ["linear_attention", "full_attention"] * 2,
        "quantization_config": {"quant_method": "awq"},
    }
    yield json.dumps(plain).encode()
    nested = {"architectures": ["XForConditionalGeneration"], "text_config": plain, "vision_config": {"depth": 1}}
    yield json.dumps(nested).encode()


def remote() -> Iterator[bytes]:
    """Four times the full size of the file (no size is above 2**62), then as much of it as the server has."""
    for whole in gguf():
        yield (len(whole) << 2).to_bytes(8, "little") + whole
        yield ((len(whole) + 5_000_000_000) << 2).to_bytes(8, "little") + whole[: len(whole) // 2]


SEEDS: dict[str, Callable[[], Iterator[bytes]]] = {
    "gguf": gguf,
    "safetensors": safetensors,
    "hugging_face": hugging_face,
    "remote": remote,
}
