"""Commands of the speech server qwentts.cpp: a build is told what it knows; each request side by side is priced."""

from __future__ import annotations

import pytest

from gpus_app.core.budget import budget_of
from models_app.core.catalog import Header, Row
from models_app.core.classes.qwentts import BUILDS, FIRST_FLAGS, LATER_FLAGS, has_flag
from models_app.core.fields.groups import model_fields, offered
from models_app.core.fields.speech import SPEECH_FIELDS
from models_app.core.launch.program_text import program_facts
from models_app.core.plans import plan_row
from models_app.core.plans.engines.request import Surroundings
from models_app.core.settings import Override, Settings
from models_app.core.units import GIB
from tests.speech_stand_in import USAGE

NEWEST = frozenset(flag for flag in (*FIRST_FLAGS, *(life.flag for life in LATER_FLAGS)) if has_flag("a8a7716", flag))
PATCHED = NEWEST | {"--voices-dir"}
HEADER = Header(architecture="qwen3-tts")
TALKER = Row(
    id="talker",
    full_path="/m/qwen talker.gguf",
    file_name="qwen talker.gguf",
    size_bytes=2 * GIB,
    model_class="tts",
    codec_path="/m/codec.gguf",
    codec_size_bytes=GIB,
)


def plan(flags=None, *, wav=False, **own):
    around = Surroundings(flags=flags, has_wav_voices=wav)
    return plan_row(
        TALKER,
        HEADER,
        settings=Settings(target_vram_gb=24),
        override=Override(**own),
        budget=budget_of([24], 64),
        surroundings=around,
    )[0]


def test_every_flag_that_a_person_may_set_has_a_field():
    served = {"--model", "--codec", "--host", "--port", "--help", "-h"}
    known = {*FIRST_FLAGS, *(life.flag for life in LATER_FLAGS), "--voices-dir"}
    assert {field.flag for field in SPEECH_FIELDS} == known - served


@pytest.mark.parametrize("build", [*BUILDS, "unheard-of"])
def test_fields_are_offered_as_the_build_has_their_flags(build):
    flags = {flag for flag in (*FIRST_FLAGS, *(life.flag for life in LATER_FLAGS)) if has_flag(build, flag)}
    shown = {field.flag for field in offered(model_fields("tts", "tts"), flags) if field.flag}
    assert shown == flags & {field.flag for field in SPEECH_FIELDS}


def test_what_is_set_can_be_cleared_when_the_build_lost_its_flag():
    fields = model_fields("tts", "tts")
    assert "ttsCodecFused" not in {field.key for field in offered(fields, NEWEST)}
    assert "ttsCodecFused" in {field.key for field in offered(fields, NEWEST, {"ttsCodecFused"})}


def test_the_other_speech_server_has_none_of_them():
    assert not [field for field in model_fields("tts", "ttscpp") if field.flag]


def test_a_build_is_told_what_it_knows():
    found = plan(
        NEWEST, tts_lang="german", tts_max_batch=2, tts_codec_chunk_dur=4.5, tts_no_fa=True, tts_alias="my voice"
    )
    assert list(found.argv[1:]) == [
        "--model", "/m/qwen talker.gguf", "--codec", "/m/codec.gguf",
        "--lang", "german", "--max-batch", "2", "--codec-chunk-dur", "4.5", "--no-fa", "--alias", "my voice",
        "--port", "${PORT}",
    ]  # fmt: skip
    assert found.warnings == ()


def test_what_a_build_does_not_know_is_left_out_and_said():
    found = plan(NEWEST, tts_codec_fused=True, tts_codec_left_dur=2.0, tts_lang="english")
    assert "--codec-fused" not in found.argv
    assert "--codec-left-dur" not in found.argv
    assert "english" in found.argv
    assert found.warnings == ("--codec-left-dur, --codec-fused left out: this build of its server does not know it",)


def test_before_anybody_asked_the_build_only_the_oldest_flags_go():
    found = plan(None, tts_lang="english", tts_max_batch=4)
    assert "--lang" in found.argv
    assert "--max-batch" not in found.argv
    assert "was not asked yet" in found.warnings[0]
    assert "--voices-dir" not in found.argv


def test_the_folder_of_voices_needs_a_build_that_has_it():
    assert "--voices-dir" not in plan(NEWEST).argv
    argv = plan(PATCHED).argv
    assert argv[argv.index("--voices-dir") + 1] == "/m/voices/qwen talker"
    assert "--voices-dir" not in plan(PATCHED, tts_voices_dir="off").argv


def test_each_request_side_by_side_is_priced():
    one, four = plan(NEWEST), plan(NEWEST, tts_max_batch=4)
    assert (four.est_vram_bytes - one.est_vram_bytes) / GIB == pytest.approx(3 * 0.8828, abs=0.001)
    labels = [item.label for item in four.terms]
    assert labels == ["Talker", "Codec", "Cache of 4 requests side by side", "To compute with"]
    assert "3,584 MiB" in four.terms[2].how
    assert "40 MiB" in four.terms[2].how


@pytest.mark.parametrize("wav", [False, True])
def test_parts_sum_to_the_estimate(wav):
    found = plan(NEWEST, wav=wav, tts_max_batch=3)
    assert sum(sum(item.device_bytes) for item in found.terms) == pytest.approx(found.est_vram_bytes, abs=4)


def test_voices_from_recordings_take_memory():
    more = plan(NEWEST, wav=True).est_vram_bytes - plan(NEWEST).est_vram_bytes
    assert more / GIB == pytest.approx(0.12, abs=0.001)
    assert plan(NEWEST, wav=True).terms[-1].label == "Encoders for voices"


def test_the_help_of_a_build_decides():
    """From the text that the newest build prints to the fields of the form."""
    facts = program_facts(USAGE)
    assert (facts.kind, facts.build, facts.version) == ("tts", "a8a7716", "2026-08-07")
    keys = {field.key for field in offered(model_fields("tts", "tts"), facts.flags) if field.flag}
    gone = {"ttsCodecLeftDur", "ttsCodecFused", "ttsVoicesDir"}
    assert keys == {field.key for field in SPEECH_FIELDS} - gone
