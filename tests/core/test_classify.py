"""Which class a file is of: order of the tests, look-alikes, files that are no models, rules kept as tables."""

from __future__ import annotations

import pytest

from models_app.core.catalog import Header
from models_app.core.classes import (
    BY_SLUG,
    CLASSES,
    IGNORED,
    SKIPPED,
    audiocpp,
    category_of,
    classify,
    hf,
    image,
    video,
)
from models_app.core.classes.spawn import config_file_name, spawn_arguments
from models_app.core.errors import UsageError
from models_app.core.fields import CATEGORIES

CASES = [
    ("x.gguf", {"architecture": "llama"}, "llm"),
    ("x.gguf", {"architecture": "wan", "video_kind": "wan"}, "video"),
    ("x.gguf", {"video_kind": "minimax_h3"}, "video"),
    ("x.gguf", {"architecture": "wan"}, "image"),
    ("x.gguf", {"architecture": " FLUX.1 "}, "image"),
    ("x.gguf", {"architecture": "odd", "diffusion_kind": "sdxl"}, "image"),
    ("x.gguf", {"architecture": "odd", "general_type": "diffusion"}, "image"),
    ("x.gguf", {"architecture": "moss_image"}, "image"),
    ("x.gguf", {"architecture": "qwen3", "decision_type": "laya", "pooling_type": 3}, "decision"),
    ("kokoro.gguf", {"architecture": "qwen3", "pooling_type": 3}, "embedding"),
    ("x.gguf", {"architecture": "Nomic-BERT-moe"}, "embedding"),
    ("parakeet.gguf", {"architecture": "audiocpp"}, "audiocpp"),
    ("x.gguf", {"audio_family": "moss_tts_nano"}, "audiocpp"),
    ("orpheus-3b.gguf", {"architecture": "llama"}, "tts"),
    ("x-talker.gguf", {"architecture": "qwen3"}, "tts"),
    ("dia-1.6b.gguf", {"architecture": "llama"}, "llm"),
    ("nemotron-3-asr.gguf", {"architecture": "x"}, "asr"),
    ("Nemotron-Nano-9B.gguf", {"architecture": "nemotron_h"}, "llm"),
    ("x.gguf", {"architecture": "modernbert", "classifier_head": True}, SKIPPED),
    ("x.gguf", {"architecture": "llama", "non_causal": True}, SKIPPED),
    ("x.gguf", {"architecture": "gemma-embedding", "non_causal": True, "pooling_type": 1}, "embedding"),
    ("x.gguf", {}, SKIPPED),
    ("x.gguf", {"architecture": "llama", "general_type": "adapter"}, IGNORED),
    ("x.gguf", {"architecture": "clip"}, IGNORED),
    ("x.gguf", {"architecture": "UMT5"}, IGNORED),
    ("x.gguf", {"architecture": "t5"}, "llm"),
    ("folder", {"architecture": "qwen3", "format": "hf"}, "hf"),
]


@pytest.mark.parametrize(("name", "facts", "model_class"), CASES)
def test_class_of_a_header(name: str, facts: dict[str, object], model_class: str) -> None:
    found = classify(name, Header(**facts))
    assert found.model_class == model_class
    assert found.reason
    assert found.is_servable == (model_class not in (SKIPPED, IGNORED))


@pytest.mark.parametrize(
    ("name", "model_class"),
    [("EdgeTAM.GGML", "sam"), ("whisper.ggml", IGNORED), ("m.gguf", IGNORED), ("sam3.gguf", IGNORED), ("", IGNORED)],
)
def test_class_of_a_name_alone(name: str, model_class: str) -> None:
    assert classify(name).model_class == model_class


def test_every_class_is_complete() -> None:
    assert len(BY_SLUG) == len(CLASSES)
    for model_class in CLASSES:
        assert model_class.label
        assert model_class.category in CATEGORIES
    assert CLASSES[-1].slug == "llm"


def test_audio_goes_by_its_task() -> None:
    assert category_of("audiocpp", "qwen3_asr") == "transcribe"
    assert category_of("audiocpp", "Ace_Step ") == "music"
    assert category_of("audiocpp", "unknown") == "tts"
    assert category_of("") == ""


def test_families_are_served_or_known_but_not_both() -> None:
    assert not set(audiocpp.TASK_OF_FAMILY) & set(audiocpp.UNSERVED_FAMILIES)
    assert set(audiocpp.TASK_OF_FAMILY.values()) == set(audiocpp.CATEGORY_OF_TASK)


def test_image_architecture_prefers_the_declared_one() -> None:
    assert image.image_architecture(Header(architecture="lumina2", diffusion_kind="flux")) == "lumina2"
    assert image.image_architecture(Header(architecture="llama")) == "llama"
    assert not image.is_image_architecture("qwen3moe")


@pytest.mark.parametrize("kind", list(video.FAMILIES))
def test_default_frames_lie_on_their_grid(kind: str) -> None:
    frames = video.FAMILIES[kind].profile.frames
    assert video.align_frames(kind, frames) == frames
    for wanted in range(200):
        aligned = video.align_frames(kind, wanted)
        assert aligned >= 1
        assert video.align_frames(kind, aligned) == aligned
        assert video.FAMILIES[kind].rounds_up is False or aligned >= wanted


def test_clip_memory_scales_with_area_and_length() -> None:
    base = video.built_in_profile("ltxav", "ltx-dev")
    assert video.overhead_gib("ltxav", "ltx-dev", base) == 4.0
    longer = video.Profile(base.width, base.height, 361, 24)
    assert video.overhead_gib("ltxav", "ltx-dev", longer) == 11.5
    assert video.overhead_gib("ltxav", "ltx-dev", video.Profile(64, 64, 1, 24)) == 1.5


def test_tool_parser_can_be_chosen_or_switched_off() -> None:
    assert hf.tool_parser("qwen3", "x", "none") == ""
    assert hf.tool_parser("odd", "x", "mine") == "mine"
    assert hf.tool_parser("odd", "x") == ""


def test_spawn_arguments() -> None:
    assert spawn_arguments(["sam3_server", "--model", "/m/SAM3.GGML", "--no-gpu"], False, None) == []
    assert spawn_arguments(["a", "--config=/x"], True, None) == []
    with pytest.raises(UsageError):
        spawn_arguments(["a"], True, None)
    assert config_file_name("../..").startswith("model-")


def test_a_file_of_another_program_is_never_a_chat_model() -> None:
    found = classify("whisper-large-v3-Q5_0.gguf", Header(architecture="whisper"))
    assert found.model_class == SKIPPED
    assert "Whisper" in found.reason
