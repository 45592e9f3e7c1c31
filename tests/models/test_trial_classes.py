"""A test launch of every class: scanned, planned, its composed command started with a stand-in of its engine."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from gpus_app.models import Backend
from models_app import services
from models_app.models import Override, Root, Row
from models_app.services import trials
from models_app.trial import launch, questions
from quartermaster_site.jobs.models import Job
from tests import class_tree
from tests.engine_stand_in import ENGINES

ROOT = Path(__file__).resolve().parents[2]
EXPECTED = {
    "qwen3-0.6b-q8_0": "a token",
    "lfm2-1.2b-q8_0": "a token",
    "nomic-embed-text-v1.5-f16": "a vector",
    "decider-q8_0": "a decision",
    "qwen3-4b-instruct-bf16": "a token",
    "flux1-dev-q4_0": "a picture of 64 pixels in one step",
    "ltx-2-q4_0": "a clip of at least 9 frames in one step",
    "sam2.1-hiera-tiny-f16": "a mask",
    "trellis-2-4b": "a mesh of 6,000,004 bytes",
    "qwen3-tts-1.7b-q8_0": "speech of 16 bytes",
    "kokoro_espeak-f16": "speech of 16 bytes",
    "parakeet-tdt-0.6b-f16": "a transcript of one second",
    "echo-tts-q8_0": "speech of 16 bytes",
    "qwen3-asr-q8_0": "a transcript of one second",
    "ace-step-q8_0": "music of",
    "yue2-3b-q8_0": "music of",
    "htdemucs-q8_0": "a result of",
    "sheetsage2-q8_0": "a result of",
}


@pytest.fixture
def models(host, tmp_path, actor, django_capture_on_commit_callbacks):
    """A model of every class, scanned and planned, with a stand-in registered for every engine."""
    class_tree.build(tmp_path / "models")
    for kind in ENGINES:
        Backend.objects.create(host=host, slug=kind, kind=kind, path=program(tmp_path, kind))
    Root.objects.create(host=host, path=str(tmp_path / "models"))
    chosen = str(tmp_path / f"models/{class_tree.CHAT_ON_VLLM}.gguf")
    Override.objects.create(host=host, match=chosen, fields={"backend": "vllm"}, version=1)
    with django_capture_on_commit_callbacks(execute=True):
        services.start_scan(host=host, actor=actor)
    return {row.served_id: row for row in Row.objects.filter(host=host)}


def program(folder, kind):
    path = folder / f"{kind}-server"
    path.write_text(f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(ROOT)!r})\n")
    with path.open("a") as stream:
        stream.write(f"from tests.engine_stand_in import main\nmain({kind!r})\n")
    path.chmod(0o755)
    return str(path)


def test_every_class_comes_up_and_answers(models, actor, monkeypatch, django_capture_on_commit_callbacks):
    monkeypatch.setattr(launch, "LOOK_SECONDS", 0.1)
    monkeypatch.setattr(questions, "LOOK_SECONDS", 0.1)
    assert set(EXPECTED) <= set(models), sorted(models)
    for served_id, answer in EXPECTED.items():
        with django_capture_on_commit_callbacks(execute=True):
            trials.start_trial(row=models[served_id], actor=actor)
        job = Job.objects.filter(kind="test_launch").latest("pk")
        assert (job.state, job.error) == ("succeeded", ""), (served_id, job.inputs["words"], job.log)
        assert answer in job.result["answer"], served_id
        assert job.result["peak_bytes"] > 1 << 20


def test_a_failed_launch_leaves_what_it_printed(models, actor, tmp_path, django_capture_on_commit_callbacks):
    (tmp_path / "asr-server").write_text("#!/bin/sh\necho no such model\nexit 1\n")
    with django_capture_on_commit_callbacks(execute=True):
        trials.start_trial(row=models["parakeet-tdt-0.6b-f16"], actor=actor)
    job = Job.objects.get(kind="test_launch")
    assert job.state == "failed"
    assert "exit code 1. It said: no such model" in job.error
    assert "no such model" in str(job.log)
