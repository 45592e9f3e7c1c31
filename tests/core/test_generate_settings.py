"""`generate --settings FILE`: what the two files say is planned and written, and only when something changed."""

from __future__ import annotations

import argparse
import io
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from models_app.core.errors import ExportError, SettingsError, UsageError
from models_app.core.export.load import load
from models_app.core.state.sidecar import FILE_NAME
from models_app.core.verbs import generate as verb
from models_app.core.verbs import generate_inputs
from models_app.core.verbs.environment import Environment
from tests.zoo import zoo

SHELF = ("gemma3-1b-q8_0", "nomic-embed-text-v1.5-f16")


class Place:
    """A folder with two models, a settings file and room for a config."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.models = folder / "models"
        for name in SHELF:
            zoo.write_model(name, str(self.models))
        self.gemma = str(next(self.models.glob("gemma*")))
        self.settings = folder / "quartermaster-generate.yaml"
        self.sidecar = folder / FILE_NAME
        self.output = folder / "out" / "config.yaml"
        self.output.parent.mkdir()
        self.write({"modelsRoot": str(self.models), "targetVramGB": 24, "maxRamGB": 64})

    def write(self, settings, overrides=()):
        self.settings.write_text(yaml.safe_dump({"settings": settings, "overrides": list(overrides)}))

    def write_sidecar(self, **document):
        self.sidecar.write_text(yaml.safe_dump(document))

    def run(self, *words, output=None):
        out, err = io.StringIO(), io.StringIO()
        parser = argparse.ArgumentParser()
        verb.add_arguments(parser)
        environment = Environment(self.folder / "data", datetime(2026, 11, 30, 10, tzinfo=UTC), out, err)
        arguments = ["--settings", str(self.settings), "-o", str(output or self.output), *words]
        code = verb.run(parser.parse_args(arguments), environment)
        return code, out.getvalue(), err.getvalue()

    def config(self, *words):
        code, _, errors = self.run(*words)
        assert code == 0, errors
        return load(self.output.read_text()).value


@pytest.fixture(scope="module")
def shelf(tmp_path_factory):
    return Place(tmp_path_factory.mktemp("shelf"))


@pytest.fixture
def place(shelf):
    """The same models for all tests, everything else afresh."""
    yield shelf
    for path in (shelf.sidecar, shelf.output, shelf.output.with_name("config.yaml.modelhash")):
        path.unlink(missing_ok=True)
    shelf.write({"modelsRoot": str(shelf.models), "targetVramGB": 24, "maxRamGB": 64})


def test_settings_and_rows_decide(place):
    place.write(
        {
            "modelsRoot": str(place.models),
            "targetVramGB": 20,
            "maxRamGB": 32,
            "ttlSec": 60,
            "healthCheckTimeout": 99,
            "serverExe": "/opt/llama/llama-server",
            "groups": [{"name": "small", "match": ["gemma*"], "listen": "127.0.0.1:9000"}],
            "defaultVariants": [{"name": "game", "temp": 0}],
        },
        [{"match": "*gemma*", "ctx": 8192, "mmap": True}, {"match": "*nomic*", "skip": True}],
    )
    config = place.config("--dialect", "quartermaster")
    assert sorted(config["models"]) == ["gemma3-1b-q8_0", "gemma3-1b-q8_0-game"]
    model = config["models"]["gemma3-1b-q8_0"]
    assert model["cmd"].startswith("/opt/llama/llama-server")
    assert "-c 8192 " in model["cmd"]
    assert (model["ttl"], config["healthCheckTimeout"]) == (60, 99)
    assert (config["vramBudgetGB"], config["ramBudgetGB"]) == (20, 32)
    assert config["listeners"]


def test_rows_of_the_sidecar_shadow_those_of_the_file_as_a_whole(place):
    place.write(
        {"modelsRoot": str(place.models), "targetVramGB": 24, "ttlSec": 60},
        [{"match": "*gemma*", "ctx": 8192, "unlisted": True}],
    )
    place.write_sidecar(settings={"ttlSec": 0}, overrides=[{"match": place.gemma, "ctx": 4096}])
    model = place.config("--dialect", "quartermaster")["models"]["gemma3-1b-q8_0"]
    assert "-c 4096 " in model["cmd"]
    assert (model["ttl"], "unlisted" in model) == (0, False)


def test_another_sidecar_can_be_named(place, tmp_path):
    place.write_sidecar(overrides=[{"match": place.gemma, "skip": True}])
    other = tmp_path / "other.yaml"
    other.write_text(yaml.safe_dump({"overrides": [{"match": "*nomic*", "skip": True}]}))
    assert list(place.config("--sidecar", str(other))["models"]) == ["gemma3-1b-q8_0"]
    with pytest.raises(UsageError, match="does not exist"):
        place.run("--sidecar", str(tmp_path / "none.yaml"))


def test_options_go_before_the_files(place, tmp_path):
    (tmp_path / "empty").mkdir()
    config = place.config("--dialect", "quartermaster", "--vram", "5", "--ram", "6", "--backend", "llama=/my/server")
    assert (config["vramBudgetGB"], config["ramBudgetGB"]) == (5, 6)
    assert config["models"]["gemma3-1b-q8_0"]["cmd"].startswith("/my/server ")
    assert not place.config("--models", str(tmp_path / "empty"))["models"]


def test_further_folders_are_scanned(place, tmp_path):
    (tmp_path / "main").mkdir()
    place.write({"modelsRoot": str(tmp_path / "main"), "folders": [{"path": str(place.models), "category": "llm"}]})
    assert len(place.config()["models"]) == 2
    place.write({"categoryRoots": {"embed": str(place.models)}})
    assert len(place.config()["models"]) == 2
    place.write({"modelsRoot": ""})
    assert not place.config()["models"]
    place.write({"modelsRoot": str(tmp_path / "away")})
    before = place.output.read_bytes()
    with pytest.raises(ExportError, match="away"):
        place.run()
    assert place.output.read_bytes() == before


def test_it_is_made_anew_only_when_something_changed(place, monkeypatch):
    monkeypatch.setattr(generate_inputs, "_program_digest", lambda: "1")
    assert "wrote" in place.run()[2]
    assert "up to date" in place.run("--timestamp", "later")[2]
    assert "up to date" not in place.run("--vram", "10")[2]
    assert "up to date" not in place.run("--dialect", "quartermaster")[2]
    assert "up to date" in place.run("--dialect", "quartermaster")[2]
    place.write_sidecar(settings={"threads": 3})
    assert "wrote" in place.run("--dialect", "quartermaster")[2]
    assert "-t 3" in place.output.read_text()
    assert "up to date" not in place.run("--dialect", "quartermaster", "--no-cache")[2]
    assert place.run(output="-")[1].startswith("#")
    place.run("--dialect", "quartermaster")
    monkeypatch.setattr(generate_inputs, "_program_digest", lambda: "2")
    assert "up to date" not in place.run("--dialect", "quartermaster")[2]


def test_faults_are_told_with_their_lines_and_nothing_is_written(place):
    place.settings.write_text("settings:\n  threads: many\noverrides:\n  - ctx: 5\n")
    with pytest.raises(SettingsError) as failure:
        place.run()
    assert [line.rpartition("quartermaster-generate.yaml: ")[2] for line in str(failure.value).split("\n")] == [
        "line 2: settings.threads: expected a number",
        "line 4: overrides[0]: match is required",
    ]
    assert not place.output.exists()
    place.settings.write_text("settings: [")
    with pytest.raises(SettingsError, match=r"quartermaster-generate\.yaml: line"):
        place.run()


def test_keys_that_nothing_reads_are_said(place):
    place.write({"modelsRoot": str(place.models), "aliases": {}, "threds": 3})
    errors = place.run()[2]
    assert "quartermaster-generate.yaml: line" in errors
    assert "settings.aliases" in errors
    assert "is threads meant?" in errors


def test_rows_of_files_that_are_gone_leave_the_sidecar_and_nothing_else_does(place):
    gone = str(place.models / "gone.gguf")
    place.write_sidecar(
        overrides=[{"match": gone, "ctx": 1}, {"match": place.gemma, "ctx": 4096, "new": "on"}, {"match": "*x*"}],
        futureKey={"a": [1, {"b": "on"}]},
    )
    assert f"its file is gone: {gone}" in place.run()[2]
    assert yaml.safe_load(place.sidecar.read_text()) == {
        "overrides": [{"match": place.gemma, "ctx": 4096, "new": "on"}, {"match": "*x*"}],
        "futureKey": {"a": [1, {"b": "on"}]},
    }


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "--models DIR, or a settings file"),
        (("--models", ".", "--sidecar", "x"), "goes with --settings"),
        (("--settings", "/no/such/file"), "does not exist"),
        (("--settings", "."), "is no file"),
    ],
)
def test_wrong_usage(words, message, tmp_path):
    parser = argparse.ArgumentParser()
    verb.add_arguments(parser)
    environment = Environment(tmp_path, datetime(2026, 11, 30, tzinfo=UTC), io.StringIO(), io.StringIO())
    with pytest.raises(UsageError, match=message):
        verb.run(parser.parse_args([*words, "-o", str(tmp_path / "out")]), environment)


def test_the_config_never_replaces_the_settings(place):
    with pytest.raises(UsageError, match="names the settings file"):
        place.run(output=place.settings)


def test_a_target_for_one_model_counts_where_there_is_no_gpu(place):
    place.write({"modelsRoot": str(place.models), "maxRamGB": 32}, [{"match": "*gemma*", "vramTargetGB": 8}])
    model = place.config("--vram", "0", "--dialect", "quartermaster")["models"]["gemma3-1b-q8_0"]
    assert model["estVramGB"] > 1
    assert os.path.exists(place.output)
