"""From kept keys and the tensor scan to a Header: look-ups by name, then the derivations (headers.md 5, 6).

Absent and 0 differ while deriving and only there; a Header knows 0 alone.
"""

from __future__ import annotations

import json
import math
from types import MappingProxyType
from typing import Any, NamedTuple

from models_app.core.catalog import Header
from models_app.core.readers import limits
from models_app.core.readers._gguf_extra import extra_facts
from models_app.core.readers._gguf_facts import (
    FLOATS,
    INTEGERS,
    NEXTN,
    ORIGINAL_SHAPE,
    SPEECH_TYPE,
    TEXTS,
    TOKENS,
    Facts,
    integer,
    number,
)
from models_app.core.readers._gguf_keys import ArrayValue, KeyValues
from models_app.core.readers.chat_template import scan_chat_template
from models_app.core.readers.identity import identity_keys
from models_app.core.readers.quant_label import quant_label
from models_app.core.readers.tensor_scan import TensorScan


def build_header(
    keys: KeyValues, scan: TensorScan, *, path: str, file_size_bytes: int, data_complete: bool | None
) -> Header:
    """The record of a GGUF file, or of all shards of a set."""
    facts = Facts(keys)
    fields: dict[str, Any] = {
        "path": path,
        "file_size_bytes": file_size_bytes,
        "architecture": facts.architecture,
        "audio_family": facts.short_text("audiocpp.model_spec.family"),
        "data_complete": data_complete,
    }
    fields |= {name: facts.text(key) for key, name in TEXTS}
    fields |= {name: facts.own_integer(key) or 0 for key, name in INTEGERS}
    fields |= {name: number(facts.own(key)) for key, name in FLOATS}
    split = split_facts(keys)
    fields |= {"split_no": split.number, "split_count": split.parts, "split_tensors_count": split.tensors}
    fields |= _architecture_facts(facts)
    fields |= _template_facts(facts)
    fields |= _tensor_facts(facts, scan)
    fields |= _attention(facts, fields)
    fields["vocab_size"] = _vocabulary(facts, fields)
    fields["model_key"], fields["family_key"] = identity_keys(
        fields["base_name"], fields["size_label"], fields["fine_tune"], fields["general_name"]
    )
    fields["extra"] = MappingProxyType(extra_facts(facts))
    if scan.has_unknown_type:
        facts.keys.warn("a tensor type is unknown here: its size, the label and the expert share cannot be told")
    shapes = MappingProxyType({name: _original(facts, name, shape) for name, shape in scan.component_shapes.items()})
    return Header(format="gguf", warnings=tuple(facts.keys.warnings), tensor_shapes=shapes, **fields)


class SplitFacts(NamedTuple):
    """What a shard says about its set: its number from 0, the number of shards, the tensors of all of them."""

    number: int
    parts: int
    tensors: int


def split_facts(keys: KeyValues) -> SplitFacts:
    """0 for what is not said."""
    return SplitFacts(
        *(integer(keys.values.get(f"split.{key}".encode())) or 0 for key in ("no", "count", "tensors.count"))
    )


def _architecture_facts(facts: Facts) -> dict[str, Any]:
    nextn = next((value for key in NEXTN if (value := facts.own_integer(key)) is not None), 0)
    labels = facts.own("classifier.output_labels")
    return {
        "is_moe": (facts.own_integer("expert_count") or 0) > 0,
        "expert_used": facts.own_integer("expert_used_count") or max(facts.numbers("expert_used_count"), default=0),
        "nextn_layers": nextn,
        "is_mtp": nextn > 0,
        "non_causal": facts.own("attention.causal") is False,
        "rope_scaling_type": facts.short_text(facts.prefix + "rope.scaling.type") if facts.prefix else "",
        "decision_type": facts.short_text(facts.prefix + "decision.type") if facts.prefix else "",
        "speech_type": facts.short_text(SPEECH_TYPE) if facts.architecture == "qwen3-tts" else "",
        "classifier_head": isinstance(labels, ArrayValue) and labels.length > 0,
        "sliding_window_pattern_arr": facts.numbers("attention.sliding_window_pattern"),
    }


def _template_facts(facts: Facts) -> dict[str, Any]:
    template = facts.text("tokenizer.chat_template")
    found = scan_chat_template(template)
    return {
        "has_chat_template": bool(template.strip()),
        "preserves_thinking": found.preserves_thinking,
        "effort_levels": found.effort_levels,
    }


def _original(facts: Facts, tensor: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape before a converter flattened the tensor, where it left a note of it; innermost first."""
    noted = facts.raw(ORIGINAL_SHAPE + tensor)
    elements = noted.elements if isinstance(noted, ArrayValue) else None
    if not elements or min(elements) <= 0 or math.prod(elements) != math.prod(shape):
        return shape
    return tuple(int(size) for size in reversed(elements))


def _tensor_facts(facts: Facts, scan: TensorScan) -> dict[str, Any]:
    original = {
        name: value.length
        for name in scan.wan_tensors
        if isinstance(value := facts.raw(ORIGINAL_SHAPE + name), ArrayValue)
    }
    video_kind = scan.video_kind(original)
    return {
        "vocab_elems": scan.vocab_elements,
        "expert_weight_share": scan.expert_share,
        "param_count": min(scan.param_count, limits.MAX_INTEGER),
        "quant_label": quant_label(scan.type_bytes),
        "diffusion_kind": scan.diffusion_kind,
        "has_baked_encoders": scan.has_baked_encoders,
        "video_kind": video_kind,
        "has_audio_out": scan.has_audio_out(video_kind),
        "cond_hidden": scan.caption_width or _caption_channels(facts.text("config")),
        "embedding_length": _first(facts.own_integer("embedding_length"), scan.embedding_width),
        "weights": scan.weights(),
    }


def _caption_channels(config: str) -> int:
    """`transformer.caption_channels` of a diffusers config text, 0 for anything odd."""
    if not config:
        return 0
    try:
        transformer = json.loads(config)["transformer"]
        value = transformer["caption_channels"]
    except (ValueError, TypeError, LookupError, RecursionError):
        return 0
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return int(value) if is_number and 0 < value <= limits.MAX_INTEGER else 0


def _attention(facts: Facts, fields: dict[str, Any]) -> dict[str, Any]:
    """Head counts and head dimensions (6.2 to 6.4)."""
    head_count = facts.own_integer("attention.head_count")
    if head_count is None:
        head_count = next((heads for heads in facts.numbers("attention.head_count") if heads > 0), None)
    width = fields["embedding_length"]
    derived = width // head_count if width and head_count else 0
    result: dict[str, Any] = {
        "head_count": head_count or 0,
        "key_length": _first(facts.own_integer("attention.key_length"), derived),
        "value_length": _first(facts.own_integer("attention.value_length"), derived),
    }
    per_layer = facts.numbers("attention.head_count_kv")
    if per_layer:
        return result | {
            "head_count_kv_arr": per_layer,
            "head_count_kv": next((heads for heads in per_layer if heads > 0), head_count or 0),
            "head_count_kv_sum": min(sum(per_layer), limits.MAX_INTEGER),
            "attn_layer_count": sum(heads > 0 for heads in per_layer),
        }
    heads_kv = _first(facts.own_integer("attention.head_count_kv"), head_count or 0)
    total = min(fields["block_count"] * heads_kv, limits.MAX_INTEGER)
    return result | {"head_count_kv": heads_kv, "head_count_kv_sum": total}


def _vocabulary(facts: Facts, fields: dict[str, Any]) -> int:
    """Rows of the token table; where no such tensor is in the file, what the keys say."""
    if fields["vocab_elems"]:
        width: int = fields["embedding_length"]
        return int(fields["vocab_elems"] // width) if width else 0
    tokens = facts.raw(TOKENS)
    return facts.own_integer("vocab_size") or (tokens.length if isinstance(tokens, ArrayValue) else 0)


def _first(value: int | None, fallback: int) -> int:
    """Present wins, also when it is 0."""
    return fallback if value is None else value
