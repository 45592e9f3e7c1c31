"""What role a component file plays, read off the shapes of its tensors (discovery.md 11.2).

File names never count here: many unrelated VAEs are published as `ae.safetensors`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

VAE = "vae"
AUDIO_VAE = "audio-vae"
CLIP = "clip"
T5 = "t5"
LLM = "llm"
RECURRENT_LLM = "recurrent-llm"
TOKENIZER = "tokenizer"
POOL_ROLES = frozenset({VAE, AUDIO_VAE, CLIP, T5, LLM, RECURRENT_LLM, TOKENIZER})
"""Roles that a diffusion model is given files of."""
PROJECTOR = "projector"
DRAFTER = "drafter"
CODEC = "codec"
ENHANCER = "enhancer"
MATTING = "matting"
"""Cuts the object out of the picture that a 3D model starts from."""
AUDIO_PART = "audio-part"
ROLES = (*sorted(POOL_ROLES), PROJECTOR, DRAFTER, CODEC, ENHANCER, MATTING, AUDIO_PART)
"""Every role that a file of a listing can have."""

LATENT_FAMILIES = {4: "sd", 16: "flux", 32: "flux2"}
"""Latent channels of a picture VAE -> family."""
FLUX2_DECODER_WIDTH = 512
"""The FLUX.2 "small decoder" has 384 and cannot be loaded by sd-server, which builds one fixed width."""
WAN_LATENTS, WIDE_WAN_LATENTS = 16, 48
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
    evidence: str = field(default="", compare=False)
    """What in the file says so, in words."""
    withheld: str = ""
    """Why no model is given such a file, "" when models are."""


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
WAN_INPUT = "patch_embedding.weight"
FLATTENED = ("conv1.weight", "decoder.conv1.weight", "decoder.conv_in.conv.weight", WAN_INPUT)
"""Video convolutions whose rank or width decides: GGUF files of some converters have no fifth dimension."""


def classify_shapes(shapes: Mapping[str, Shape]) -> Signal | None:
    """Role of a file from its tensor shapes, outermost dimension first. None: nothing that a model can be given."""
    found = recognise_shapes(shapes)
    return None if found is None or found.withheld else found


def recognise_shapes(shapes: Mapping[str, Shape]) -> Signal | None:
    """The same, with files that are known for what they are and still no use: `withheld` says why."""
    picture = shapes.get(_PICTURE_VAE, ())
    if _at(picture, 1) > 0:
        return _picture_vae(picture)
    for rule in _RULES:
        shape = shapes.get(rule.tensor, ())
        width = 0 if rule.axis is None else _at(shapes.get(rule.width_tensor or rule.tensor, ()), rule.axis)
        if shape and (len(shape) == rule.rank if rule.rank else width > 0):
            family, sees = rule.family or _family(rule.role, shapes), _sees(rule.role, shapes)
            return Signal(rule.role, family, width, sees, _evidence(rule.tensor, shape))
    return None


def _picture_vae(shape: Shape) -> Signal:
    family = LATENT_FAMILIES.get(shape[1], "")
    evidence = _evidence(_PICTURE_VAE, shape)
    if not family:
        return Signal(VAE, evidence=evidence, withheld=f"{shape[1]:,} latent channels: no model here reads those")
    if family == "flux2" and shape[0] != FLUX2_DECODER_WIDTH:
        reason = f"a small decoder, {shape[0]:,} wide: sd-server builds {FLUX2_DECODER_WIDTH} and cannot load it"
        return Signal(VAE, family, evidence=evidence, withheld=reason)
    return Signal(VAE, family, evidence=evidence)


def unflattened(shapes: Mapping[str, Shape]) -> dict[str, Shape]:
    """The shapes with five-dimensional convolutions restored that a converter of sd-server wrote as four.

    It multiplies the two outermost dimensions; the bias still has as many elements as the first of them.
    """
    whole = dict(shapes)
    for tensor in FLATTENED:
        shape, outputs = shapes.get(tensor, ()), _at(shapes.get(bias_of(tensor), ()), 0)
        if len(shape) == 4 and outputs > 0 and shape[0] > outputs and shape[0] % outputs == 0:
            whole[tensor] = (outputs, shape[0] // outputs, *shape[1:])
    return whole


def wan_latent_width(shapes: Mapping[str, Shape]) -> int:
    """Latent channels of a Wan network from its way in, 0 when it is not told: 48 for Wan 2.2 TI2V, else 16.

    Others read more than 16 channels too, but those on top are masks and conditions. Shapes are outermost first.
    """
    channels = _at(unflattened(shapes).get(WAN_INPUT, ()), 1)
    if channels == WIDE_WAN_LATENTS:
        return WIDE_WAN_LATENTS
    return WAN_LATENTS if channels > 0 else 0


def bias_of(tensor: str) -> str:
    return tensor.removesuffix("weight") + "bias"


def _evidence(tensor: str, shape: Shape) -> str:
    return f"tensor {tensor}, {' x '.join(f'{size:,}' for size in shape)}"


def _family(role: str, shapes: Mapping[str, Shape]) -> str:
    """UMT5 and T5 have one width and are told apart by their vocabularies."""
    is_umt5 = role == T5 and _at(shapes.get("shared.weight", ()), 0) == UMT5_VOCABULARY
    return UMT5 if is_umt5 else ""


def _sees(role: str, shapes: Mapping[str, Shape]) -> bool:
    return role == LLM and any(name.startswith(VISION_PREFIXES) for name in shapes)


def _at(shape: Shape, axis: int) -> int:
    return shape[axis] if axis < len(shape) else 0
