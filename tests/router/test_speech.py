"""What a host's worker does at a speech server, and at whatever else answers there."""

from __future__ import annotations

import base64
import time

import pytest

from models_app import speech
from models_app.core.classes.voices import VoiceError
from models_app.core.classes.wav import read_wav
from models_app.speech import SpeechError
from tests.speech_files import latents, wav
from tests.speech_stand_in import stand_in


@pytest.fixture
def server():
    with stand_in() as found:
        yield found


def told(server, action, **inputs):
    return speech.ask({"action": action, "url": server.url, "model": "talker", **inputs}, lambda said: None)


def text(data):
    return base64.b64encode(data).decode()


def recording(name="anna", **more):
    return {"name": name, "ref_text": "Hello.", "files": {"wav_b64": text(wav())}, **more}


def test_a_voice_comes_and_goes(server):
    assert told(server, "list") == {"voices": []}
    listed = told(server, "register", **recording())["voices"]
    assert listed == [{"name": "anna", "kind": "registered"}]
    assert server.voices["anna"]["ref_text"] == "Hello."
    assert server.voices["anna"]["bytes"]["wav_b64"] == wav()
    assert told(server, "delete", name="anna") == {"voices": []}
    assert told(server, "delete", name="anna") == {"voices": []}, "gone already is no failure"


def test_latents_go_as_they_are(server):
    spk, rvq = latents()
    told(server, "register", name="b 2", ref_text="", files={"spk_b64": text(spk), "rvq_b64": text(rvq)})
    assert server.voices["b 2"]["bytes"] == {"spk_b64": spk, "rvq_b64": rvq}
    told(server, "delete", name="b 2")
    assert not server.voices


def test_sound_comes_whole(server):
    answer = told(server, "speak", body={"input": "one two three", "response_format": "wav", "seed": 3})
    data = base64.b64decode(answer["audio"])
    assert read_wav(data).seconds == pytest.approx(1.2)
    assert answer["seconds"] == pytest.approx(1.2)
    assert server.asked[-1][2]["seed"] == 3


def test_older_builds_list_voices_elsewhere(server):
    server.voices_path = "/v1/voices"
    told(server, "register", **recording())
    assert "anna" in server.voices
    told(server, "delete", name="anna")
    assert not server.voices


def test_a_build_without_a_registry_is_said(server):
    server.has_registry = False
    with pytest.raises(SpeechError, match="keeps no voices"):
        told(server, "register", **recording())


@pytest.mark.parametrize(
    ("model_type", "body", "said"),
    [
        ("base", {"voice": "nobody"}, "the server answers 400: unknown voice 'nobody'"),
        ("base", {"instructions": "softly"}, "400: instruct is not supported"),
        ("base", {"top_p": 0}, "400: 'top_p' is out of domain"),
        ("voice_design", {}, "400: voice_design requires an instruct"),
        ("custom_voice", {"voice": "nobody"}, "502: unknown speaker 'nobody'"),
    ],
)
def test_what_the_server_says_is_passed_on(server, model_type, body, said):
    server.model_type = model_type
    server.speakers = ("ryan",) if model_type == "custom_voice" else ()
    with pytest.raises(SpeechError, match=said):
        told(server, "speak", body={"input": "a", "response_format": "wav", **body})


def test_raw_sound_that_failed_is_no_sound(server):
    with pytest.raises(VoiceError, match="no sound at all"):
        told(server, "speak", body={"input": "a", "voice": "nobody", "response_format": "pcm"})


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("cut", "the sound was cut off: the connection ended in the middle of its answer, after 1,000 bytes"),
        ("cut-wav", "the sound was cut off after"),
        ("huge", "longer than"),
        ("slow", "took too long"),
        ("text", "something else than a WAV"),
        ("empty", "no sound at all"),
        ("redirect", "redirects"),
        ("broken", "the server answers 502: GGML_ASSERT failed more"),
    ],
)
def test_sound_from_a_server_in_trouble(server, fault, said, monkeypatch):
    monkeypatch.setattr(speech, "SPEAK_SECONDS", 1.5)
    server.fault = fault
    began = time.monotonic()
    with pytest.raises((SpeechError, VoiceError), match=said):
        told(server, "speak", body={"input": "hello there", "response_format": "wav"})
    assert time.monotonic() - began < 5


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("cut", "the answer was cut off"),
        ("huge", "longer than 1 MiB"),
        ("text", "no qwentts server"),
        ("empty", "no qwentts server"),
        ("odd-json", "no qwentts server"),
        ("deep-json", "no qwentts server"),
        ("redirect", "redirects"),
        ("broken", "502"),
    ],
)
def test_a_list_from_something_else(server, fault, said):
    server.fault = fault
    with pytest.raises(SpeechError, match=said):
        told(server, "list")


def test_names_that_a_server_lists_are_bounded(server):
    server.speakers = ("a\x00b\n" + "c" * 500, "", "ok")
    names = [voice["name"] for voice in told(server, "list")["voices"]]
    assert names == ["a b " + "c" * 196, "ok"]
    server.speakers = ("x",) * 201
    with pytest.raises(SpeechError, match="lists 201 voices"):
        told(server, "list")


def test_a_voice_that_is_not_there_afterwards_is_a_failure(server):
    server.fault = "forgets"
    with pytest.raises(SpeechError, match="does not list it"):
        told(server, "register", **recording())


def test_nobody_there():
    with pytest.raises(SpeechError, match="nothing listens there"):
        speech.ask({"action": "list", "url": "http://127.0.0.1:9", "model": "x"}, lambda said: None)


class TestBehindARouter:
    @pytest.fixture
    def router(self, server):
        server.running, server.key = {"Qwen talker": "ready", "other": "starting"}, "sesame"
        return server

    def told(self, router, action, model="Qwen talker", **inputs):
        return told(router, action, **{"routed": True, "key": "sesame", **inputs, "model": model})

    def test_requests_go_through_it(self, router):
        self.told(router, "register", **recording())
        assert "anna" in router.voices
        paths = [path for _, path, _ in router.asked]
        assert paths[0] == "/running"
        assert all(path.startswith("/upstream/Qwen%20talker/v1/audio/voices") for path in paths[1:])

    @pytest.mark.parametrize("model", ["other", "unheard-of"])
    def test_a_model_that_does_not_run_is_not_started(self, router, model):
        with pytest.raises(SpeechError, match="is not loaded: load it on the Router page"):
            self.told(router, "list", model=model)
        assert [path for _, path, _ in router.asked] == ["/running"]

    def test_a_key_that_is_wrong(self, router):
        with pytest.raises(SpeechError, match="wants a key"):
            self.told(router, "list", key="wrong")

    def test_a_router_out_of_reach(self, router):
        with pytest.raises(SpeechError, match="nothing listens there"):
            self.told(router, "list", url="http://127.0.0.1:9")

    def test_a_server_behind_it_that_fails(self, router):
        router.fault = "broken"
        with pytest.raises(SpeechError, match="the server answers 502: GGML_ASSERT"):
            self.told(router, "list")
