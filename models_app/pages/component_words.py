"""Words for roles of component files, and for what decided that a model gets one of them."""

from __future__ import annotations

from models_app.core.catalog import Header
from models_app.core.classes.image import image_architecture
from models_app.core.components import resolve, signals
from models_app.core.components.arms import HOST_PIN, Pick
from models_app.core.components.naming import encoder_architectures
from models_app.core.components.pool import PoolEntry
from models_app.core.components.ranking import ONLY, PATH
from quartermaster_site.figures import counted

ROLES = {
    signals.VAE: "VAE",
    signals.AUDIO_VAE: "audio VAE",
    signals.CLIP: "CLIP text encoder",
    signals.T5: "T5 text encoder",
    signals.LLM: "text encoder",
    signals.RECURRENT_LLM: "recurrent text encoder",
    signals.TOKENIZER: "tokenizer",
    signals.PROJECTOR: "projector",
    signals.DRAFTER: "drafter",
    signals.CODEC: "speech codec",
    signals.ENHANCER: "prompt enhancer",
    signals.MATTING: "background remover",
    signals.AUDIO_PART: "part of an audio model",
}
"""Role of a file -> what pages call it."""

WIRED = {
    "vae": "VAE",
    "llm": "text encoder",
    "llm_vision": "vision projector of its text encoder",
    "clip_l": "CLIP-L text encoder",
    "clip_g": "CLIP-G text encoder",
    "t5xxl": "T5 text encoder",
    "audio_vae": "audio VAE",
    "projector": "projector",
    "drafter": "drafter",
    "codec": "speech codec",
    "enhancer": "prompt enhancer",
    "edit enhancer": "prompt enhancer for edits",
    "dino": "image encoder (DINOv3)",
    "matting": "background remover",
    "audio part": "part of the model",
}
"""Role in a launch -> what pages call it."""

BECAUSE = {
    ONLY: "the only file of its kind",
    "layers": "its width fits exactly",
    "architecture": "its architecture ranks first",
    "size": "the largest that fits",
    "width": "the widest",
    "name": "its name fits",
    PATH: "by path alone",
    HOST_PIN: "pinned on the host",
    resolve.MODEL_PIN: "pinned for this model",
    resolve.BESIDE: "beside the text encoder",
    resolve.MADE_FOR_IT: "made for this family",
    "folder": "in the model's folder",
    "name-match": "in a folder of several families, its name fits",
    "quant": "borrowed from another quant",
    "base": "borrowed from the untuned base model",
    "family": "borrowed from a finetune of the family",
    "enhancer": "its name says so",
    "near": "found near the package",
}
"""What decided -> in words."""

PIN_KEYS = {
    (signals.VAE, "flux"): "fluxVae",
    (signals.VAE, "flux2"): "flux2Vae",
    (signals.VAE, "sd"): "sdxlVae",
    (signals.VAE, "video3d"): "videoVae",
    (signals.AUDIO_VAE, "video3d"): "audioVae",
    (signals.CLIP, "768"): "clipL",
    (signals.CLIP, "1280"): "clipG",
    (signals.T5, ""): "t5",
    (signals.LLM, ""): "qwenLlm",
}
"""Role, and family or width -> the pin of the host that such a file may be."""

OVERRIDE_KEYS = {
    "vae": "vaePath",
    "llm": "textEncoderPath",
    "llm_vision": "llmVisionPath",
    "clip_l": "clipLPath",
    "clip_g": "clipGPath",
    "t5xxl": "t5Path",
    "audio_vae": "audioVaePath",
}
"""Role in a launch -> the pin of a model."""


def is_ambiguous(pick: Pick) -> bool:
    """Did nothing but the order of paths decide?"""
    return pick.because == PATH


def because_text(pick: Pick) -> str:
    """What decided, with the limit that the choice was made under."""
    text = BECAUSE.get(pick.because, pick.because)
    if is_ambiguous(pick):
        text = f"{text} among {counted(len(pick.ranking.equals) + 1, 'equal candidate')}"
    if pick.limited_to:
        text = f"{text}; limited to architecture {', '.join(pick.limited_to)}"
    return text


def pin_key(role: str, family: str, width: int) -> str:
    """The host's pin for such a file, "" where there is none."""
    for kind in (family, str(width), ""):
        if key := PIN_KEYS.get((role, kind)):
            return key
    return ""


def need_text(role: str, header: Header, name: str) -> str:
    """What a model lacks: the role, and what would fill it where that can be said."""
    text = WIRED.get(role, role)
    if role != "llm" or not header.cond_hidden:
        return text
    kinds = encoder_architectures(image_architecture(header), name)
    wanted = f"{header.cond_hidden:,} wide, or stacked to that width"
    return f"{text} ({wanted}{', of architecture ' + ', '.join(kinds) if kinds else ''})"


def shape_text(entry: PoolEntry) -> str:
    """Family and width, as far as they say something."""
    unit = "channels" if entry.role in (signals.VAE, signals.AUDIO_VAE) else "wide"
    parts = [entry.family] if entry.family else []
    parts += [f"{entry.width:,} {unit}"] if entry.width else []
    parts += ["sees"] if entry.vision else []
    return " · ".join(parts)
