"""Records: what goes out comes back, and nothing else comes in."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from types import MappingProxyType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models_app.core.catalog import Header, LayerWeights, WeightTable
from models_app.core.errors import (
    HeaderError,
    MalformedHeader,
    NotThisFormat,
    RecordError,
    SourceUnreadable,
    TruncatedHeader,
    UnsupportedVersion,
)
from models_app.core.readers.error_record import error_from_json, error_to_json
from models_app.core.readers.record import header_from_json, header_meta, header_to_json

FULL = Header(
    path="/m/caf\udce9.gguf",
    file_size_bytes=5_281_586_688,
    architecture="llama",
    general_name="A\nname é",
    is_moe=True,
    head_count_kv_arr=(1, 0, 2),
    rope_freq_base=1e6,
    expert_weight_share=0.9059,
    effort_levels=("low", "high"),
    data_complete=False,
    extra=MappingProxyType({"feed_forward_length": (1, 2), "a": -1, "b": 0.5, "c": True, "d": "text"}),
    weights=WeightTable((LayerWeights(1, 2, gated=True), LayerWeights()), MappingProxyType({"output.weight": 5}), 8),
    tensor_shapes=MappingProxyType({"t": (1, 2, 3), "s": ()}),
    warnings=("one",),
)


def through_json(record):
    return json.loads(json.dumps(record))


def test_a_header_survives():
    assert header_from_json(through_json(header_to_json(FULL))) == FULL
    assert header_from_json({}) == Header()


def test_every_fact_survives():
    """A new field of Header must be known to records; a forgotten one would read as its default for ever."""
    for field in fields(Header):
        default = getattr(Header(), field.name)
        value = {bool: True, int: 7, float: 7.5, str: "x", tuple: (3,)}.get(type(default), getattr(FULL, field.name))
        if field.name == "format":
            value = "hf"
        elif field.name in ("effort_levels", "warnings"):
            value = ("x",)
        header = replace(Header(), **{field.name: value})
        assert header != Header()
        assert header_from_json(through_json(header_to_json(header))) == header, field.name


def test_records_are_immutable():
    header = header_from_json(through_json(header_to_json(FULL)))
    with pytest.raises(TypeError):
        header.extra["x"] = 1
    with pytest.raises(TypeError):
        header.weights.globals["x"] = 1
    with pytest.raises(AttributeError):
        header.architecture = "x"


WEIGHTS = header_to_json(FULL)["weights"]


@pytest.mark.parametrize(
    "record",
    [
        None,
        [],
        "x",
        {"unknown": 1},
        {"format": "exe"},
        {"format": 1},
        {"architecture": 1},
        {"architecture": "x" * ((1 << 20) + 1)},
        {"block_count": "1"},
        {"block_count": -1},
        {"block_count": 1.5},
        {"block_count": True},
        {"block_count": 1 << 63},
        {"is_moe": 1},
        {"rope_freq_base": "1"},
        {"rope_freq_base": float("nan")},
        {"rope_freq_base": float("inf")},
        {"rope_freq_base": True},
        {"head_count_kv_arr": 1},
        {"head_count_kv_arr": [1] * 5000},
        {"head_count_kv_arr": ["1"]},
        {"effort_levels": [1]},
        {"warnings": ["x"] * 1000},
        {"data_complete": "yes"},
        {"data_complete": None},
        {"extra": []},
        {"extra": {str(number): 1 for number in range(2000)}},
        {"extra": {"a": {"b": 1}}},
        {"extra": {"a": [[1]]}},
        {"extra": {"a": None}},
        {"extra": {"a": float("inf")}},
        {"extra": {"a": 1 << 70}},
        {"tensor_shapes": {"a": [-1]}},
        {"tensor_shapes": {"a": [1] * 100}},
        {"tensor_shapes": {"a": 1}},
        {"weights": []},
        {"weights": {}},
        {"weights": {**WEIGHTS, "columns": ["other"]}},
        {"weights": {**WEIGHTS, "layers": [[1]]}},
        {"weights": {**WEIGHTS, "layers": [[None] * len(WEIGHTS["columns"])]}},
        {"weights": {**WEIGHTS, "layers": [WEIGHTS["layers"][0]] * 5000}},
        {"weights": {**WEIGHTS, "globals": {"a": -1}}},
        {"weights": {**WEIGHTS, "globals": {str(number): 1 for number in range(2000)}}},
        {"weights": {**WEIGHTS, "total_bytes": 1.5}},
        {"weights": {**WEIGHTS, "complete": 1}},
    ],
)
def test_refused(record):
    with pytest.raises(RecordError):
        header_from_json(record)


@settings(max_examples=200, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from([field.name for field in fields(Header)]),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
            max_leaves=8,
        ),
        max_size=4,
    )
)
def test_anything_is_a_header_or_refused(record):
    try:
        header = header_from_json(record)
    except RecordError:
        return
    assert header_from_json(through_json(header_to_json(header))) == header


@pytest.mark.parametrize(
    "error",
    [
        SourceUnreadable("unreadable", "no permission", path="/m/x.gguf"),
        NotThisFormat("not_gguf", "a pointer", hint="git-lfs", offset=3),
        UnsupportedVersion("version", "GGUF version 9", version=9, offset=4),
        MalformedHeader("kv_count", "too many", offset=16),
        TruncatedHeader("cut", offset=5, need=9, retryable=True, path="p", partial=FULL),
    ],
)
def test_an_error_survives(error):
    again = error_from_json(through_json(error_to_json(error)))
    assert type(again) is type(error)
    assert str(again) == str(error)
    for name in ("code", "message", "offset", "path", "hint", "version"):
        assert getattr(again, name) == getattr(error, name)
    if isinstance(error, TruncatedHeader):
        assert (again.need, again.retryable, again.partial) == (9, True, None)


@pytest.mark.parametrize(
    "record",
    [None, {}, {"kind": "KeyError"}, {"kind": "HeaderError"}, {"kind": "TruncatedHeader", "message": "x"}, {"kind": 1}],
)
def test_an_odd_error_is_refused(record):
    with pytest.raises(RecordError):
        error_from_json(record)


def test_meta_has_the_names_of_the_spec():
    meta = header_meta(FULL)
    assert meta["file_size_gb"] == 4.919
    assert meta["head_count_kv_arr"] == [1, 0, 2]
    assert meta["sliding_window_pattern_arr"] is None
    assert meta["effort_levels"] == ["low", "high"]
    assert meta["extra"]["feed_forward_length"] == [1, 2]
    assert meta["data_complete"] is False
    assert (meta["block_count"], meta["quant_label"], meta["non_causal"]) == (0, "", False)
    assert not meta.keys() & {"weights", "tensor_shapes", "format"}
    json.dumps(meta, allow_nan=False)


def test_header_errors_are_one_family():
    for kind in (SourceUnreadable, NotThisFormat, UnsupportedVersion, TruncatedHeader, MalformedHeader):
        assert issubclass(kind, HeaderError)
