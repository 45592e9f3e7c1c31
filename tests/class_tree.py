"""One model of every class, and of every task and family that is served in a way of its own, with what it needs."""

from __future__ import annotations

from pathlib import Path

from tests.whole_tree import T5_SIGNAL, Tree
from tests.zoo import zoo

CHAT = "qwen3-0.6b-q8_0"
CHAT_ON_VLLM = "lfm2-1.2b-q8_0"
EMBEDDER = "nomic-embed-text-v1.5-f16"
AUDIO_FAMILIES = ("echo_tts", "qwen3_asr", "ace_step", "htdemucs", "sheetsage2", "seed_vc")
"""Speech, transcription, music, separation, notes; the last one is served by nobody."""


def build(base: Path) -> None:
    """The files below `base`. Where a model can be given to vllm, nothing here says so: that is an override's."""
    tree = Tree(base)
    for name in (CHAT, CHAT_ON_VLLM, EMBEDDER):
        zoo.write_model(name, str(base))
    tree.chat("decider-Q8_0.gguf", "qwen3", qwen3__decision__type="kev")
    tree.chat("classifier-Q8_0.gguf", "qwen3", qwen3__attention__causal=False)
    tree.hugging_face("Qwen/Qwen3-4B-Instruct")
    _pictures(tree)
    _sound(tree)
    tree.raw("sam2.1_hiera_tiny_f16.ggml", b"x" * 40)
    tree.raw("3d/TRELLIS.2-4B/pipeline.json", b"{}")
    tree.safetensors("3d/TRELLIS.2-4B/ckpts/a.safetensors", {"w": [4]})
    tree.raw("3d/dinov3-vitl/model.safetensors", b"x" * 9)
    tree.raw("3d/dinov3-vitl/config.json", b"{}")


def _pictures(tree: Tree) -> None:
    tree.gguf("image/flux1-dev-Q4_0.gguf", "flux", {"txt_in.weight": [4096, 8], "double_blocks.0.x": [4]})
    tree.gguf("image/sdxl-base-Q8_0.gguf", "sdxl")
    tree.gguf("image/qwen-image-edit-Q4_0.gguf", "qwen_image", {"txt_in.weight": [3584, 8]})
    tree.safetensors("image/ae.safetensors", {"decoder.conv_in.weight": [512, 16, 3, 3]})
    tree.safetensors("image/t5xxl.safetensors", {T5_SIGNAL: [4096, 4096], "shared.weight": [32128, 4096]})
    tree.chat("image/qwen-image-edit-PE-I2I-Q8_0.gguf", "qwen3vl", width=4096)
    tree.gguf("image/Wan2.2-TI2V-5B-Q8_0.gguf", "wan", {"patch_embedding.weight": [2, 2, 1, 48, 8]})
    tree.gguf("image/ltx-2-Q4_0.gguf", "ltxv", {"patchify_proj.weight": [128, 8], "audio_patchify_proj.weight": [8, 8]})
    tree.gguf("image/nameless-h3.gguf", "", {"video_patch_proj.x": [8], "condition_proj.weight": [5120, 8]})


def _sound(tree: Tree) -> None:
    tree.gguf("tts/Qwen3-TTS-1.7B-Q8_0.gguf", "qwen3-tts")
    tree.gguf("tts/Qwen3-TTS-Tokenizer-12Hz-F16.gguf", "qwen3-tts-tokenizer")
    tree.gguf("Kokoro_espeak_f16.gguf", "kokoro")
    tree.gguf("parakeet-tdt-0.6b-f16.gguf", "parakeet")
    for family in AUDIO_FAMILIES:
        tree.gguf(f"{family.replace('_', '-')}-Q8_0.gguf", "audiocpp", audiocpp__model_spec__family=family)
    tree.gguf("yue/yue2-3b-Q8_0.gguf", "audiocpp", audiocpp__model_spec__family="yue2")
    tree.gguf("yue/yue2-vae-f16.gguf", "audiocpp")
    tree.gguf("alone/yue2-7b-Q8_0.gguf", "audiocpp", audiocpp__model_spec__family="yue2")
    tree.gguf("MiniMax-Music-3-GGUF/vocoder.gguf", "audiocpp", audiocpp__model_spec__family="minimax_music3")
