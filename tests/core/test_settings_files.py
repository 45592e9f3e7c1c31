"""The generate file and the sidecar as texts: lines of faults, words of YAML 1.1, nothing lost there and back."""

from __future__ import annotations

import dataclasses
import types
import typing
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from models_app.core.errors import ExportError, SettingsError
from models_app.core.export.load import LoadError, load
from models_app.core.fields import PATCH_FIELDS, SETTINGS_FIELDS
from models_app.core.settings import AppSettings, Override, Settings, SlotCache, Variant, settings_from_mapping
from models_app.core.settings.codec import key_of, shape
from models_app.core.settings.codec import record_to_mapping as plain
from models_app.core.settings_files.files import (
    FolderSpec,
    GenerateFile,
    OwnSettings,
    must_be_sound,
    read_generate_file,
    read_sidecar,
    state_of,
)
from models_app.core.settings_files.reading import WORD_KEYS
from models_app.core.settings_files.writing import generate_text, sidecar_text
from models_app.core.state.sidecar import Sidecar

FILE = """\
# by hand
settings:
  modelsRoot: /models
  threads: 0x10
  multiGpu: off
  sharedMemory: off
  kvQuant: q8_0
  slotCache:
    enable: yes
  encoders: {fluxVae: 12:30}
  deviceReserveGB: {0: 1.5}
  devicePreference: {1: last}
overrides:
  - match: "*qwen*"
    quant: 007
    flashAttn: on
    mmap: false
    contextShift: no
    mlock: yes
    temp: 0
    ctxVariants: [8192, 16384]
    loras:
      - {path: a.gguf, scale: 0}
    variants:
      - name: 1e3
        mmap: true
  - match: none
    tensorSplit: none
"""


def test_words_have_the_type_of_their_field():
    read = read_generate_file(FILE.encode())
    assert (read.errors, read.unknown) == ((), ())
    values = read.content.settings
    assert (values["threads"], values["multiGpu"], values["sharedMemory"]) == (16, False, "off")
    assert values["slotCache"] == {"enable": True}
    assert values["encoders"] == {"fluxVae": "12:30"}
    assert read.content.own == OwnSettings(device_reserve_gb={"0": 1.5}, device_preference={"1": "last"})
    row, other = read.content.overrides
    assert (row.quant, row.flash_attn, row.mmap, row.context_shift, row.mlock) == ("007", "on", "off", "off", True)
    assert (row.temp, row.ctx_variants, row.loras[0].scale) == (0.0, (8192, 16384), 0.0)
    assert (row.variants[0].name, row.variants[0].mmap) == ("1e3", "on")
    assert other.tensor_split == "none"
    assert state_of(read.content, Sidecar()).overrides[1].tensor_split == ""


def test_faults_are_told_with_line_and_place_all_at_once():
    text = """\
settings:
  threads: many
  aliases: [a]
  threds: 4
  targetVramGB: .nan
overrides:
  - match: "*"
    ctx: "4096"
    flashAtn: on
    variants:
      - {name: a, temp: warm}
  - ctx: 5
  - just words
extra: 1
"""
    read = read_generate_file(text.encode())
    assert [(remark.line, remark.where) for remark in read.errors] == [
        (2, "settings.threads"),
        (5, "settings.targetVramGB"),
        (8, "overrides[0].ctx"),
        (11, "overrides[0].variants[0].temp"),
        (12, "overrides[1]"),
        (13, "overrides[2]"),
        (13, "overrides[2]"),
    ]
    assert str(read.errors[0]) == "line 2: settings.threads: expected a number"
    assert [(remark.line, remark.where) for remark in read.unknown] == [
        (14, "extra"),
        (3, "settings.aliases"),
        (4, "settings.threds"),
        (9, "overrides[0].flashAtn"),
    ]
    assert "is threads meant?" in str(read.unknown[2])
    assert [remark.line for remark in read.errors_below(("overrides", 0))] == [8, 11]
    with pytest.raises(SettingsError, match=r"a\.yaml: line 12: overrides\[1\]: match is required"):
        must_be_sound("a.yaml", read)


def test_a_key_with_a_block_below_is_told_by_its_own_line():
    text = "settings:\n\n  # why\n  groups:\n\n    - name: a\n  aliases:\n    x: y\n"
    text += "overrides:\n  - match: a\n    variants:\n      - name: b\n"
    read = read_generate_file(text.encode())
    assert [remark.line for remark in read.unknown] == [7]
    paths = [
        ("settings",),
        ("settings", "groups"),
        ("settings", "groups", 0),
        ("overrides", 0),
        ("overrides", 0, "variants"),
    ]
    assert [read.line_of(path) for path in paths] == [1, 4, 6, 10, 11]
    assert read.line_of(("settings", "none", "deeper")) == 1


HOSTILE = {
    "bomb": "a: &a [x, x]\n"
    + "".join(f"{chr(98 + n)}: &{chr(98 + n)} [*{chr(97 + n)}, *{chr(97 + n)}]\n" for n in range(20)),
    "deep": "settings: " + "[" * 5000,
    "tag": "settings: !!python/object/apply:os.system [ls]",
    "twice": "settings: {threads: 1}\nsettings: {threads: 2}",
    "second document": "settings: {}\n---\nsettings: {}",
    "list": "- a",
    "binary": b"\xff\xfe\x00",
    "control": "settings: {modelsRoot: '\x07'}",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts_are_refused(name):
    text = HOSTILE[name]
    for read in (read_generate_file, read_sidecar):
        with pytest.raises(LoadError):
            read(text if isinstance(text, bytes) else text.encode())


def test_hostile_shapes_are_remarks():
    text = "settings: []\noverrides: {a: 1}\n"
    assert len(read_generate_file(text.encode()).errors) == 2
    text = "settings: {denseCtxLadder: [1, null, x], apiKeys: [1], displayNames: [a], ttlSec: 99999999999999999999}"
    assert {remark.path[1] for remark in read_generate_file(text.encode()).errors} == {
        "denseCtxLadder",
        "apiKeys",
        "displayNames",
        "ttlSec",
    }
    many = "settings: {" + ", ".join(f"x{n}: 1" for n in range(3000)) + "}"
    assert len(read_generate_file(many.encode()).unknown) == 1000
    assert read_generate_file(b"").content == GenerateFile()
    assert read_sidecar(b"# nothing\n").content == Sidecar()


def test_the_sidecar_keeps_zeros_and_empty_lists():
    text = b"settings: {ttlSec: 0, threads: null, groups: []}\ndefaultVariants: []\nslotCache: {enable: true}\nnew: 1\n"
    read = read_sidecar(text)
    assert read.content.settings == {"ttlSec": 0}
    assert read.content.default_variants == ()
    assert read.content.prompt_enhancers is None
    assert read.content.slot_cache == SlotCache(True, "", 0, 0.0, 0)
    assert [remark.where for remark in read.unknown] == ["new", "settings.groups"]


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(
    [
        "on",
        "off",
        "yes",
        "no",
        "none",
        "true",
        "null",
        "~",
        "",
        " ",
        "12:30",
        "007",
        "0x10",
        "1e3",
        "<<",
        "a\nb\n",
        "- a",
        "#",
        "y",
        "=cmd",
    ]
)
SCALARS = {
    str: TEXT,
    bool: st.booleans(),
    int: st.integers(-(2**40), 2**40),
    float: st.floats(-1e15, 1e15, allow_nan=False).map(float),
}
SCALARS[object] = st.recursive(
    st.one_of(*SCALARS.values()),
    lambda inner: st.lists(inner | st.none(), max_size=2) | st.dictionaries(TEXT, inner | st.none(), max_size=2),
    max_leaves=4,
)


SLOW_MACHINE = [HealthCheck.too_slow, HealthCheck.data_too_large]
WORDS = st.sampled_from(["on", "off", "auto", "", "none", "other"])


def values(annotation, key=""):
    """Every value that a field of this type may have; words in their one spelling."""
    if isinstance(annotation, types.UnionType):
        return st.none() | values(next(item for item in typing.get_args(annotation) if item is not type(None)))
    origin = typing.get_origin(annotation)
    if origin is tuple:
        return st.lists(values(typing.get_args(annotation)[0]), max_size=2).map(tuple)
    if origin is not None:
        return st.dictionaries(TEXT, values(typing.get_args(annotation)[1]), max_size=2)
    if dataclasses.is_dataclass(annotation):
        return records(annotation)
    return WORDS if key in WORD_KEYS and annotation is str else SCALARS[annotation]


@st.composite
def records(draw, kind, **always):
    """A record in which some fields are set."""
    fields = shape(kind)
    chosen = draw(st.lists(st.sampled_from([key for key in fields if fields[key][0] not in always]), max_size=3))
    given = {fields[key][0]: draw(values(fields[key][1], key)) for key in dict.fromkeys(chosen)}
    return kind(**given, **{name: draw(strategy) for name, strategy in always.items()})


ROW = records(Override, match=TEXT.filter(str.strip))
ROWS = st.lists(ROW, max_size=2).map(tuple)
SET = [field.key for field in SETTINGS_FIELDS if field.key != "extraModels"]


@st.composite
def setting_maps(draw, keys):
    """Some of these keys with values in the types of their fields, in the form that a file has."""
    chosen = draw(st.lists(st.sampled_from(keys), unique=True, max_size=6))
    types_of = shape(Settings)
    document = {key: plain_value(draw(values(types_of[key][1], key))) for key in chosen}
    return {key: document[key] for key in keys if key in document}


def plain_value(value):
    if dataclasses.is_dataclass(value):
        return plain(value)
    return [plain_value(item) for item in value] if isinstance(value, tuple) else value


FILES = st.builds(GenerateFile, settings=setting_maps(SET), own=records(OwnSettings), overrides=ROWS)


@settings(max_examples=100, suppress_health_check=SLOW_MACHINE)
@given(FILES)
def test_a_generate_file_comes_back_as_it_was_written(file):
    text = generate_text(file)
    read = read_generate_file(text.encode())
    assert (read.errors, read.unknown) == ((), ())
    assert read.content == file
    assert generate_text(read.content) == text


PATCHES = st.none() | setting_maps([field.key for field in PATCH_FIELDS]).map(lambda patch: patch or None)

SIDECARS = records(Sidecar, settings=PATCHES, overrides=ROWS)


@settings(max_examples=100, suppress_health_check=SLOW_MACHINE)
@given(SIDECARS)
def test_a_sidecar_comes_back_as_it_was_written(sidecar):
    text = sidecar_text(sidecar)
    read = read_sidecar(text.encode())
    assert (read.errors, read.unknown) == ((), ())
    assert read.content == sidecar
    assert sidecar_text(read.content) == text


@settings(max_examples=60, suppress_health_check=SLOW_MACHINE)
@given(ROW)
def test_other_readers_see_the_same_texts(row):
    """What we write means the same to a reader of YAML 1.1, which knows many more words."""
    text = generate_text(GenerateFile(overrides=(row,)))
    assert yaml.safe_load(text) == load(text).value


def test_what_no_reader_can_be_given_is_refused():
    with pytest.raises(ExportError, match="not UTF-8"):
        generate_text(GenerateFile(overrides=(Override(match="/m/\udcff.gguf"),)))


def test_the_text_is_for_people():
    row = Override(
        match="*qwen*", flash_attn="on", ctx=4096, ctx_variants=(1, 2), variants=(Variant(name="a", temp=0.0),)
    )
    file = GenerateFile({"threads": 4, "modelsRoot": "/m"}, OwnSettings((FolderSpec("/n", "image"),)), (row,))
    assert generate_text(file, ["hello"]) == (Path(__file__).parent.parent / "golden/generate-file.yaml").read_text()


def test_every_field_of_the_settings_has_a_key_that_is_read():
    assert {key_of(item.name) for item in dataclasses.fields(Settings)} == {field.key for field in SETTINGS_FIELDS}
    assert settings_from_mapping({}) == Settings()
    assert AppSettings() == read_sidecar(b"app: {}").content.app
