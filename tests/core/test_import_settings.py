"""A generate file and its sidecar as items of an import: everything that they say is told, and where it goes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from models_app.core.export.load import LoadError
from models_app.core.imports.report import Kind, Needs
from models_app.core.imports.settings_rows import KnownFile
from models_app.core.imports.settings_said import Files
from models_app.core.imports.settings_source import joined, read_files, section_of_key, settings_items
from models_app.core.settings_files.files import read_generate_file, read_sidecar
from models_app.core.settings_files.writing import generate_text, sidecar_text
from tests.core.test_settings_files import FILES, SIDECARS, SLOW_MACHINE

MODELS = (KnownFile("/m/Qwen-8b-Q4_0.gguf", "Q4_0"), KnownFile("/m/beta-Q8_0.gguf", "Q8_0"))


def items_of(file="", sidecar="", models=MODELS):
    files = Files(
        read_generate_file(file.encode()) if file else None, read_sidecar(sidecar.encode()) if sidecar else None
    )
    return settings_items(files, models, str)


def shown(items):
    """Kind, subject, variant, field, value of each."""
    return [
        (item.target.kind.value, item.target.subject, item.target.variant, item.target.field, item.value)
        for item in items
    ]


def test_settings_go_to_their_sections_with_their_lines():
    items = items_of(
        "settings:\n  threads: 3\n  targetVramGB: 12\n  kvQuant: q8_0\n  ttlSec: 0\n  encoders: {t5: /t5}\n"
    )
    assert {
        (item.line, item.target.subject, item.target.field, item.value)
        for item in items
        if item.target.kind == Kind.SETTING
    } == {
        (2, "advanced", "threads", 3),
        (3, "memory", "targetVramGB", 12.0),
        (4, "kv", "kvQuant", "q8_0"),
        (6, "encoders", "t5", "/t5"),
    }
    (zero,) = [item for item in items if item.target.kind == Kind.NOWHERE]
    assert (zero.line, zero.source) == (5, "settings.ttlSec")
    assert section_of_key("deviceReserveGB") == ""


def test_the_sidecar_counts_and_the_other_line_is_told():
    items = items_of("settings:\n  threads: 3\n", "settings:\n  threads: 0\n  ttlSec: 0\n")
    assert [(item.source, item.line, item.value) for item in items if item.target.kind == Kind.SETTING] == [
        ("sidecar settings.ttlSec", 3, 0),
        ("sidecar settings.threads", 2, 0),
    ]
    (other,) = [item for item in items if item.target.kind == Kind.NOWHERE]
    assert (other.source, other.line) == ("settings.threads", 2)
    assert "line 2" in other.note


def test_rows_for_a_file_are_fields_and_rows_with_a_pattern_are_rules():
    text = """\
overrides:
  - match: /m/qwen-8b-q4_0.gguf
    ctx: 4096
    tensorSplit: none
    customArgs: --x
    variants: [{name: cold, temp: 0}, {name: plain}]
  - match: "*beta*"
    quant: q8_0
    unlisted: true
    variants: [{name: a, temp: 1}]
"""
    items = items_of(text)
    path = MODELS[0].path
    assert shown(items) == [
        ("override", path, "", "ctx", 4096),
        ("override", path, "", "customArgs", "--x"),
        ("variant", path, "cold", "temp", 0.0),
        ("variant", path, "plain", "", True),
        ("rule", "*beta*", "q8_0", "", {"unlisted": True, "variants": [{"temp": 1.0, "name": "a"}]}),
    ]
    assert [item.needs for item in items] == [Needs.EDIT, Needs.ARGUMENTS, *[Needs.EDIT] * 3]
    assert [item.line for item in items] == [2, 2, 2, 2, 7]


ROWS = {
    "no such model": ("overrides: [{match: /m/none.gguf, ctx: 1}]", "scan its folder"),
    "another quantisation": ("overrides: [{match: /m/beta-Q8_0.gguf, quant: q4_0, ctx: 1}]", "It is for q4_0"),
    "an earlier pattern": (
        "overrides: [{match: '*beta*', ctx: 1}, {match: /m/beta-Q8_0.gguf, ctx: 2}]",
        "overrides[0] in line 1",
    ),
    "the same pattern": ("overrides: [{match: '*b*', ctx: 1}, {match: '*B*', ctx: 2}]", "same pattern"),
    "nothing": ("overrides: [{match: /m/beta-Q8_0.gguf}]", "It sets nothing"),
    "a fault": ("overrides: [{match: /m/beta-Q8_0.gguf, ctx: many}]", "expected a number. The row is not taken"),
    "a masked secret": ("overrides: [{match: '*b*', customArgs: '--api-key abcd…'}]", "masked"),
    "a nameless variant": ("overrides: [{match: /m/beta-Q8_0.gguf, variants: [{temp: 1}]}]", "without a name"),
}


@pytest.mark.parametrize("name", ROWS)
def test_rows_that_are_not_taken_say_why(name):
    text, note = ROWS[name]
    lost = [item for item in items_of(text) if item.target.kind == Kind.NOWHERE]
    assert len(lost) == 1
    assert note in lost[0].note
    assert lost[0].line == 1


def test_the_sidecars_row_shadows_the_files_as_a_whole():
    items = items_of(
        "overrides:\n  - {match: /m/beta-Q8_0.gguf, ctx: 1, unlisted: true}\n",
        "overrides:\n  - {match: /m/beta-Q8_0.gguf, temp: 0}\n",
    )
    assert shown(items)[0] == ("override", "/m/beta-Q8_0.gguf", "", "temp", 0.0)
    assert [item.note for item in items[1:]] == ["sidecar overrides[0] in line 2 counts for this model instead."]


def test_what_a_rule_sets_here_is_automatic_where_the_row_stands_alone():
    models = (KnownFile("/m/beta-Q8_0.gguf", "Q8_0", {"unlisted": True, "temp": 0.5, "ctx": 9}),)
    items = items_of("overrides: [{match: /m/beta-Q8_0.gguf, ctx: 1}]", models=models)
    assert [(item.target.field, item.value) for item in items] == [("ctx", 1), ("unlisted", False), ("temp", None)]


def test_more_rows_than_anybody_writes_are_refused():
    for row, count in (("match: '*a'", 1001), ("match: /a", 20_001)):
        with pytest.raises(LoadError, match="overrides; at most 20,000"):
            items_of("overrides:\n" + f"- {row}\n" * count)


def test_lists_have_a_place_each():
    items = items_of(
        """\
settings:
  modelsRoot: /models
  categoryRoots: {image: /i, llm: /l}
  folders: [{path: /two, category: ""}]
  serverExe: /opt/llama-server
  sdServerExe: sd-server
  defaultVariants: [{name: game, temp: 0}]
  apiKeys: [{name: a, key: qm-1, models: [x]}, {name: b, key: qm-2}]
  extraModels: {mine: {cmd: run, estVramGB: 1}}
  extraImageModels: [{name: A, modelPath: /a}, {name: b, modelPath: /b}]
  app: {listen: ":1", watchModels: false, adminAllow: 10.0.0.0/8, hfToken: hf_1}
""",
        """\
categoryRoots: {image: /j}
backendList: [{id: v, kind: llama.cpp, path: /opt/v, default: true}, {kind: other, path: /x}]
backends: {serverExe: /opt/v}
extraImageModels: [{name: a, modelPath: /c}]
removedExtraImageModels: [B]
backendSources: [{id: s, repo: a/b}]
""",
    )
    kept = [entry for entry in shown(items) if entry[0] != "nowhere"]
    assert kept == [
        ("root", "/models", "", "", ""),
        ("root", "/j", "", "", "image"),
        ("root", "/l", "", "", "llm"),
        ("root", "/two", "", "", ""),
        ("backend", "/opt/v", "", "", {"id": "v", "kind": "llama", "path": "/opt/v", "default": True}),
        ("fleet-variant", "", "game", "temp", 0.0),
        ("api-key", "a", "", "", {"name": "a", "key": "qm-1", "models": ["x"]}),
        ("api-key", "b", "", "", {"name": "b", "key": "qm-2"}),
        ("setting", "declared", "", "extraImageModels", [{"name": "a", "modelPath": "/c"}]),
        ("fragment", "mine", "", "", {"cmd": "run", "estVramGB": 1}),
        ("setting", "watching", "", "pollSec", 0),
    ]
    lost = {item.source: item for item in items if item.target.kind == Kind.NOWHERE}
    assert set(lost) == {
        "settings.categoryRoots.image",
        "settings.serverExe",
        "settings.sdServerExe",
        "sidecar backendList[1]",
        "sidecar backendSources[0]",
        "settings.app.listen",
        "settings.app.adminAllow",
        "settings.app.hfToken",
    }
    assert all(item.note for item in lost.values())
    assert all(item.secret for item in items if item.target.kind == Kind.API_KEY)
    assert lost["settings.app.hfToken"].secret
    assert "opens every model" in next(item.note for item in items if item.target.subject == "b")
    assert {item.needs for item in items if item.target.kind in (Kind.ROOT, Kind.BACKEND, Kind.FRAGMENT)} == {
        Needs.MANAGE
    }


def test_files_are_told_apart_and_come_together():
    file, sidecar = "settings: {threads: 1}\n", "settings: {threads: 2}\n"
    assert read_files("any.yaml", file.encode()).sidecar is None
    assert read_files("quartermaster-overrides.yaml", sidecar.encode()).file is None
    assert read_files("any.yaml", b"displayNames: {a: b}\n").file is None
    both = read_files("any.yaml", joined(file.strip(), sidecar).encode())
    assert (both.settings, both.patch) == ({"threads": 1}, {"threads": 2})
    with pytest.raises(LoadError, match="line 2: "):
        read_files("any.yaml", joined(file, "a: [").encode())


def test_faults_and_unknown_keys_are_items_too():
    items = items_of("settings:\n  threds: 1\n  threads: many\nmodels: {}\n", "futureKey: 1\n")
    assert [(item.source, item.line, item.target.kind) for item in items] == [
        ("settings.threads", 3, Kind.NOWHERE),
        ("models", 4, Kind.NOWHERE),
        ("settings.threds", 2, Kind.NOWHERE),
        ("sidecar futureKey", 1, Kind.NOWHERE),
    ]


@settings(max_examples=80, deadline=None, suppress_health_check=SLOW_MACHINE)
@given(FILES, SIDECARS)
def test_nothing_is_dropped(file, sidecar):
    """Every key that stands in one of the files is in the source of an item, whatever the files hold."""
    items = items_of(generate_text(file), sidecar_text(sidecar))
    sources = " ".join(item.source for item in items)
    for key, value in file.settings.items():
        told = key in sources or (key == "extraImageModels" and "removedExtraImageModels" in sources)
        assert told or value in ([], {})
    for index in range(len(file.overrides)):
        assert f"overrides[{index}]" in sources
    for key in sidecar.settings or {}:
        assert f"sidecar settings.{key}" in sources
