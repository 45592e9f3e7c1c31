"""The smallest question of every engine, put to servers that speak its protocol; what is no answer fails in words."""

from __future__ import annotations

import struct
import time
import zlib

import pytest

from models_app.core.launch.samples import SAMPLE_RATE_HZ, dot_png, tone_wav
from models_app.core.plans import question
from models_app.trial.conversation import Conversation, NotAnswered
from models_app.trial.questions import QUESTIONS
from tests.engine_stand_in import serving


@pytest.fixture
def ask(tmp_path):
    """`ask("image", "sd")` puts the question to a stand-in of that engine."""

    def put(name, engine, model="m", **options):
        with serving(engine, **options) as port:
            return QUESTIONS[name](Conversation(port, model, tmp_path, time.monotonic() + 10))

    return put


@pytest.mark.parametrize(
    ("name", "engine", "options", "says"),
    [
        ("chat", "llama", {}, "a token"),
        ("embedding", "llama", {}, "a vector"),
        ("ranking", "llama", {"reranking": ""}, "a ranking"),
        ("decision", "llama", {}, "a decision"),
        ("completion", "vllm", {"served_model_name": "m"}, "a token"),
        ("image", "sd", {}, "a picture of 64 pixels in one step"),
        ("video", "sd", {}, "a clip"),
        ("speech", "tts", {"type": "base"}, "speech of 16 bytes"),
        ("speech", "tts", {"type": "custom_voice"}, "speech"),
        ("speech", "tts", {"type": "voice_design"}, "speech"),
        ("speech", "ttscpp", {"model_path": "/x/m.gguf"}, "speech"),
        ("transcription", "asr", {}, "a transcript"),
        ("segment", "sam", {"no_gpu": ""}, "a mask"),
        ("segment", "sam", {"no_gpu": "", "type": "words"}, "a mask"),
        ("mesh", "trellis2", {}, "a mesh of 6,000,004 bytes"),
    ],
)
def test_every_engine_is_asked_in_its_own_words(ask, name, engine, options, says):
    assert says in ask(name, engine, **options)


@pytest.mark.parametrize(
    ("name", "family", "task"),
    [
        ("cloned speech", "kokoro_tts", "tts"),
        ("cloned speech", "echo_tts", "tts"),
        ("transcription", "qwen3_asr", "asr"),
        ("music", "ace_step", "gen"),
        ("music", "minimax_music3", "gen"),
        ("audio task", "htdemucs", "sep"),
    ],
)
def test_audio_cpp_is_asked_by_its_task(ask, tmp_path, name, family, task):
    config = tmp_path / "config.json"
    config.write_text('{"lazy_load": false, "models": [{"id": "m", "family": "%s", "task": "%s"}]}' % (family, task))  # noqa: UP031
    assert ask(name, "audiocpp", config=str(config))


@pytest.mark.parametrize(
    ("name", "engine", "model", "options", "says"),
    [
        ("completion", "vllm", "other", {"served_model_name": "m"}, "status 404: The model `other` does not exist."),
        ("speech", "ttscpp", "other", {"model_path": "/x/m.gguf"}, "Invalid Model: other"),
        ("speech", "tts", "m", {"type": "broken"}, "0 bytes came back that are no RIFF file"),
        ("ranking", "llama", "m", {}, "Start it with `--reranking`"),
        ("image", "llama", "m", {}, "status 404"),
    ],
)
def test_what_is_no_answer_is_said_in_words(ask, name, engine, model, options, says):
    with pytest.raises(NotAnswered, match=says.replace("`", ".")):
        ask(name, engine, model, **options)


def test_every_question_that_a_plan_may_ask_is_known():
    named = {*question._BY_CLASS.values(), *question._BY_AUDIO_TASK.values(), "completion", "ranking"}
    assert named == set(QUESTIONS)


def test_an_answer_that_breaks_off_is_none(tmp_path, half_answer):
    talk = Conversation(half_answer, "m", tmp_path, time.monotonic() + 5)
    with pytest.raises(NotAnswered, match="broke off"):
        talk.get("/")


@pytest.fixture
def half_answer():
    """The port of a server that promises 100 bytes and sends two."""
    import socket
    import threading

    listener = socket.create_server(("127.0.0.1", 0))

    def once():
        connection, _ = listener.accept()
        connection.recv(1000)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{}")
        connection.close()

    threading.Thread(target=once, daemon=True).start()
    yield listener.getsockname()[1]
    listener.close()


def test_the_samples_are_files_of_their_kind(tmp_path):
    import wave

    (tmp_path / "tone.wav").write_bytes(tone_wav(0.5))
    with wave.open(str(tmp_path / "tone.wav")) as sound:
        assert (sound.getnchannels(), sound.getframerate(), sound.getnframes()) == (1, SAMPLE_RATE_HZ, 8_000)
        assert len(set(sound.readframes(100))) > 10
    picture = dot_png(8)
    assert struct.unpack(">II", picture[16:24]) == (8, 8)
    length = struct.unpack(">I", picture[33:37])[0]
    pixels = zlib.decompress(picture[41 : 41 + length])
    assert len(pixels) == 8 * (1 + 8 * 3)
    assert pixels[4 * 25 + 1 + 12 : 4 * 25 + 1 + 15] == b"\x20\x40\x80"
