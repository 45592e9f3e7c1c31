"""Typed access to the keys of a header, together with the rules of its architecture."""

from __future__ import annotations

from dataclasses import dataclass

from models_app.core.catalog import Header, LayerWeights
from models_app.core.planning.architectures import ARCHITECTURES, UNKNOWN, Architecture


@dataclass(frozen=True, slots=True)
class ModelKeys:
    """One header and what its architecture makes of it. All reads are safe for any header."""

    header: Header
    rules: Architecture

    @classmethod
    def of(cls, header: Header) -> ModelKeys:
        return cls(header, ARCHITECTURES.get(header.architecture, UNKNOWN))

    @property
    def trunk(self) -> int:
        """Blocks that run: all but the draft blocks at the end."""
        return max(0, self.header.block_count - self.header.nextn_layers)

    def has(self, key: str) -> bool:
        return key in self.header.extra

    def number(self, key: str, default: int = 0) -> int:
        """An integer key; absent, negative or of another type: the default. (Some files store counts as floats.)"""
        value = self.header.extra.get(key)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else default

    def array(self, key: str) -> tuple[int, ...]:
        """An array of integers or booleans, as integers; anything else is empty."""
        value = self.header.extra.get(key)
        if not isinstance(value, tuple) or not all(isinstance(item, int) for item in value):
            return ()
        return tuple(max(0, int(item)) for item in value)

    def per_block(self, key: str, index: int) -> int:
        """A key that is one number, or an array with one for each block; beyond its end, its first number above 0."""
        values = self.array(key)
        if not values:
            return self.number(key)
        return values[index] if index < len(values) else next((value for value in values if value), 0)

    def heads(self, index: int) -> int:
        return self.per_block("attention.head_count", index) or self.header.head_count

    def kv_heads(self, index: int) -> int:
        listed = self.header.head_count_kv_arr
        return max(0, listed[index]) if index < len(listed) else self.header.head_count_kv

    def feed_forward(self, index: int) -> int:
        return self.per_block("feed_forward_length", index)

    def head_lengths(self, sliding: bool) -> tuple[int, int]:
        """Lengths of a K and a V head; sliding blocks may have their own."""
        header = self.header
        if not sliding:
            return header.key_length, header.value_length
        return header.key_length_swa or header.key_length, header.value_length_swa or header.value_length

    @property
    def stacked_inputs(self) -> int:
        """Further rows of the embedding's width that the input has for every token."""
        return self.number("n_deepstack_layers") if self.rules.stacked_inputs else 0

    @property
    def latent(self) -> bool:
        """The cache holds one compressed row per token, and no V."""
        return self.number("attention.key_length_mla") > 0 and self.number("attention.value_length_mla") > 0

    @property
    def vocabulary(self) -> int:
        """Rows of logits. The count of tokens is what llama.cpp uses."""
        return self.number("tokenizer.ggml.tokens") or self.number("vocab_size") or self.header.vocab_size

    def weights(self, index: int) -> LayerWeights | None:
        """Widths and bytes of one block, None where the tensors are not known."""
        layers = self.header.weights.layers
        return layers[index] if index < len(layers) else None
