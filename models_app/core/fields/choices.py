"""The closed lists that several fields share."""

from __future__ import annotations

KV_TYPES = ("f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0")
"""Cache types that may be emitted. `iq4_nl` is refused: it has no flash-attention kernel (launch.md 3.3)."""

ON_OFF = ("on", "off")
ON_OFF_AUTO = ("on", "off", "auto")

CATEGORIES = ("llm", "image", "video", "3d", "segment", "tts", "transcribe", "music", "embed")
"""Category ids in scan order (state.md 3). The scanner and the pages share this list."""

MODEL_CLASSES = ("sam", "3d", "hf", "video", "image", "decision", "embedding", "audiocpp", "tts", "asr", "llm")

LLAMA = ("llm",)
LLAMA_ALL = ("llm", "embedding", "decision")
"""Classes that llama-server runs."""
DIFFUSION = ("image", "video")
