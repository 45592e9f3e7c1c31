"""The whole pipeline, folders in and a file out: over the zoo, and with everything that can be wrong on disk."""

from __future__ import annotations

import io
import json
import os
import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gpus_app.core.budget import budget_of
from models_app.core import cli, generate
from models_app.core.catalog import ArgToken, FileEntry, Header, Placement, Plan, Row
from models_app.core.discovery.inventory import Inventory
from models_app.core.errors import ExportError, PlanError, UsageError
from models_app.core.export import load, schema
from models_app.core.export.dialects import BY_SLUG
from models_app.core.export.findings import blocks
from models_app.core.export.presets import check as preset_check
from models_app.core.export.presets import reading, router
from models_app.core.export.router.load_rules import load_config
from models_app.core.settings import (
    ApiKey,
    ExtraImageModel,
    GroupSpec,
    Override,
    PromptEnhancer,
    Settings,
    SlotCache,
    Variant,
)
from models_app.core.verbs import check
from models_app.core.verbs import generate as verb
from models_app.core.verbs.environment import Environment
from tests.gguf_bytes import header_bytes
from tests.tiny_models import tiny_gguf
from tests.zoo import zoo

GOLDEN = Path(__file__).parent.parent / "golden"
YAML_DIALECTS = [slug for slug, dialect in BY_SLUG.items() if dialect.file_name.endswith(".yaml")]
SHELF = (
    "gemma3-1b-q8_0",
    "qwen3-30b-a3b-q4_k_m",
    "gpt-oss-20b-mxfp4",
    "llama33-70b-q4_k_m",
    "nomic-embed-text-v1.5-f16",
)


def run(folder, *words, data_dir, output="-"):
    """The verb with captured streams: exit code, standard output, standard error."""
    out, err = io.StringIO(), io.StringIO()
    parser = cli.argparse.ArgumentParser()
    verb.add_arguments(parser)
    environment = Environment(Path(data_dir), datetime(2026, 11, 30, 10, tzinfo=UTC), out, err)
    arguments = ["--models", str(folder), "--vram", "24", "--ram", "64", "-o", str(output), *words]
    code = verb.run(parser.parse_args(arguments), environment)
    return code, out.getvalue(), err.getvalue()


@pytest.fixture(scope="module")
def shelf(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shelf")
    for name in SHELF:
        zoo.write_model(name, str(folder))
    return folder


@pytest.mark.parametrize("dialect", BY_SLUG)
def test_golden(dialect, shelf, tmp_path):
    """`UPDATE_GOLDEN=1` renews the files after a change that was meant."""
    code, text, _ = run(shelf, "--dialect", dialect, "--timestamp", "2026-11-30T10:00:00Z", data_dir=tmp_path)
    assert code == 0
    text = text.replace(str(shelf), "/models")
    golden = GOLDEN / f"shelf.{dialect}{Path(BY_SLUG[dialect].file_name).suffix}"
    if os.environ.get("UPDATE_GOLDEN"):
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize("dialect", YAML_DIALECTS)
def test_the_whole_zoo(dialect, zoo_folder, tmp_path):
    report = tmp_path / "report.json"
    words = ("--dialect", dialect, "--timestamp", "T", "--report", str(report))
    code, text, errors = run(zoo_folder, *words, data_dir=tmp_path)
    assert code == 0
    config = load.load(text).value
    assert schema.is_valid(dialect, config)
    assert load_config(dialect, text, {}).loads
    told = json.loads(report.read_text())
    assert [entry["id"] for entry in told["entries"]] == list(config["models"])
    assert len(told["entries"]) + len(told["skipped"]) == len(zoo.MODELS)
    assert not told["skipped"]
    assert {entry["class"] for entry in told["entries"]} == {"llm", "embedding"}
    for fields in config["models"].values():
        assert fields["cmd"].count("${PORT}") == 1
    again = run(zoo_folder, *words, "--no-cache", data_dir=tmp_path)
    assert again[1] == text


def test_a_file_is_left_alone_when_only_its_time_would_change(shelf, tmp_path):
    target = tmp_path / "config.yaml"
    assert run(shelf, "--timestamp", "one", data_dir=tmp_path, output=target)[0] == 0
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    before = (target.read_bytes(), target.stat().st_mtime_ns, target.stat().st_ino)
    code, _, errors = run(shelf, "--timestamp", "two", data_dir=tmp_path, output=target)
    assert code == 0
    assert "left alone" in errors
    assert (target.read_bytes(), target.stat().st_mtime_ns, target.stat().st_ino) == before
    run(shelf, "--timestamp", "three", "--backend", "llama=/opt/llama-server", data_dir=tmp_path, output=target)
    assert "/opt/llama-server" in target.read_text()
    assert list(tmp_path.glob("*.tmp")) == []


HOSTILE_NAMES = [
    'quote".gguf',
    "single'.gguf",
    "blank in the name.gguf",
    "hash # mark.gguf",
    "colon: [x], {y}.gguf",
    "-dash.gguf",
    "ünï-模型.gguf",
    "percent%20.gguf",
    "dollar$x.gguf",
]
REFUSED_NAMES = ["back\\slash.gguf", "line\nbreak.gguf", "macro${PORT}.gguf", "env${env.HOME}.gguf", "tab\t.gguf"]


def test_hostile_names(shelf, tmp_path):
    source = next(shelf.glob("gemma3-1b*"))
    models = tmp_path / "models"
    models.mkdir()
    data = source.read_bytes()[: 8 << 20]
    size = source.stat().st_size
    for name in [*HOSTILE_NAMES, *REFUSED_NAMES]:
        (models / name).write_bytes(data)
        os.truncate(models / name, size)
    (models / "broken.gguf").write_bytes(b"not a model")
    (models / "empty.gguf").write_bytes(b"")
    os.link(models / "broken.gguf", os.fsencode(models) + b"/bad-\xff.gguf")
    for dialect in YAML_DIALECTS:
        report = tmp_path / "report.json"
        code, text, _ = run(models, "--dialect", dialect, "--report", str(report), data_dir=tmp_path)
        assert code == 0
        told = json.loads(report.read_text())
        assert sorted(Path(entry["file"]).name for entry in told["entries"]) == sorted(HOSTILE_NAMES)
        reasons = {Path(item["file"]).name: item["reason"] for item in told["skipped"]}
        assert len(reasons) == len(REFUSED_NAMES) + 3
        assert "unreadable header" in reasons["broken.gguf"]
        config = load.load(text).value
        arguments = {word for fields in config["models"].values() for word in words_of(fields["cmd"])}
        assert {str(models / name) for name in HOSTILE_NAMES} <= arguments
        assert text.count("${") == len(HOSTILE_NAMES)
        assert load_config(dialect, text, {}).loads
        assert text.count("# SKIPPED") == len(reasons)


def words_of(command):
    from models_app.core.launch.tokens import split_command

    return split_command(command)


def test_nothing_to_serve(tmp_path):
    (tmp_path / "models").mkdir()
    for dialect in YAML_DIALECTS:
        code, text, told = run(tmp_path / "models", "--dialect", dialect, data_dir=tmp_path)
        assert code == 0
        assert told == f"note: no model file was found in {tmp_path / 'models'}\n"
        assert load.load(text).value["models"] == {}
        assert load_config(dialect, text, {}).loads


def test_what_cannot_be_judged_is_served_without_figures(tmp_path):
    (tmp_path / "models").mkdir()
    pairs = [["general.architecture", "string", "llama"], ["llama.block_count", "u32", 4]]
    (tmp_path / "models" / "plain-1B-Q8_0.gguf").write_bytes(header_bytes({"kv": pairs, "tensors": []}) + bytes(64))
    for dialect in YAML_DIALECTS:
        _code, text, _told = run(tmp_path / "models", "--dialect", dialect, data_dir=tmp_path)
        assert "# WARNING: Cannot judge: in the header, embedding_length is missing or absurd." in text
        assert "est vram" not in text
        assert "estVramGB:" not in text


def test_usage(tmp_path):
    with pytest.raises(UsageError, match="does not exist"):
        run(tmp_path / "missing", data_dir=tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="not a folder"):
        run(tmp_path / "file", data_dir=tmp_path)
    for backend in ("what=/x", "llama", "llama=", "llama=/a\nb", "llama=${env.HOME}/server"):
        with pytest.raises(UsageError):
            run(tmp_path, "--backend", backend, data_dir=tmp_path)
    unusable = tmp_path / "${PORT}"
    unusable.mkdir()
    with pytest.raises(ExportError, match="a macro"):
        run(unusable, data_dir=tmp_path, output=tmp_path / "never")
    with pytest.raises(UsageError, match="the same file"):
        run(tmp_path, "--report", str(tmp_path / "x"), data_dir=tmp_path, output=tmp_path / "x")
    for figure in ("x", "-1", "nan", "", "1,,2"):
        with pytest.raises(SystemExit):
            run(tmp_path, "--vram", figure, data_dir=tmp_path)


def test_the_whole_zoo_as_presets(zoo_folder, tmp_path):
    report = tmp_path / "report.json"
    words = ("--dialect", "llama-server", "--timestamp", "T", "--report", str(report))
    code, text, _ = run(zoo_folder, *words, data_dir=tmp_path)
    assert code == 0
    told = json.loads(report.read_text())
    assert list(reading.read(text).models) == sorted(item["id"] for item in told["entries"])
    assert len(told["entries"]) > 25
    assert router.starts(text)
    assert preset_check.check_bytes(text.encode()) == []


@pytest.mark.parametrize("target", ["no/such/folder/config.yaml", "."])
def test_a_target_that_cannot_be_written(target, tmp_path, capsys):
    models = tmp_path / "models"
    models.mkdir()
    words = ["generate", "--models", str(models), "--vram", "8", "--ram", "8", "-o", str(tmp_path / target)]
    assert cli.main(words) == 1
    assert "cannot be written" in capsys.readouterr().err


def test_a_folder_that_cannot_be_listed_writes_nothing(tmp_path, monkeypatch):
    """Its models would be missing from the file."""
    for name in ("open", "locked"):
        (tmp_path / name).mkdir()
        tiny_gguf(tmp_path / name / f"{name}.gguf", name)
    listed = os.scandir

    def scandir(path):
        if str(path).endswith("locked"):
            raise PermissionError(13, "Permission denied")
        return listed(path)

    monkeypatch.setattr(os, "scandir", scandir)
    target = tmp_path / "config.yaml"
    words = ("--models", str(tmp_path / "locked"))
    with pytest.raises(ExportError, match="locked"):
        run(tmp_path / "open", *words, data_dir=tmp_path, output=target)
    assert not target.exists()
    assert run(tmp_path, data_dir=tmp_path, output=target)[0] == 0, "a folder below a root costs only its own models"


# The pipeline on values made by hand.


def row(name, **fields):
    path = fields.pop("path", f"/models/{name}.gguf")
    return Row(
        name, path, base_id=name, file_name=f"{name}.gguf", model_class=fields.pop("model_class", "llm"), **fields
    )


def plan(profile_id, *lines, **fields):
    placement = Placement(8192, 33, 0, "f16", "f16", 512, 2048)
    command = ("llama-server", "-m /m.gguf", "--port ${PORT}", f"-a {profile_id}", *lines)
    tokens = tuple(ArgToken(word) for line in command for word in line.split())
    values = {"est_vram_bytes": 3 << 30, "est_ram_bytes": 1 << 29, **fields}
    return Plan(profile_id, "llm", "fits", placement, None, lines=command, tokens=tokens, **values)


def pipeline(rows, planner, **fields):
    fields.setdefault("settings", Settings(target_vram_gb=24, max_ram_gb=64))
    return generate.generate(
        Inventory(tuple(rows), fields.pop("findings", ()), ()),
        planner,
        header_of=lambda path: Header(architecture="llama", block_count=32, effort_levels=("low", "high")),
        timestamp="T",
        dialect=fields.pop("dialect", "quartermaster"),
        **fields,
    )


def test_one_bad_row_never_fails_the_file():
    def planner(row, header, override):
        match row.id:
            case "raises":
                raise PlanError("no way\nthrough ${x}")
            case "surprises":
                raise ZeroDivisionError("division by zero")
            case "refuses":
                return (plan(row.id, skip_reason="incomplete"),)
            case "breaks":
                return (plan(row.id, "--x 'a\n# b'"),)
            case "macro":
                return (plan(row.id, "--x ${HOME}"),)
        return (plan(row.id),)

    rows = [
        row("good"),
        row("breaks"),
        row("macro"),
        row("raises"),
        row("refuses"),
        row("surprises"),
        row("lost", model_class=""),
    ]
    for dialect in BY_SLUG:
        result = pipeline(rows, planner, dialect=dialect)
        assert [entry.id for entry in result.document.entries] == ["good"]
        assert {Path(item["file"]).stem for item in result.report.skipped} == {
            "breaks",
            "macro",
            "raises",
            "refuses",
            "surprises",
            "lost",
        }
        assert not blocks(result.findings)
        assert "${HOME}" not in result.text
        assert "${x}" not in result.text


def test_ids_stay_unique_over_rows_and_profiles():
    rows = [row("m", publisher="A"), row("m", publisher="B", path="/b/m.gguf"), row("m-4k"), row("m-b", path="/x.gguf")]
    result = pipeline(rows, lambda row, header, override: (plan(row.id), plan(f"{row.id}-4k")))
    ids = [entry.id for entry in result.document.entries]
    assert ids == ["m", "m-4k", "m-b", "m-b-4k", "m-4k-2", "m-4k-2-4k", "m-b-2", "m-b-2-4k"]
    twice = pipeline([row("m")], lambda row, header, override: (plan("m"), plan("m-x"), plan("m-x")))
    assert [item.reason for item in twice.document.skipped] == ["that id is taken"]


def test_a_skipped_override_leaves_no_trace():
    overrides = (Override(match="*gone*", skip=True), Override(match="*", ttl_sec=0))
    result = pipeline([row("gone"), row("kept")], lambda row, header, override: (plan(row.id),), overrides=overrides)
    assert "gone" not in result.text
    assert result.document.entries[0].fields["ttl"] == 0


def test_everything_that_settings_add():
    settings = Settings(
        target_vram_gb=24,
        max_ram_gb=0,
        health_check_timeout=3,
        slot_cache=SlotCache(enable=True, path="C:\\kv"),
        api_keys=(ApiKey("a", "key-a"), ApiKey("b", "key-b", ("m",))),
        prompt_enhancers=(PromptEnhancer("pe", system_prompt="one\ntwo\n"), PromptEnhancer("leak", "", "${env.HOME}")),
        display_names={"m": "Chat", "n": "Chat"},
        groups=(GroupSpec("on", ":1250", ("m*",)), GroupSpec("rest", "", ("*",))),
        extra_image_models=(ExtraImageModel("flux", "/flux.gguf"),),
        extra_models={"hand": {"cmd": "srv --port ${PORT}\n# note\n", "estVramGB": 2, "ttl": 5}, "bad": {"cmd": "x"}},
    )
    override = Override(match="*", slot_cache=True, slot_cache_preamble=False, device="cpu")

    def planner(row, header, override):
        if row.id == "n":
            return (plan("n", "--mmproj /p.gguf"),)
        return (plan("m", unlisted=True, warnings=("Watch out.",)),)

    result = pipeline([row("m"), row("n")], planner, settings=settings, overrides=(override,), cache_dir="/c")
    config = load.load(result.text).value
    assert config["healthCheckTimeout"] == 15
    assert config["slotCache"]["path"] == "C:/kv"
    assert "ramBudgetGB" not in config
    assert config["apiKeyModels"] == {"key-b": ["m"]}
    assert config["promptEnhancers"] == {"pe": {"systemPrompt": "one\ntwo\n"}}
    assert config["models"]["m"] == {
        "cmd": "llama-server -m /m.gguf --port ${PORT} -a m\n",
        "ttl": 600,
        "estVramGB": 3,
        "estRamGB": 0.5,
        "name": "Chat",
        "aliases": ["Chat"],
        "unlisted": True,
        "slotCachePreamble": False,
        "capabilities": {"reasoningEffort": ["low", "high"]},
    }
    assert "aliases" not in config["models"]["n"]
    assert config["models"]["n"]["capabilities"]["in"] == ["text", "image"]
    assert config["models"]["hand"] == {"cmd": "srv --port ${PORT}\n", "estVramGB": 2, "ttl": 5}
    assert config["groups"]["on"]["members"] == []
    assert config["groups"]["rest"]["members"] == ["flux", "hand"]
    assert config["groups"]["cpu"]["members"] == ["m", "n"]
    assert config["listeners"] == {":1250": {"groups": ["on", "cpu"]}}
    assert config["models"]["flux"]["checkEndpoint"] == "/"
    assert "-m /flux.gguf" in config["models"]["flux"]["cmd"]
    for comment in ('SKIPPED extra model "bad"', "WARNING: Watch out."):
        assert f"# {comment}" in result.text
    assert 'SKIPPED prompt enhancer "leak"' in result.text
    assert not blocks(result.findings)


def test_variants_of_the_planner_come_out():
    from models_app.core.plans import plan_row

    settings = Settings(default_variants=(Variant(name="Game", ctx=4096),))
    header = Header(architecture="llama", block_count=32, context_length=8192)
    result = generate.generate(
        Inventory((row("m", size_bytes=1 << 30, shards=(FileEntry("/m", 1, 1),)),), (), ()),
        lambda row, header, override: plan_row(
            row, header, settings=settings, override=override, budget=budget_of([24], 64)
        ),
        header_of=lambda path: header,
        settings=settings,
        timestamp="T",
        overrides=(Override(match="*", ctx_variants=(4096,)),),
    )
    assert [entry.id for entry in result.document.entries] == ["m", "m-4k", "m-game"]


def test_dialects_of_the_command_line_are_the_registered_ones():
    assert tuple(BY_SLUG) == verb.DIALECTS == check.DIALECTS
