"""What role a component file plays, read off the shapes of its tensors (discovery.md 11.2).

File names never count here: many unrelated VAEs are published as `ae.safetensors`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

VAE = "vae"
AUDIO_VAE = "audio-vae"
CLIP = "clip"
T5 = "t5"
LLM = "llm"
RECURRENT_LLM = "recurrent-llm"
TOKENIZER = "tokenizer"

LATENT_FAMILIES = {4: "sd", 16: "flux", 32: "flux2"}
"""Latent channels of a picture VAE -> family."""
FLUX2_DECODER_WIDTH = 512
"""The FLUX.2 "small decoder" has 384 and cannot be loaded by sd-server, which builds one fixed width."""
UMT5 = "umt5"
UMT5_VOCABULARY = 256_384
VISION_PREFIXES = ("vision_tower.", "visual.")

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Signal:
    """Role of a file. `width` is what a model is matched by: latent channels of some VAEs, hidden width of encoders."""

    role: str
    family: str = ""
    width: int = 0
    vision: bool = False


@dataclass(frozen=True, slots=True)
class _Rule:
    """A tensor that decides: its rank (0 for any), the axis of the width, and where that is read (blank: itself)."""

    tensor: str
    role: str
    family: str = ""
    rank: int = 0
    axis: int | None = None
    width_tensor: str = ""


_PICTURE_VAE = "decoder.conv_in.weight"
_RULES = (
    _Rule("conv1.weight", VAE, "wan3d", rank=5, axis=1, width_tensor="decoder.conv1.weight"),
    _Rule("encoder.conv_in.weight", VAE, "video3d", rank=5),
    _Rule("decoder.conv_in.conv.weight", VAE, "ltx", rank=5, axis=1),
    _Rule("audio_vae.decoder.conv_in.conv.weight", AUDIO_VAE, "ltx", rank=4, axis=1),
    _Rule("dec_in_proj.weight", AUDIO_VAE, "video3d", rank=3, axis=1),
    _Rule("text_model.embeddings.token_embedding.weight", CLIP, axis=1),
    _Rule("model.embed_tokens.weight", LLM, axis=1),
    _Rule("encoder.block.0.layer.0.SelfAttention.q.weight", T5, axis=0),
)
"""In order; the first that holds decides. A rule without a rank needs a width above 0."""


def classify_shapes(shapes: Mapping[str, Shape]) -> Signal | None:
    """Role of a file from its tensor shapes, outermost dimension first. None: not a component."""
    picture = shapes.get(_PICTURE_VAE, ())
    if _at(picture, 1) > 0:
        return _picture_vae(picture)
    for rule in _RULES:
        shape = shapes.get(rule.tensor, ())
        width = 0 if rule.axis is None else _at(shapes.get(rule.width_tensor or rule.tensor, ()), rule.axis)
        if shape and (len(shape) == rule.rank if rule.rank else width > 0):
            return Signal(rule.role, rule.family or _family(rule.role, shapes), width, _sees(rule.role, shapes))
    return None


def _picture_vae(shape: Shape) -> Signal | None:
    family = LATENT_FAMILIES.get(shape[1])
    if family is None or (family == "flux2" and shape[0] != FLUX2_DECODER_WIDTH):
        return None
    return Signal(VAE, family)


def _family(role: str, shapes: Mapping[str, Shape]) -> str:
    """UMT5 and T5 have one width and are told apart by their vocabularies."""
    is_umt5 = role == T5 and _at(shapes.get("shared.weight", ()), 0) == UMT5_VOCABULARY
    return UMT5 if is_umt5 else ""


def _sees(role: str, shapes: Mapping[str, Shape]) -> bool:
    return role == LLM and any(name.startswith(VISION_PREFIXES) for name in shapes)


def _at(shape: Shape, axis: int) -> int:
    return shape[axis] if axis < len(shape) else 0
