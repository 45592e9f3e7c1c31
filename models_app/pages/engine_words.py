"""What pages call the engines that run models."""

from __future__ import annotations

from collections.abc import Mapping

from models_app.core.classes.tts import QWENTTS

KIND_NAMES: Mapping[str, str] = {
    "llama": "llama-server (llama.cpp)",
    "vllm": "vllm",
    "sd": "sd-server (stable-diffusion.cpp)",
    "tts": "tts-server (qwentts.cpp)",
    "ttscpp": "tts-server (TTS.cpp)",
    "asr": "parakeet-server (parakeet.cpp)",
    "audiocpp": "audiocpp_server (audio.cpp)",
    "sam": "sam3_server",
    "trellis2": "trellis2-server",
    "upscale": "realesrgan-ncnn-vulkan",
}
"""Kind of a backend -> its program and project, as people know them."""

CLASS_WORDS: Mapping[str, str] = {
    "llm": "chat",
    "hf": "chat (folder)",
    "tts": "speech",
    "asr": "transcription",
    "audiocpp": "audio",
    "sam": "segmentation",
    "3d": "3D",
}
"""Class of a model -> what pages call it, where that is not its own name."""


def engine_name(engine: str) -> str:
    """The program of a plan's engine."""
    return KIND_NAMES.get("tts" if engine == QWENTTS else engine, engine)


def class_name(model_class: str) -> str:
    """A class in the middle of a sentence."""
    return CLASS_WORDS.get(model_class, model_class) or "not served"
