"""What the speech server qwentts.cpp answers, and when to say so before asking it."""

from __future__ import annotations

import math

import pytest

from models_app.core.classes import qwentts
from models_app.core.classes.tts import qwentts_estimate_gib


def test_flags_come_and_go_with_builds():
    for life in qwentts.LATER_FLAGS:
        known = [build for build in qwentts.BUILDS if qwentts.has_flag(build, life.flag)]
        assert known[0] == life.since
        assert life.until not in known
    assert all(qwentts.has_flag("unheard-of", flag) for flag in qwentts.FIRST_FLAGS)
    assert not qwentts.has_flag("unheard-of", "--max-batch")
    assert not qwentts.has_flag("a8a7716", "--voices-dir")


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ({}, "'input'"),
        ({"input": 5}, "'input'"),
        ({"input": "a", "seed": 1.5}, "'seed'"),
        ({"input": "a", "seed": True}, "'seed'"),
        ({"input": "a", "seed": -7}, ""),
        ({"input": "a", "max_new_tokens": 0}, "'max_new_tokens'"),
        ({"input": "a", "top_k": 0}, ""),
        ({"input": "a", "top_p": 1.01}, "'top_p'"),
        ({"input": "a", "temperature": "hot"}, "'temperature'"),
        ({"input": "a", "temperature": math.nan}, "'temperature'"),
        ({"input": "a", "response_format": 5, "voice": [], "instructions": {}}, ""),
        ({"input": "a", "instructions": "gently"}, "instructions"),
        ({"input": "a", "voice": "mine"}, ""),
    ],
)
def test_a_request_to_a_base_model(body, problem):
    found = qwentts.speech_problem(body, "base", ["mine"])
    assert problem in found
    assert bool(problem) == bool(found)


def test_other_kinds_of_models():
    ask = {"input": "a"}
    assert qwentts.speech_status(ask, "voice_design", []) == 400
    assert qwentts.speech_status({**ask, "instructions": "an old man"}, "voice_design", []) == 200
    assert qwentts.speech_status(ask, "custom_voice", []) == 400
    assert qwentts.speech_status({**ask, "voice": "Ryan"}, "custom_voice", []) == 200
    assert qwentts.speech_status({**ask, "voice": "nobody", "response_format": "wav"}, "custom_voice", []) == 502
    assert qwentts.speech_status({**ask, "voice": "nobody"}, "custom_voice", []) == 200
    assert qwentts.speech_status({**ask, "voice": "mine"}, "custom_voice", ["mine"]) == 400


@pytest.mark.parametrize("size", [0, 1, 21, 43])
def test_lengths_that_are_no_code_files(size):
    assert qwentts.rvq_frames(size) is None


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        (["name", "wav_b64"], 200),
        (["name", "spk_b64", "rvq_b64", "ref_text"], 200),
        (["wav_b64"], 400),
        (["name"], 400),
        (["name", "wav_b64", "spk_b64"], 400),
    ],
)
def test_what_a_registration_needs(fields, status):
    assert qwentts.registration_status(fields) == status


def test_a_batch_below_one_is_one():
    assert qwentts.memory_mib(-3) == qwentts.memory_mib(1) == (896, 16)
    assert qwentts_estimate_gib(1, 1, 0) == qwentts_estimate_gib(1, 1, 1)
