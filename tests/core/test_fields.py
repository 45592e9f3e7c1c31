"""The field catalogue against the value types that it describes, and typed values against its ranges."""

from __future__ import annotations

import dataclasses
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models_app.core.errors import SettingsError
from models_app.core.fields import (
    MODEL_FIELDS,
    OVERRIDE_FIELDS,
    PATCH_FIELDS,
    SETTINGS_FIELDS,
    VARIANT_FIELDS,
    Field,
    attribute_of,
)
from models_app.core.fields.choices import MODEL_CLASSES
from models_app.core.fields.field import BLANKS, MODEL_ONLY
from models_app.core.fields.groups import model_fields
from models_app.core.launch.backends import KINDS
from models_app.core.settings import (
    Override,
    Settings,
    Variant,
    override_from_mapping,
    record_to_mapping,
    settings_from_mapping,
    unknown_keys,
    variant_from_mapping,
)
from models_app.core.settings.codec import key_of
from models_app.core.state.patch import SECTIONS
from models_app.core.state.values import FieldError, accepted_range, field_problem, parse_field

TABLES = [(SETTINGS_FIELDS, Settings), (OVERRIDE_FIELDS, Override), (VARIANT_FIELDS, Variant)]
EVERY_FIELD = [*SETTINGS_FIELDS, *MODEL_FIELDS]


def field_of(key: str) -> Field:
    return next(field for field in MODEL_FIELDS if field.key == key)


@pytest.mark.parametrize(("table", "kind"), TABLES, ids=lambda item: getattr(item, "__name__", ""))
def test_one_row_per_attribute(table, kind):
    assert {field.attribute for field in table} == {item.name for item in dataclasses.fields(kind)}
    assert len({field.key for field in table}) == len(table)


@pytest.mark.parametrize(("table", "kind"), TABLES, ids=lambda item: getattr(item, "__name__", ""))
def test_absent_is_the_default_of_the_attribute(table, kind):
    value = kind()
    for field in table:
        if field.kind not in ("record", "mapping"):
            assert field.absent == getattr(value, field.attribute), field.key


@pytest.mark.parametrize("field", EVERY_FIELD, ids=lambda field: field.key)
def test_rows_are_sound(field):
    assert field.kind in BLANKS
    assert attribute_of(field.key) == field.attribute
    assert key_of(field.attribute) == field.key
    assert field.label
    assert field.help.endswith(".")
    assert field.group
    assert set(field.classes) <= set(MODEL_CLASSES)
    assert set(field.backends) <= {kind.name for kind in KINDS}
    assert field_problem(field, field.absent) == "" or field.kind in ("record", "mapping")
    assert not (field.minimum is not None and field.maximum is not None and field.minimum > field.maximum)
    assert not field.sentinel or field.inherit == "sentinel"
    assert field.on_variant or field.inherit == field.image_inherit == MODEL_ONLY


def test_zero_is_a_value_where_the_contract_says_so():
    assert {field.key for field in OVERRIDE_FIELDS if field.nullable} == {
        "ctxCheckpoints",
        "temp",
        "topK",
        "topP",
        "minP",
        "presencePenalty",
        "audioDevice",
        "preserveThinking",
        "dry",
        "slotCache",
        "slotCachePreamble",
        "ttlSec",
    }


def test_the_patch_and_its_sections():
    assert len(PATCH_FIELDS) == 27
    sections = [key for keys in SECTIONS.values() for key in keys]
    assert sorted(sections) == sorted(field.key for field in PATCH_FIELDS)


def test_settings_defaults_are_in_range():
    settings = Settings()
    for field in SETTINGS_FIELDS:
        if field.kind not in ("record", "records", "mapping"):
            assert field_problem(field, getattr(settings, field.attribute)) == "", field.key


def test_mapping_round_trip():
    document = {
        "match": "*",
        "ctx": 4096,
        "temp": 0,
        "preserveThinking": False,
        "loras": [{"path": "a", "scale": 0}],
        "variants": [{"name": "x", "kvKDraft": "none"}],
        "ctxVariants": [32768],
        "vramTargetGB": 7.5,
    }
    assert record_to_mapping(override_from_mapping(document)) == document
    assert override_from_mapping(record_to_mapping(override_from_mapping(document), sparse=False)) == (
        override_from_mapping(document)
    )


def test_reading_is_lenient_about_keys_and_nulls_only():
    assert override_from_mapping({"unheardOf": 1, "ctx": None}) == Override()
    assert unknown_keys(Override, {"unheardOf": 1, "ctx": 1}) == ("unheardOf",)
    assert variant_from_mapping({"name": 7}).name == "7"
    for document in (
        {"ctx": "many"},
        {"ctx": 1.5},
        {"ctx": True},
        {"temp": math.nan},
        {"temp": 1e309},
        {"ctx": 10**30},
        {"mlock": 1},
        {"loras": "a"},
        {"variants": [1]},
        {"ctxVariants": {"a": 1}},
        {"spec": ["a"]},
    ):
        with pytest.raises(SettingsError):
            override_from_mapping(document)
    with pytest.raises(SettingsError, match=r"groups\[0\]\.match\[1\]"):
        settings_from_mapping({"groups": [{"match": ["a", {}]}]})


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("ctx", " 32k ", 32768),
        ("ctx", "32K", 32768),
        ("ctx", "", 0),
        ("temp", "", None),
        ("temp", "0", 0.0),
        ("temp", "0,7", 0.7),
        ("temp", ".5", 0.5),
        ("presencePenalty", "-1.5", -1.5),
        ("ctxVariants", "32k, 65536 32k", (32768, 65536)),
        ("mlock", "on", True),
        ("mlock", "", False),
        ("dry", "auto", None),
        ("dry", "off", False),
        ("flashAttn", "", ""),
        ("promptEnhancerPrompt", " kept \n", " kept \n"),
        ("chatTemplateFile", " /a ", "/a"),
    ],
)
def test_typed_values(key, text, value):
    assert parse_field(field_of(key), text) == value


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("ctx", "1,234"),
        ("ctx", "12'000"),
        ("ctx", "٣٢"),
        ("ctx", "1e309"),
        ("ctx", "9" * 30),
        ("ctx", "0.5"),
        ("ctx", "-1"),
        ("temp", "nan"),
        ("temp", "inf"),
        ("temp", "1e309"),
        ("temp", "1,234"),
        ("temp", "5.1"),
        ("temp", "-0.1"),
        ("topK", "1001"),
        ("defaultWidth", "100"),
        ("kvK", "iq4_nl"),
        ("mlock", "maybe"),
        ("vramTargetGB", "-1"),
        ("customArgs", "x" * 16385),
        ("spec", "a\x00b"),
        ("ctxVariants", "1;" * 2000),
    ],
)
def test_rubbish_is_refused_with_the_fields_name(key, text):
    field = field_of(key)
    with pytest.raises(FieldError, match=field.label):
        parse_field(field, text)


@given(st.sampled_from(EVERY_FIELD), st.text(max_size=60))
def test_nothing_typed_raises_anything_else(field, text):
    try:
        value = parse_field(field, text)
    except FieldError:
        return
    assert field_problem(field, value) == ""


def test_huge_texts_are_refused_quickly():
    for field in EVERY_FIELD:
        if field.kind in ("integer", "number", "integers"):
            with pytest.raises(FieldError):
                parse_field(field, "9" * 2_000_000)


def test_ranges_in_words():
    assert accepted_range(field_of("topP")) == "0 to 1"
    assert accepted_range(field_of("vramTargetGB")) == "above 0 GiB"
    assert accepted_range(field_of("ub")) == "32 to 16,384 tokens"
    assert accepted_range(next(field for field in PATCH_FIELDS if field.key == "minGpuFraction")) == "at most 1"


@pytest.mark.parametrize(
    ("model_class", "engine", "keys"),
    [
        ("hf", "vllm", {"ctx", "vramTargetGB"}),
        ("llm", "vllm", {"ctx", "vramTargetGB"}),
        ("embedding", "llama", {"ctx", "device", "threads"}),
        ("decision", "llama", {"ctx", "device", "threads"}),
        ("tts", "ttscpp", {"threads"}),
        ("audiocpp", "audiocpp", {"threads", "audioDevice"}),
    ],
)
def test_a_form_offers_what_the_command_of_its_class_is_made_from(model_class, engine, keys):
    assert keys <= {field.key for field in model_fields(model_class, engine)}


@pytest.mark.parametrize(("model_class", "engine"), [("tts", "tts"), ("asr", "asr"), ("sam", "sam"), ("hf", "vllm")])
def test_threads_are_not_offered_where_nothing_reads_them(model_class, engine):
    assert "threads" not in {field.key for field in model_fields(model_class, engine)}
