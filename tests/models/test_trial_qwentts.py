"""A test launch of a speech server: each type of model is asked; what a server says as it ends is told."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from models_app.trial import launch as trial
from models_app.trial import memory, process
from models_app.trial.launch import TrialFailed, try_launch
from tests import speech_stand_in
from tests.models.test_trials import Report


@pytest.fixture
def launch(tmp_path, monkeypatch):
    """`launch("base")` starts the server with a talker of this type and a codec."""
    monkeypatch.setattr(process, "STOP_SECONDS", 0.5)
    monkeypatch.setattr(trial, "LOOK_SECONDS", 0.1)
    monkeypatch.setattr(memory, "EVERY_SECONDS", 0.2)
    program = tmp_path / "tts-server"
    program.write_text(
        f"#!{sys.executable}\n{Path(speech_stand_in.__file__).read_text()}".replace(
            "sys.path.insert(0, str(Path(__file__).resolve().parent.parent))",
            f"sys.path.insert(0, {str(Path(speech_stand_in.__file__).parents[1])!r})",
        )
    )
    program.chmod(0o755)

    def start(model_type, *more, codec=True):
        talker, tokenizer = tmp_path / f"talker-{model_type}.gguf", tmp_path / "codec.gguf"
        talker.write_bytes(b"GGUF")
        tokenizer.write_bytes(b"GGUF")
        words = [str(program), "--model", str(talker), "--port", trial.PORT, *more]
        inputs = {
            "words": [*words, *(["--codec", str(tokenizer)] if codec else [])],
            "health": "/health",
            "question": {"name": "speech", "model": "talker", "seconds": 15},
            "seconds": 15,
        }
        return try_launch(Report(), inputs, environment={"PATH": os.environ["PATH"]}, permitted=("/",))

    return start


@pytest.mark.parametrize("model_type", ["base", "custom_voice", "voice_design"])
def test_each_type_is_asked_what_it_answers(launch, model_type):
    assert launch(model_type, "--max-batch", "2")["answer"].startswith("speech of")


def test_exit_code_0_is_a_failed_launch(launch):
    with pytest.raises(TrialFailed, match="ended by itself with exit code 0"):
        launch("base", codec=False)


def test_a_flag_that_the_build_does_not_know(launch):
    with pytest.raises(TrialFailed, match="exit code 1.*unknown arg: --codec-fused"):
        launch("base", "--codec-fused")
