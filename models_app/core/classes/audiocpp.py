"""audio.cpp: speech, transcription and music by families that the header names exactly (classes.md 11)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from models_app.core.catalog import Header
from models_app.core.classes.registry import ModelClass

ARCHITECTURE = "audiocpp"
CATEGORY_OF_TASK = MappingProxyType(
    {"tts": "tts", "asr": "transcribe", "gen": "music", "sep": "music", "midi": "music"}
)
SPEECH_OVERHEAD_GIB = 0.4
OVERHEAD_GIB_OF_TASK = MappingProxyType({"gen": 1.0, "midi": 2.75})
WEIGHT_TYPES = frozenset({"native", "f16"})
VULKAN_F16_QUANTS = frozenset({"q8_0", "q4_0"})
_TASKS = {
    "tts": """
        audio8_tts breeze_tts chatterbox chatterbox_turbo confucius4_tts cosyvoice3 dots_tts dramabox echo_tts f5_tts
        firered_audio fireredtts3 fish_audio glm_tts higgs_audio_tts index_tts2 inflect_v2 irodori_tts magpie_tts miotts
        mira_tts moss_tts_local moss_tts_nano neutts omnivoice outetts pocket_tts qwen3_tts sanotts soprano_tts
        sopro_tts supertonic vevo2 vibevoice vietneu_tts voxcpm1 voxcpm2""",
    "asr": """
        audio8_asr citrinet_asr fun_asr_nano granite5asr higgs_audio_stt hviske_asr kroko_asr nemotron_asr parakeet_tdt
        qwen3_asr sense_asr vibeasr vibevoice_asr voxtral_realtime""",
    "gen": "ace_step minimax_music3 yue2",
    "sep": "htdemucs",
    "midi": "sheetsage2",
}
TASK_OF_FAMILY: Mapping[str, str] = MappingProxyType(
    {family: task for task, families in _TASKS.items() for family in families.split()}
)
_CLONING = """
    audio8_tts breeze_tts chatterbox confucius4_tts cosyvoice3 dots_tts dramabox echo_tts f5_tts
    firered_audio fireredtts3 fish_audio glm_tts higgs_audio_tts index_tts2 irodori_tts miotts mira_tts moss_tts_local
    moss_tts_nano omnivoice outetts pocket_tts qwen3_tts sopro_tts vietneu_tts voxcpm1 voxcpm2"""
CLONING_FAMILIES = frozenset(_CLONING.split())
"""Speech families that can take over a voice from a recording."""
UNSERVED_FAMILIES: Mapping[str, str] = MappingProxyType(
    {
        family: kind
        for kind, families in {
            "music": "heartmula midashenglm_gen stable_audio songbloom",
            "several tasks": "minimax_h3 auk",
            "separation": "bs_roformer mel_band_roformer mossformer2 tf_gridnet sam_audio samsone",
            "sound effects": "controlfoley",
            "voice conversion": "meanvc2 rvc seed_vc tone_color_vc",
            "speech to speech": "audiosr miocodec personaplex",
            "alignment": "mms_forced_aligner qwen3_forced_aligner",
            "voice design": "moss_voicegen",
            "transcription to notes": "muscriptor",
            "diarisation": "sortformer_diar nemotron_3_diar",
            "tagging": "ast_audioset ced",
            "voice activity": "firered_vad marblenet_vad silero_vad",
            "wake words": "micro_wake_word sherpa_kws",
            "transcription": "canary_asr cohere_asr confucius4_r2t2 hviske_asr_v6 lfm2_audio moonshine_asr"
            " moss_transcribe_diarize niagara_asr owsm owsm_ctc r2t2_asr vibevoice_asr_streaming whistle_asr"
            " audio_flamingo audio_flamingo_next",
            "speech": "bark_tts coqui_speedy_speech index_tts2_5 kitten_tts2 kokoro_tts moss_tts_v15 piper_tts"
            " vieneu_v3_turbo xtts_v2 zipvoice",
        }.items()
        for family in families.split()
    }
)
"""Families that are known and have no task here, with what they do."""


def is_audiocpp_model(header: Header) -> bool:
    """Exact: the architecture, or a named family. File names never count."""
    return header.architecture.strip().lower() == ARCHITECTURE or bool(header.audio_family.strip())


def task_of(family: str) -> str:
    """Task served for a family (`tts`, `asr`, `gen`, `sep`, `midi`), "" when it is not served."""
    return TASK_OF_FAMILY.get(family.strip().lower(), "")


def match(file_name: str, header: Header | None) -> str:
    if header is None or not is_audiocpp_model(header):
        return ""
    family = header.audio_family.strip().lower()
    return f"audio.cpp family {family}" if family else "an audio.cpp file"


def weight_type(quant: str, flavour: str, chosen: str = "") -> str:
    """Weight type option of MiniMax Music 3, "" for none: its block quants need f16 on Vulkan. A chosen one wins."""
    chosen = chosen.strip().lower()
    if chosen in WEIGHT_TYPES:
        return chosen
    return "f16" if flavour.strip().lower() == "vulkan" and quant.strip().lower() in VULKAN_F16_QUANTS else ""


def estimate_gib(size_gib: float, task: str) -> float:
    """Memory of one model: its file and what its task needs beside it."""
    return size_gib + OVERHEAD_GIB_OF_TASK.get(task, SPEECH_OVERHEAD_GIB)


AUDIOCPP = ModelClass("audiocpp", "Audio", "tts", match)
