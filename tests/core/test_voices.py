"""Voices before they are sent, sound that came back, and requests that are worth sending."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models_app.core.classes import voices
from models_app.core.classes.voices import VoiceError
from models_app.core.classes.wav import WavError, read_wav
from models_app.core.readers import read_header
from tests.gguf_bytes import pair
from tests.speech_files import latents, wav


@pytest.mark.parametrize(
    ("choices", "seconds"),
    [
        ({}, 1.0),
        ({"channels": 2, "rate": 48_000}, 1.0),
        ({"bits": 24}, 1.0),
        ({"bits": 32, "encoding": 3}, 1.0),
        ({"extensible": True}, 1.0),
        ({"before": b"LIST\x05\x00\x00\x00hello\x00"}, 1.0),
        ({"seconds": 0.08}, 0.08),
    ],
)
def test_recordings_that_a_server_reads(choices, seconds):
    found = voices.check_wav(wav(**choices))
    assert found.seconds == pytest.approx(seconds, abs=0.001)
    assert found.width == 0


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "too short for a WAV"),
        (b"ID3\x04" + b"\0" * 40, "but an MP3"),
        (b"\xff\xfb\x90\x00" + b"\0" * 40, "but an MP3"),
        (b"fLaC" + b"\0" * 40, "but a FLAC"),
        (b"\0\0\0\x20ftypM4A " + b"\0" * 40, "but an MP4"),
        (b"<html>no sound here</html>", "no WAV file."),
        (wav(bits=8), "8-bit PCM"),
        (wav(encoding=6, bits=8), "8-bit A-law"),
        (wav(encoding=0x55), "16-bit MP3"),
        (wav(channels=6), "6 channels"),
        (wav(seconds=0.01), "too short: 0.01 s"),
        (wav(rate=8000, seconds=301), "lasts 301 s"),
        (wav()[:-1000], "cut off"),
        (wav(rate=0), "no channels, no bits or no rate"),
        (wav(channels=0), "no channels, no bits or no rate"),
        (wav()[:36], "names no sound"),
        (wav()[:12] + b"data\x04\0\0\0abcd", "does not say how"),
        (wav() + b"\0" * voices.MAX_WAV_BYTES, "20 MiB"),
    ],
)
def test_recordings_that_no_server_takes(data, said):
    with pytest.raises(VoiceError) as error:
        voices.check_wav(data)
    assert said in str(error.value)
    assert error.value.field == "wav"


@given(st.binary(max_size=200))
def test_no_file_breaks_the_reader(data):
    for head in (b"", b"RIFF\0\0\0\0WAVE", wav(seconds=0)[:36]):
        try:
            read_wav(head + data)
        except WavError:
            continue


def test_latents_of_both_sizes():
    found = voices.check_latents(*latents(1024, frames=215))
    assert (found.width, found.seconds) == (1024, pytest.approx(17.2))
    assert voices.check_latents(*latents(2048)).width == 2048


@pytest.mark.parametrize(
    ("spk", "rvq", "field", "said"),
    [
        (b"\0" * 4092, b"\0" * 22, "spk", "4,096 (0.6B) or 8,192 (1.7B) bytes; this one has 4,092"),
        (b"", b"\0" * 22, "spk", "this one has 0"),
        (struct.pack("<1024f", *[float("nan")] * 1024), b"\0" * 22, "spk", "no numbers"),
        (b"\0" * 4096, b"", "rvq", "0 bytes are no file of codes"),
        (b"\0" * 4096, b"\0" * 21, "rvq", "no file of codes"),
        (b"\0" * 4096, b"\0" * (22 * 4000), "rvq", "lasts 320 s"),
        (b"\0" * 4096, b"\0" * (2 << 20), "rvq", "no file of codes"),
    ],
)
def test_latents_that_fail_only_when_they_speak_are_refused_here(spk, rvq, field, said):
    with pytest.raises(VoiceError) as error:
        voices.check_latents(spk, rvq)
    assert said in str(error.value)
    assert error.value.field == field


@pytest.mark.parametrize("name", ["anna", "Anna 2", " uncle_fu-3 ", "a" * 64])
def test_names(name):
    assert voices.check_name(name) == name.strip()


@pytest.mark.parametrize("name", ["", " ", 'an"na', "ann/a", "änna", "a.b", "a" * 65, "a\nb", "a\n", "../x", "<b>"])
def test_names_that_break_something(name):
    if name == "a\n":
        assert voices.check_name(name) == "a"
        return
    with pytest.raises(VoiceError):
        voices.check_name(name)


def test_which_models_a_voice_fits():
    assert voices.fits(0, "base", 2048)
    assert voices.fits(2048, "base", 2048)
    assert voices.fits(2048, "", 0), "what is not known does not stand in the way"
    assert not voices.fits(1024, "base", 2048)
    assert not voices.fits(0, "custom_voice", 2048)
    assert not voices.fits(0, "voice_design", 2048)


@pytest.mark.parametrize(
    ("body", "model_type", "said"),
    [
        ({"input": "a"}, "base", ""),
        ({"input": "a", "voice": "mine"}, "base", ""),
        ({"input": "a", "voice": "yours"}, "base", "There is no voice yours."),
        ({"input": "a", "instructions": "softly"}, "base", "A base model takes no instructions."),
        ({"input": "a", "voice": "RYAN"}, "custom_voice", ""),
        ({"input": "a", "voice": "nobody"}, "custom_voice", "This model has no speaker nobody."),
        ({"input": "a"}, "custom_voice", "Choose one of the model's speakers."),
        ({"input": "a"}, "voice_design", "A voice-design model needs instructions."),
        ({"input": "a", "voice": "yours"}, "", ""),
    ],
)
def test_requests_that_would_fail_are_not_sent(body, model_type, said):
    listed = {"mine": "registered"} if model_type == "base" else {"ryan": "speaker"}
    assert voices.request_problem(body, model_type, listed) == said


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "no sound at all"),
        (b"{}" * 30, "something else than a WAV"),
        (wav()[:-24_000], "cut off after 0.5 s"),
        (wav(seconds=0), "without any sound"),
    ],
)
def test_sound_that_came_back_wrong(data, said):
    with pytest.raises(VoiceError, match=said):
        voices.check_speech(data)


def test_sound_that_came_back():
    assert voices.check_speech(wav(seconds=2)).seconds == 2


@pytest.mark.parametrize(("architecture", "said"), [("qwen3-tts", "custom_voice"), ("llama", "")])
def test_the_type_and_width_of_a_talker_are_read(tmp_path, architecture, said):
    pairs = [
        pair("general.architecture", "string", architecture),
        pair("qwen3-tts.model_type", "string", "custom_voice"),
        pair("qwen3-tts.talker.embedding_length", "u32", 2048),
    ]
    path = tmp_path / "talker.gguf"
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, len(pairs)) + b"".join(pairs))
    header = read_header(str(path))
    assert header.speech_type == said
    if said:
        assert header.extra["talker.embedding_length"] == 2048
