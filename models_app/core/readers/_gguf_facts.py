"""Which keys of a GGUF file become which facts, and typed look-ups of them (headers.md 5)."""

from __future__ import annotations

import math

from models_app.core.readers import limits
from models_app.core.readers._gguf_keys import ArrayValue, KeyValues, Value
from models_app.core.readers._names import is_plain

TEXTS: tuple[tuple[str, str], ...] = (
    ("general.type", "general_type"),
    ("general.name", "general_name"),
    ("general.basename", "base_name"),
    ("general.size_label", "size_label"),
    ("general.finetune", "fine_tune"),
)
INTEGERS: tuple[tuple[str, str], ...] = (
    ("block_count", "block_count"),
    ("expert_count", "expert_count"),
    ("context_length", "context_length"),
    ("attention.key_length_swa", "key_length_swa"),
    ("attention.value_length_swa", "value_length_swa"),
    ("attention.sliding_window", "sliding_window"),
    ("attention.sliding_window_pattern", "sliding_window_pattern"),
    ("rope.scaling.original_context_length", "rope_orig_ctx_len"),
    ("full_attention_interval", "full_attn_interval"),
    ("ssm.inner_size", "ssm_inner_size"),
    ("ssm.conv_kernel", "ssm_conv_kernel"),
    ("ssm.state_size", "ssm_state_size"),
    ("pooling_type", "pooling_type"),
    ("vision.image_size", "vision_image_size"),
    ("vision.patch_size", "vision_patch_size"),
    ("vision.embedding_length", "vision_embd"),
    ("vision.feed_forward_length", "vision_ffn"),
    ("vision.block_count", "vision_blocks"),
    ("vision.attention.head_count", "vision_heads"),
    ("vision.spatial_merge_size", "vision_merge"),
)
FLOATS: tuple[tuple[str, str], ...] = (
    ("rope.scaling.factor", "rope_scaling_factor"),
    ("rope.freq_base", "rope_freq_base"),
)
_DERIVED_FROM = (
    "embedding_length",
    "expert_used_count",
    "attention.head_count",
    "attention.head_count_kv",
    "attention.key_length",
    "attention.value_length",
    "attention.causal",
    "nextn_predict_layers",
    "num_nextn_predict_layers",
    "rope.scaling.type",
    "decision.type",
    "classifier.output_labels",
)
NEXTN = ("nextn_predict_layers", "num_nextn_predict_layers")
_ZERO_IS_NOT_ABSENT = {"attention.sliding_window"}
"""Stays in `extra` as well: llama4 has a window without the key, and none with a 0."""
CONSUMED = ({key for key, _ in (*INTEGERS, *FLOATS)} | set(_DERIVED_FROM)) - _ZERO_IS_NOT_ABSENT
CONSUMED_WHOLE = {
    "split.no",
    "split.count",
    "split.tensors.count",
    "general.alignment",
}
TOKENS = "tokenizer.ggml.tokens"
ORIGINAL_SHAPE = "comfy.gguf.orig_shape."
SPEECH_TYPE = "qwen3-tts.model_type"


class Facts:
    """Typed look-ups. A wanted key with another value type reads as absent."""

    def __init__(self, keys: KeyValues) -> None:
        self.keys = KeyValues(keys.values, keys.alignment, list(keys.warnings))
        self.architecture = self.short_text("general.architecture")
        self.prefix = f"{self.architecture}." if self.architecture else ""

    def raw(self, key: str) -> Value | None:
        return self.keys.values.get(key.encode())

    def own(self, key: str) -> Value | None:
        """The value of a key of this architecture; a file without one has no such keys."""
        return self.raw(self.prefix + key) if self.prefix else None

    def own_integer(self, key: str) -> int | None:
        return integer(self.own(key))

    def text(self, key: str) -> str:
        value = self.raw(key)
        return value.decode("utf-8", "replace") if isinstance(value, bytes) else ""

    def short_text(self, key: str) -> str:
        """A name that ends up in commands and files: anything but plain characters reads as absent."""
        text = self.text(key)
        if not text or is_plain(text):
            return text
        self.keys.warn(f"{key} holds characters that no name may have and was ignored")
        return ""

    def numbers(self, key: str) -> tuple[int, ...]:
        """A per-layer array of counts, () when absent, empty, not kept or not of counts."""
        value = self.own(key)
        if not isinstance(value, ArrayValue):
            return ()
        if not value.elements:
            if value.length:
                self.keys.warn(f"{self.prefix}{key} is an array of another kind or size and was ignored")
            return ()
        if min(value.elements) < 0 or max(value.elements) > limits.MAX_INTEGER:
            self.keys.warn(f"{self.prefix}{key} holds numbers out of range and was ignored")
            return ()
        return tuple(int(element) for element in value.elements)


def integer(value: Value | None) -> int | None:
    """A count. Negative, or more than 63 bits: absent."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= limits.MAX_INTEGER:
        return value
    return None


def number(value: Value | None) -> float:
    """A positive factor, 0 when absent or not finite."""
    return value if isinstance(value, float) and math.isfinite(value) and value > 0 else 0.0
