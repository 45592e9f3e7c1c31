"""Hugging Face folders: `config.json` beside safetensors (headers.md 12). Served by vllm, planned conservatively."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, BinaryIO

from models_app.core.catalog import Header, WeightTable
from models_app.core.errors import HeaderError, NotThisFormat, SourceUnreadable
from models_app.core.readers import limits
from models_app.core.readers._json_pull import SKIPPED, JsonPull, JsonPullError
from models_app.core.readers._names import is_plain, printable
from models_app.core.readers._source import open_regular

CONFIG_NAME = "config.json"
INDEX_NAME = "model.safetensors.index.json"
_MAX_MEMBER_CHARACTERS = 1 << 18
_WANTED = frozenset(
    {
        "architectures",
        "model_type",
        "num_hidden_layers",
        "max_position_embeddings",
        "hidden_size",
        "num_attention_heads",
        "num_key_value_heads",
        "head_dim",
        "layer_types",
        "full_attention_interval",
        "torch_dtype",
        "dtype",
        "quantization_config",
        "text_config",
        "vision_config",
        "vocab_size",
        "num_experts",
        "num_local_experts",
        "n_routed_experts",
        "num_experts_per_tok",
        "sliding_window",
    }
)
_EXTRA = ("vocab_size", "num_experts", "num_local_experts", "n_routed_experts", "num_experts_per_tok", "sliding_window")
_DTYPE_LABELS = {"bfloat16": "BF16", "float16": "F16", "float32": "F32"}
_STATELESS_KINDS = ("linear", "mamba", "ssm", "conv", "recurrent", "rwkv", "deltanet")
"""A layer kind that contains one of these holds no KV."""

Config = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class HfFolder:
    """A folder that is a model: its config, the safetensors directly in it, and what the index says is missing."""

    config: Config
    weight_bytes: int
    missing_shards: tuple[str, ...] = ()
    quant: str = ""


def parse_config(stream: BinaryIO, size_bytes: int) -> Config | None:
    """The members of a `config.json` that anybody here reads; None when it is no JSON object of a sane size."""
    if size_bytes > limits.MAX_CONFIG_JSON_BYTES:
        return None
    pull = JsonPull(stream, size_bytes)
    config: dict[str, Any] = {}
    try:
        for name in pull.members():
            if name not in _WANTED:
                pull.skip()
                continue
            value = pull.value(_MAX_MEMBER_CHARACTERS)
            if value is not None and value is not SKIPPED:
                config[name] = value
        pull.finish()
    except JsonPullError:
        return None
    return config


def is_generative(config: Config) -> bool:
    """Does some architecture write text? T5, BART and Whisper share the second suffix but have no inner config."""
    names = config.get("architectures")
    names = [name for name in names if isinstance(name, str)] if isinstance(names, list) else []
    if any(name.endswith("ForCausalLM") for name in names):
        return True
    has_inner = config.get("text_config") is not None or config.get("vision_config") is not None
    return has_inner and any(name.endswith("ForConditionalGeneration") for name in names)


def weight_bytes(files: Iterable[tuple[str, int]]) -> int:
    """Sum of the safetensors among (name, bytes) of the files directly in a folder; 0 when a GGUF lies beside them,
    because the folder is then the source of that conversion."""
    total = 0
    for name, size_bytes in files:
        lower = name.lower()
        if lower.endswith(".gguf"):
            return 0
        if lower.endswith(".safetensors"):
            total += size_bytes
    return total


def quant_of_config(config: Config) -> str:
    """The quantisation method in upper case, else the stored precision, else ""; always from the outer object first."""
    quantisation = config.get("quantization_config")
    method = quantisation.get("quant_method") if isinstance(quantisation, dict) else None
    if isinstance(method, str) and is_plain(method.strip()):
        return method.strip().upper()
    for part in (config, config.get("text_config")):
        if not isinstance(part, Mapping):
            continue
        for key in ("torch_dtype", "dtype"):
            value = part.get(key)
            if isinstance(value, str) and value.strip():
                return _DTYPE_LABELS.get(value.strip().lower(), "")
    return ""


def config_header(config: Config, *, path: str = "", size_bytes: int = 0) -> Header:
    """Header facts of a config. On purpose, sliding layers count as full ones and recurrent state is not modelled."""
    text = _text_part(config)
    blocks, heads = _count(text, "num_hidden_layers"), _count(text, "num_attention_heads")
    width = _count(text, "hidden_size")
    heads_kv = _count(text, "num_key_value_heads") or heads
    head_width = _count(text, "head_dim") or (width // heads if heads else 0)
    holds_kv = _holds_kv(text, blocks)
    window = _count(text, "max_position_embeddings") or _count(config, "max_position_embeddings")
    return Header(
        format="hf",
        path=path,
        file_size_bytes=size_bytes,
        architecture=_architecture(config) or _architecture(text),
        block_count=blocks,
        context_length=window,
        embedding_length=width,
        head_count=heads,
        head_count_kv=heads_kv,
        head_count_kv_arr=tuple(heads_kv if holds else 0 for holds in holds_kv),
        attn_layer_count=sum(holds_kv),
        key_length=head_width,
        value_length=head_width,
        full_attn_interval=0 if holds_kv else _count(text, "full_attention_interval"),
        quant_label=quant_of_config(config),
        extra=MappingProxyType({key: value for key in _EXTRA if (value := _count(text, key) or _count(config, key))}),
        weights=WeightTable(total_bytes=size_bytes),
    )


def detect_folder(folder: str) -> HfFolder | None:
    """The folder as a model, None when it is none. A missing or broken config is no error: just not a model."""
    try:
        with open_regular(os.path.join(folder, CONFIG_NAME)) as (stream, size_bytes):
            config = parse_config(stream, size_bytes)
        if config is None or not is_generative(config):
            return None
        files = list(_files(folder))
    except (HeaderError, OSError):
        return None
    total = weight_bytes(files)
    if total == 0:
        return None
    missing = missing_shards(folder, {name for name, _ in files})
    return HfFolder(config, total, missing, quant_of_config(config))


def missing_shards(folder: str, present: set[str]) -> tuple[str, ...]:
    """Shards that the index lists and the folder does not hold: a download that is not finished."""
    if INDEX_NAME not in present:
        return ()
    listed: set[str] = set()
    try:
        with open_regular(os.path.join(folder, INDEX_NAME)) as (stream, size_bytes):
            pull = JsonPull(stream, size_bytes)
            for name in pull.members():
                if name != "weight_map":
                    pull.skip()
                    continue
                for _ in pull.members():
                    shard = pull.value()
                    if isinstance(shard, str) and len(listed) < limits.MAX_SHARDS:
                        listed.add(shard)
    except (HeaderError, JsonPullError):
        return ()
    return tuple(sorted(listed - present))


def read_folder(folder: str) -> Header:
    """Facts of a folder. Raises HeaderError when it is no model that could be served."""
    if not os.path.lexists(os.path.join(folder, CONFIG_NAME)):
        raise SourceUnreadable("unreadable", "a folder without config.json: name the files in it", path=folder)
    found = detect_folder(folder)
    if found is None:
        raise NotThisFormat("not_safetensors", "no folder of a language model in safetensors", path=folder)
    header = config_header(found.config, path=folder, size_bytes=found.weight_bytes)
    if not found.missing_shards:
        return header
    first = printable(found.missing_shards[0].encode("utf-8", "replace"))
    warning = f"{len(found.missing_shards):,} listed shards are missing, first {first}"
    return replace(header, data_complete=False, warnings=(warning,))


def _files(folder: str) -> Iterable[tuple[str, int]]:
    """Names and sizes of the regular files directly in a folder; sizes are those of link targets."""
    with os.scandir(folder) as entries:
        for entry in entries:
            try:
                status = entry.stat()
            except OSError:
                continue
            if stat.S_ISREG(status.st_mode):
                yield entry.name, status.st_size


def _text_part(config: Config) -> Config:
    """The object with the dimensions: the nested one where the outer names no layers."""
    nested = config.get("text_config")
    return nested if isinstance(nested, Mapping) and not _count(config, "num_hidden_layers") else config


def _holds_kv(text: Config, blocks: int) -> tuple[bool, ...]:
    """Layer by layer, whether it holds KV; () when the config does not say it for every layer."""
    kinds = text.get("layer_types")
    if not isinstance(kinds, list) or len(kinds) != blocks or blocks > limits.MAX_KEPT_ELEMENTS:
        return ()
    return tuple(not any(word in str(kind).lower() for word in _STATELESS_KINDS) for kind in kinds)


def _count(config: Config, key: str) -> int:
    """A positive whole number; anything else (a list per layer, a text, null) reads as absent."""
    value = config.get(key)
    return value if type(value) is int and 0 < value <= limits.MAX_INTEGER else 0


def _architecture(config: Config) -> str:
    value = config.get("model_type")
    return value if isinstance(value, str) and is_plain(value) else ""
