"""An entry of every class in every dialect: golden, valid, and with nothing that its router refuses.

`UPDATE_GOLDEN=1` renews the files after a change that was meant; read the difference.
"""

from __future__ import annotations

import argparse
import io
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from models_app.core.classes import CLASSES
from models_app.core.export import schema
from models_app.core.export.dialects import BY_SLUG
from models_app.core.export.findings import blocks
from models_app.core.export.llama_swap_entry import CAPABILITIES, MODALITIES
from models_app.core.verbs import check
from models_app.core.verbs import generate as verb
from models_app.core.verbs.environment import Environment
from tests import class_tree

GOLDEN = Path(__file__).parent.parent / "golden"
READ_BY_REFERENCE = {"text", "audio", "image", "video", "3d"}
"""Modalities that the reference router knows; any other word fails its whole load."""
KINDS = ("llama", "vllm", "sd", "tts", "ttscpp", "asr", "audiocpp", "sam", "trellis2")


def settings_file(base: Path) -> Path:
    """A settings file that names every engine, and what people write by hand."""
    flux = str(base / "models/image/flux1-dev-Q4_0.gguf")
    settings = {
        "modelsRoot": str(base / "models"),
        "targetVramGB": 24,
        "maxRamGB": 64,
        "backends": [{"id": kind, "kind": kind, "path": f"/opt/{kind}/server"} for kind in KINDS],
        "promptEnhancers": [
            {"model": "qwen-image-edit-pe-i2i-q8_0", "name": "Rewriter", "systemPrompt": " Rewrite.\n"}
        ],
        "extraImageModels": [{"name": "by-hand", "modelPath": flux, "vaePath": "/v.safetensors", "vramTargetGB": 9}],
        "extraModels": {"raw": {"cmd": "srv --port ${PORT}", "estVramGB": 2, "proxy": "http://127.0.0.1:${PORT}"}},
    }
    settings["backends"][6]["variant"] = "vulkan"
    overrides = [{"match": str(base / f"models/{class_tree.CHAT_ON_VLLM}.gguf"), "backend": "vllm"}]
    path = base / "quartermaster-generate.yaml"
    path.write_text(yaml.safe_dump({"settings": settings, "overrides": overrides}))
    return path


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    folder = tmp_path_factory.mktemp("classes")
    class_tree.build(folder / "models")
    return folder


@pytest.fixture(scope="module", params=list(BY_SLUG))
def written(request, base):
    """(dialect, text, files beside it) of the whole tree."""
    folder = base / request.param
    folder.mkdir()
    output = folder / BY_SLUG[request.param].file_name
    out, err = io.StringIO(), io.StringIO()
    parser = argparse.ArgumentParser()
    verb.add_arguments(parser)
    environment = Environment(base / "data", datetime(2026, 11, 30, 10, tzinfo=UTC), out, err)
    words = ["--settings", str(settings_file(base)), "--dialect", request.param, "-o", str(output)]
    assert verb.run(parser.parse_args([*words, "--timestamp", "2026-11-30T10:00:00Z"]), environment) == 0, err
    return request.param, output.read_text(), output


def test_golden(written, base):
    dialect, text, output = written
    text = text.replace(str(base), "/srv").replace(f"/srv/{dialect}", "/srv/out")
    golden = GOLDEN / f"classes.{dialect}{output.suffix}"
    if os.environ.get("UPDATE_GOLDEN"):
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")


def test_nothing_in_it_is_refused(written):
    dialect, text, output = written
    findings = check.check_file(str(output), dialect, "linux")
    assert not blocks(findings), findings
    if dialect != "llama-server":
        assert not list(schema.problems(dialect, yaml.safe_load(text)))


def test_every_class_has_an_entry_or_says_why_not(written, base):
    dialect, text, _ = written
    said = set(entries_of(dialect, text)) | {line.split('"')[1] for line in text.splitlines() if "SKIPPED" in line}
    for model_class, names in OF_CLASS.items():
        assert set(names) <= said, model_class
    assert set(OF_CLASS) == {found.slug for found in CLASSES}


OF_CLASS = {
    "llm": ("qwen3-0.6b-q8_0", "lfm2-1.2b-q8_0"),
    "hf": ("qwen3-4b-instruct-bf16",),
    "image": ("flux1-dev-q4_0", "sdxl-base-q8_0", "qwen-image-edit-q4_0"),
    "video": ("wan2.2-ti2v-5b-q8_0", "ltx-2-q4_0", "nameless-h3"),
    "3d": ("trellis-2-4b",),
    "sam": ("sam2.1-hiera-tiny-f16",),
    "tts": ("qwen3-tts-1.7b-q8_0", "kokoro_espeak-f16"),
    "asr": ("parakeet-tdt-0.6b-f16",),
    "audiocpp": (
        "echo-tts-q8_0",
        "qwen3-asr-q8_0",
        "ace-step-q8_0",
        "htdemucs-q8_0",
        "sheetsage2-q8_0",
        "yue2-3b-q8_0",
        "yue2-7b-q8_0",
        "MiniMax-Music-3-GGUF",
    ),
    "embedding": ("nomic-embed-text-v1.5-f16",),
    "decision": ("decider-q8_0",),
}


def entries_of(dialect, text):
    if dialect != "llama-server":
        return yaml.safe_load(text)["models"]
    return {line[1:-1]: {} for line in text.splitlines() if line.startswith("[")}


def test_no_capability_is_one_that_the_router_refuses(written):
    """A single unknown word fails the load of the whole file."""
    dialect, text, _ = written
    if dialect == "llama-server":
        pytest.skip("presets have no capabilities")
    known = MODALITIES if dialect == "llama-swap" else READ_BY_REFERENCE
    blocks_of = {
        name: entry["capabilities"] for name, entry in entries_of(dialect, text).items() if "capabilities" in entry
    }
    assert len(blocks_of) > (5 if dialect == "llama-swap" else 20)
    for name, block in blocks_of.items():
        assert set(block.get("in", [])) | set(block.get("out", [])) <= known, name
        if dialect == "llama-swap":
            assert set(block) <= {"in", "out", *CAPABILITIES}, name
