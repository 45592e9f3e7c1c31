"""A models tree with files of every kind that discovery knows, written by code: real headers, holes for the data."""

from __future__ import annotations

import json
import os
import struct
from pathlib import Path
from typing import Any

from models_app.core.readers.tensor_types import tensor_bytes
from tests.gguf_bytes import header_bytes
from tests.zoo import zoo

F16, F32 = 1, 0
QUANTS = ("Q4_K_M", "Q5_K_M", "Q6_K", "Q8_0", "IQ4_XS", "UD-Q4_K_XL", "BF16")
T5_SIGNAL = "encoder.block.0.layer.0.SelfAttention.q.weight"
Tensors = dict[str, list[int]]
"""Name -> shape as the format writes it: innermost first in GGUF, outermost first in safetensors."""


class Tree:
    """Writes files below a folder."""

    def __init__(self, base: Path) -> None:
        self.base = base

    def raw(self, name: str, data: bytes = b"", size_bytes: int = 0) -> Path:
        path = self.base / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        if size_bytes > len(data):
            os.truncate(path, size_bytes)
        return path

    def gguf(self, name: str, architecture: str, tensors: Tensors | None = None, **facts: Any) -> Path:
        """Facts with a double underscore are whole keys, others belong to the architecture."""
        kv = [["general.architecture", "string", architecture]]
        for key, value in facts.items():
            full = key.replace("__", ".") if "__" in key else f"{architecture}.{key}"
            kv.append([full, {str: "string", bool: "bool"}.get(type(value), "u32"), value])
        listed = [{"name": tensor, "shape": shape, "type": F16} for tensor, shape in (tensors or {}).items()]
        head = header_bytes({"kv": kv, "tensors": listed})
        data = sum(-(-(tensor_bytes(F16, shape) or 0) // 32) * 32 for shape in (tensors or {}).values())
        return self.raw(name, head, -(-len(head) // 32) * 32 + data)

    def chat(self, name: str, architecture: str = "qwen3", width: int = 64, blocks: int = 4, **facts: Any) -> Path:
        """A chat model; the three facts of the family gate are there."""
        return self.gguf(
            name,
            architecture,
            embedding_length=width,
            block_count=blocks,
            vocab_size=1000,
            context_length=4096,
            **facts,
        )

    def projector(self, name: str) -> Path:
        return self.gguf(name, "clip")

    def safetensors(self, name: str, tensors: Tensors) -> Path:
        table, offset = {}, 0
        for tensor, shape in tensors.items():
            size = 2
            for length in shape:
                size *= length
            table[tensor] = {"dtype": "F16", "shape": shape, "data_offsets": [offset, offset + size]}
            offset += size
        text = json.dumps(table).encode()
        return self.raw(name, struct.pack("<Q", len(text)) + text, 8 + len(text) + offset)

    def hugging_face(self, folder: str, *, shards: int = 1, missing: int = 0, **config: Any) -> None:
        document = {
            "architectures": ["Qwen3ForCausalLM"],
            "model_type": "qwen3",
            "num_hidden_layers": 4,
            "hidden_size": 64,
            "num_attention_heads": 4,
            "max_position_embeddings": 4096,
            "torch_dtype": "bfloat16",
            **config,
        }
        self.raw(f"{folder}/config.json", json.dumps(document).encode())
        for number in range(1, shards + 1):
            name = "model.safetensors" if shards == 1 else f"model-{number:05}-of-{shards:05}.safetensors"
            if number != missing:
                self.safetensors(f"{folder}/{name}", {"w": [4, 4]})


def build(base: Path) -> list[tuple[str, str]]:
    """The whole tree; returns its roots as (path, category). The last root lies inside the first."""
    tree = Tree(base)
    _zoo(tree)
    _families(tree)
    _shards(tree)
    _hugging_face(tree)
    _hub_cache(tree)
    _components(tree)
    _diffusion(tree)
    _other_classes(tree)
    _not_rows(tree)
    return [(str(base / "llm"), ""), (str(base / "image"), "image"), (str(base / "llm/zoo"), "embed")]


def _zoo(tree: Tree) -> None:
    for name in ("llama32-1b-q8_0", "qwen3-0.6b-q8_0", "gemma3-1b-q8_0", "lfm2-1.2b-q8_0", "smollm3-3b-bf16"):
        zoo.write_model(name, str(tree.base / "llm/zoo/models"))
    for name in ("qwen3-30b-a3b-q4_k_m", "nomic-embed-text-v1.5-f16", "qwen3-embedding-0.6b-q8_0"):
        zoo.write_model(name, str(tree.base / "llm/zoo/models"))


def _families(tree: Tree) -> None:
    """Quants in folders of their own; drafter and projector beside one of them only."""
    for quant in QUANTS:
        tree.chat(f"llm/unsloth/Qwen3.6-27B-{quant}-GGUF/Qwen3.6-27B-{quant}.gguf", "qwen35")
        tree.chat(f"llm/bartowski/Gemma-4-12B-it-GGUF/Gemma-4-12B-it-{quant}.gguf", "gemma4")
        tree.chat(f"llm/tuner/Qwen3.6-27B-Heretic-{quant}/Qwen3.6-27B-Heretic-{quant}.gguf", "qwen35")
        tree.chat(f"llm/flat/Mistral-7B-v0.3.{quant}.gguf", "llama")
    for quant in ("F16", "BF16", "F32"):
        tree.projector(f"llm/unsloth/Qwen3.6-27B-Q4_K_M-GGUF/mmproj-{quant}.gguf")
    tree.chat("llm/unsloth/Qwen3.6-27B-Q6_K-GGUF/mtp-Qwen3.6-27B-Q8_0.gguf", "qwen35")
    tree.chat("llm/unsloth/Qwen3.6-27B-Q6_K-GGUF/Qwen3.6-27B-FastMTP-Q8_0.gguf", "qwen35")
    tree.chat("llm/bartowski/Gemma-4-12B-it-GGUF/gemma-4-12b-dflash-Q4_K_M.gguf", "gemma4")
    tree.projector("llm/bartowski/Gemma-4-12B-it-GGUF/vision-tower.gguf")
    # Same name, other width: the gate keeps the projector away.
    tree.chat("llm/other/Qwen3.6-27B-Q2_K/Qwen3.6-27B-Q2_K.gguf", "qwen35", width=128)
    # A folder of several families: the projector goes to the one that it names.
    tree.chat("llm/flat/Phi-4-14B-Q4_K_M.gguf", "phi3")
    tree.projector("llm/flat/mmproj-Phi-4-14B-F16.gguf")
    for owner in ("alice", "bob"):
        tree.chat(f"llm/{owner}/Same-3B-GGUF/Same-3B-Q8_0.gguf", "llama")


def _shards(tree: Tree) -> None:
    for number in range(1, 5):
        tree.chat(f"llm/big/Whole-70B-GGUF/Whole-70B-Q4_K_M-{number:05}-of-00004.gguf", "llama")
        if number != 3:
            tree.chat(f"llm/big/Gap-70B-GGUF/Gap-70B-Q4_K_M-{number:05}-of-00004.gguf", "llama")
        if number != 1:
            tree.chat(f"llm/big/Headless-70B-GGUF/Headless-70B-Q4_K_M-{number:05}-of-00004.gguf", "llama")


def _hugging_face(tree: Tree) -> None:
    tree.hugging_face("llm/Qwen/Qwen3-4B-Instruct")
    tree.hugging_face("llm/Qwen/Qwen3-32B-AWQ", shards=3, quantization_config={"quant_method": "awq"})
    tree.hugging_face("llm/Qwen/Qwen3-14B", shards=3, missing=2)
    tree.hugging_face("llm/google/bert-base", architectures=["BertModel"])
    tree.hugging_face("llm/google/blind", architectures=["T5ForConditionalGeneration"], vision_config=None)
    tree.hugging_face("llm/both/Converted-8B")
    tree.chat("llm/both/Converted-8B/Converted-8B-Q8_0.gguf", "llama")
    tree.raw("image/pipe/model_index.json", b"{}")
    tree.hugging_face("image/pipe/text_encoder")


def _hub_cache(tree: Tree) -> None:
    """Snapshots are links to blobs; `refs/main` names the newer of two."""
    cache = "llm/hub/models--acme--Tiny-1B-GGUF"
    for commit, quant in (("aaaa", "Q4_K_M"), ("bbbb", "Q8_0")):
        blob = tree.chat(f"{cache}/blobs/{commit}-sha", "llama")
        link = tree.base / f"{cache}/snapshots/{commit}/Tiny-1B-{quant}.gguf"
        link.parent.mkdir(parents=True)
        link.symlink_to(os.path.relpath(blob, link.parent))
    tree.raw(f"{cache}/refs/main", b"bbbb\n")
    folder = "llm/hub/models--Qwen--Qwen3-4B--Chat/snapshots/cccc"
    tree.hugging_face(folder)
    (tree.base / "llm/linked").symlink_to(tree.base / "elsewhere")
    tree.chat("elsewhere/repo/Linked-2B-Q8_0.gguf", "llama")
    (tree.base / "llm/flat/again.gguf").symlink_to(tree.base / "llm/flat/Phi-4-14B-Q4_K_M.gguf")


def _components(tree: Tree) -> None:
    parts = "image/components"
    picture = "decoder.conv_in.weight"
    tree.safetensors(f"{parts}/ae.safetensors", {picture: [512, 16, 3, 3]})
    tree.safetensors(f"{parts}/sdxl-vae.safetensors", {picture: [512, 4, 3, 3]})
    tree.safetensors(f"{parts}/flux2-ae.safetensors", {picture: [512, 32, 3, 3]})
    tree.safetensors(f"{parts}/flux2-small.safetensors", {picture: [384, 32, 3, 3]})
    for name, width in (("wan_2.1_vae", 16), ("qwen_image_vae", 16), ("qwen21_vae", 64), ("wan2.2_vae", 48)):
        shapes = {"conv1.weight": [2, 2, 1, 1, 1], "decoder.conv1.weight": [4, width, 3, 3, 3]}
        tree.safetensors(f"{parts}/{name}.safetensors", shapes)
    tree.safetensors(f"{parts}/h3-video.safetensors", {"encoder.conv_in.weight": [4, 3, 3, 3, 3]})
    tree.safetensors(f"{parts}/h3-audio.safetensors", {"dec_in_proj.weight": [8, 6, 1]})
    tree.safetensors(f"{parts}/ltx-video.safetensors", {"decoder.conv_in.conv.weight": [8, 128, 3, 3, 3]})
    tree.safetensors(f"{parts}/ltx-audio.safetensors", {"audio_vae.decoder.conv_in.conv.weight": [8, 8, 3, 3]})
    tokens = "text_model.embeddings.token_embedding.weight"
    tree.safetensors(f"{parts}/clip_l.safetensors", {tokens: [8, 768]})
    tree.safetensors(f"{parts}/clip_g.safetensors", {tokens: [8, 1280]})
    tree.safetensors(f"{parts}/t5xxl_fp16.safetensors", {T5_SIGNAL: [4096, 4096], "shared.weight": [32128, 4096]})
    tree.safetensors(f"{parts}/umt5_fp16.safetensors", {T5_SIGNAL: [4096, 4096], "shared.weight": [256384, 4096]})
    tree.safetensors(f"{parts}/qwen3_4b.safetensors", {"model.embed_tokens.weight": [8, 2560]})
    tree.safetensors(f"{parts}/a-lora.safetensors", {"lora_unet_x.lora_down.weight": [4, 64]})
    tree.gguf(f"{parts}/t5xxl-Q8_0.gguf", "t5encoder", embedding_length=4096)
    tree.gguf(f"{parts}/umt5-xxl-encoder-Q5_K_M.gguf", "umt5", embedding_length=4096)
    tree.gguf(f"{parts}/some-encoding-model.gguf", "umt5", embedding_length=4096)
    tree.gguf(f"{parts}/taesdxl.gguf", "", {"decoder.1.weight": [3, 3, 4, 64]})
    tree.gguf(f"{parts}/flux-vae-f16.gguf", "vae", {picture: [3, 3, 16, 512]})
    tree.gguf(f"{parts}/clip_l.gguf", "", {tokens: [768, 8]})
    tree.chat("image/llm/Qwen2.5-VL-7B-Instruct-Q8_0.gguf", "qwen2vl", width=3584)
    tree.projector("image/llm/Qwen2.5-VL-7B-Instruct-mmproj-F16.gguf")
    tree.chat("image/gemma/gemma4-12b-with-proj-ltx-2.5-Q5_K_M.gguf", "gemma4", width=3840)
    tree.chat("image/moss/Qwen3.5-9B-Q8_0.gguf", "qwen35", width=4096, full_attention_interval=4)
    for direction in ("T2I", "I2I"):
        tree.chat(f"image/pe/Qwen-Image-2.1-PE-{direction}-Q8_0.gguf", "qwen3vl", width=4096)


def _diffusion(tree: Tree) -> None:
    tree.gguf("image/dit/flux1-dev-Q4_0.gguf", "flux", {"txt_in.weight": [4096, 8], "double_blocks.0.x": [4]})
    tree.gguf("image/dit/z-image-turbo-Q4_0.gguf", "lumina2", {"cap_embedder.1.weight": [2560, 8]})
    tree.gguf("image/dit/qwen-image-2.1-Q4_0.gguf", "qwen_image", {"txt_in.in_layer.weight": [4096, 8]})
    tree.gguf("image/dit/qwen-image-edit-Q4_0.gguf", "qwen_image", {"txt_in.weight": [3584, 8]})
    tree.gguf("image/dit/sdxl-base-Q8_0.gguf", "sdxl")
    tree.gguf("image/dit/Wan2.2-TI2V-5B-Q8_0.gguf", "wan", {"patch_embedding.weight": [2, 2, 1, 48, 8]})
    tree.gguf(
        "image/dit/ltx-2-Q4_0.gguf", "ltxv", {"patchify_proj.weight": [128, 8], "audio_patchify_proj.weight": [8, 8]}
    )
    tree.gguf("image/dit/nameless-h3.gguf", "", {"video_patch_proj.x": [8], "condition_proj.weight": [5120, 8]})


def _other_classes(tree: Tree) -> None:
    for name in ("sam2.1_hiera_tiny_f16.ggml", "edgetam_f16.ggml", "whisper-base.ggml"):
        tree.raw(f"image/segment/{name}", b"x" * 40)
    package = "image/3d/TRELLIS.2-4B"
    tree.raw(f"{package}/pipeline.json", b"{}")
    tree.safetensors(f"{package}/ckpts/a.safetensors", {"w": [4]})
    tree.chat(f"{package}/ckpts/inside-Q8_0.gguf", "llama")
    tree.raw("image/3d/not-a-package/pipeline.json", b"{}")
    tree.raw("image/3d/dinov3-vitl/model.safetensors", b"x" * 9)
    tree.raw("image/3d/dinov3-vitl/config.json", b"{}")
    tree.gguf("image/3d/BiRefNet/birefnet-f16.gguf", "birefnet")
    tree.gguf("llm/audio/tts/Qwen3-TTS-1.7B-Q8_0.gguf", "qwen3-tts")
    tree.gguf("llm/audio/tts/Qwen3-TTS-Tokenizer-12Hz-F16.gguf", "qwen3-tts-tokenizer")
    tree.gguf("llm/audio/Kokoro_espeak_f16.gguf", "kokoro")
    tree.gguf("llm/audio/whisper-large-v3-Q5_0.gguf", "whisper")
    music = "llm/audio/MiniMax-Music-3-GGUF"
    for part in ("language_model", "transformer", "rvq_depth_decoder"):
        tree.gguf(f"{music}/{part}_q8_0.gguf", "audiocpp")
    for part in ("vocoder", "condition_encoder"):
        tree.gguf(f"{music}/{part}.gguf", "audiocpp", audiocpp__model_spec__family="minimax_music3")
    tree.gguf("llm/audio/yue/yue2-3b-Q8_0.gguf", "audiocpp", audiocpp__model_spec__family="yue2")
    tree.gguf("llm/audio/yue/yue2-vae-f16.gguf", "audiocpp")


def _not_rows(tree: Tree) -> None:
    tree.raw("llm/bad/empty.gguf")
    tree.raw("llm/bad/not-a-model.gguf", b"<html>404</html>" * 4)
    tree.raw("llm/bad/mmproj-broken.gguf", b"GGUF" + bytes(4))
    whole = tree.chat("llm/bad/Cut-8B-Q8_0.gguf", "llama").read_bytes()
    tree.raw("llm/bad/Cut-8B-Q8_0.gguf", whole[: len(whole) // 2])
    tree.chat("llm/bad/Download-8B-Q8_0.gguf.part", "llama")
    tree.chat("llm/bad/${HOME}-Q8_0.gguf", "llama")
    tree.chat("llm/bad/line\nbreak-Q8_0.gguf", "llama")
    tree.chat("llm/bad/quotes'\"and blanks (1)-Q8_0.gguf", "llama")
    tree.chat("llm/.hidden/Hidden-1B-Q8_0.gguf", "llama")
    tree.chat("llm/flan/flan-t5-large-Q4_K_M.gguf", "t5")
    tree.raw("llm/notes/README.md", b"hello")
