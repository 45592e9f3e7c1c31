"""safetensors headers: what is used, what is left out, what is refused (headers.md 11)."""

from __future__ import annotations

import json
import struct
from io import BytesIO

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save_file

from models_app.core.errors import HeaderError, NotThisFormat, TruncatedHeader
from models_app.core.readers import read_header
from models_app.core.readers.limits import MAX_KEPT_SHAPES
from models_app.core.readers.safetensors import header_length, iter_tensors, read_safetensors


def framed(header: bytes | dict, data: int = 0) -> bytes:
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(raw)) + raw + bytes(data)


def record(dtype="F16", shape=(2, 3), offsets=(0, 12)) -> dict:
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


def tensors(raw: bytes) -> dict:
    stream = BytesIO(raw)
    return {item.name: (item.dtype, item.shape) for item in iter_tensors(stream, header_length(stream, len(raw)))}


def code_of(raw: bytes, size: int | None = None) -> str:
    with pytest.raises(HeaderError) as caught:
        read_safetensors(BytesIO(raw), len(raw) if size is None else size)
    return caught.value.code


def test_a_file_of_the_official_library(tmp_path):
    path = tmp_path / "model.safetensors"
    save_file({"a.b": np.zeros((4, 8), np.float16), "c": np.zeros((), np.float32)}, path, {"format": "pt"})
    header = read_header(str(path))
    assert header.format == "safetensors"
    assert dict(header.tensor_shapes) == {"a.b": (8, 4), "c": ()}
    assert header.param_count == 33
    assert header.quant_label == "F16"
    assert header.data_complete is True
    assert header.weights.total_bytes == 68
    assert header.file_size_bytes == path.stat().st_size


def test_members_in_any_spelling():
    odd = (
        b'{ "b" : {"shape":[ 1 , 2 ],"dtype":"F32"} ,\n"c":{"data_offsets":[0,4],"dtype":"I8","shape":[]}, "\\u0061": '
        + (json.dumps(record()).encode() + b"}   ")
    )
    assert tensors(framed(odd)) == {"b": ("F32", (1, 2)), "c": ("I8", ()), "a": ("F16", (2, 3))}


@pytest.mark.parametrize(
    "value",
    [
        1,
        None,
        "F16",
        [],
        {},
        {"dtype": "F16"},
        {"dtype": 1, "shape": [1]},
        {"dtype": "F16", "shape": 1},
        {"dtype": "F16", "shape": [-1]},
        {"dtype": "F16", "shape": [1.5]},
        {"dtype": "F16", "shape": [True]},
        {"dtype": "F16", "shape": ["1"]},
        {"dtype": "F16", "shape": [1 << 63]},
        {"dtype": "F16", "shape": [1] * 100},
        {"dtype": "F16", "shape": [1], "more": "x" * 100_000},
    ],
)
def test_a_member_that_is_no_record_is_left_out(value):
    assert tensors(framed({"x": value, "a": record()})) == {"a": ("F16", (2, 3))}


def test_metadata_is_no_tensor_whatever_it_holds():
    assert tensors(framed({"__metadata__": {"a": ']}\\"{['}, "a": record()})) == {"a": ("F16", (2, 3))}
    assert tensors(framed({"__metadata__": [[{"x": 1}]], "a": record()})) == {"a": ("F16", (2, 3))}


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (b"", "empty"),
        (b"no", "truncated"),
        (struct.pack("<Q", 0), "header_length"),
        (struct.pack("<Q", (64 << 20) + 1), "header_length"),
        (struct.pack("<Q", (1 << 64) - 1), "header_length"),
        (struct.pack("<Q", 100) + b"{}", "truncated"),
        (framed(b"[]"), "not_safetensors"),
        (framed(b"null"), "not_safetensors"),
        (framed(b"{"), "not_safetensors"),
        (framed(b'{"a"'), "not_safetensors"),
        (framed(b'{"a":'), "not_safetensors"),
        (framed(b'{"a":1,}'), "not_safetensors"),
        (framed(b'{"a":1}x'), "not_safetensors"),
        (framed(b'{"a":}'), "not_safetensors"),
        (framed(b'{"a":"\\'), "not_safetensors"),
        (framed(b'{"a\xff":1}'), "not_safetensors"),
        (framed(b'{"\\x":1}'), "not_safetensors"),
        (framed(b'{"a":' + b"[" * 2000 + b"]" * 2000 + b"}"), "not_safetensors"),
        (framed(b'{"a":{"dtype":"F16","shape":[' + b"9" * 5000 + b"]}}"), "not_safetensors"),
        (framed(b'{"a":{"dtype":nonsense}}'), "not_safetensors"),
        (framed(b'{"a":1,"a":2}'), "duplicate_tensor"),
        (framed(b'{"a":1,"\\u0061":2}'), "duplicate_tensor"),
        (framed(b'{"' + b"n" * 900 + b'":1,"' + b"n" * 900 + b'":2}'), "duplicate_tensor"),
        (framed(b"{" + b",".join(b'"%d":0' % number for number in range(131_073)) + b"}"), "tensor_count"),
        (b"GGUF" + struct.pack("<IQ", 3, 0), "header_length"),
    ],
)
def test_refused(raw, code):
    assert code_of(raw) == code


def test_a_pointer_of_git_lfs_is_called_by_its_name():
    with pytest.raises(NotThisFormat) as caught:
        read_safetensors(BytesIO(b"version https://git-lfs.github.com/spec/v1\n"), 43)
    assert (caught.value.code, caught.value.hint) == ("header_length", "git-lfs")


def test_truncated_at_every_offset():
    raw = framed({"__metadata__": {"a": "b"}, "a": record(), "é": record("BF16", (1, 2), (12, 16))})
    for end in range(1, len(raw)):
        with pytest.raises(TruncatedHeader) as caught:
            read_safetensors(BytesIO(raw[:end]), end)
        assert end < caught.value.need <= len(raw)
        assert not caught.value.retryable
    with pytest.raises(TruncatedHeader) as caught:
        read_safetensors(BytesIO(raw[:20]), 10_000)
    assert caught.value.retryable


def test_the_end_of_the_data_is_checked():
    raw = framed({"a": record()}, data=12)
    assert read_safetensors(BytesIO(raw), len(raw)).data_complete is True
    short = read_safetensors(BytesIO(raw), len(raw) - 1)
    assert short.data_complete is False
    assert short.warnings


def test_only_the_header_is_read():
    class Counting(BytesIO):
        def read(self, size=-1):
            assert self.tell() < end
            return super().read(size)

    raw = framed({"a": record()})
    end = len(raw)
    assert read_safetensors(Counting(raw + bytes(1 << 20)), 10**12).param_count == 6


def test_values_that_are_cut_by_the_chunks():
    """Chunks of 64 KiB cut names, strings, escapes, numbers and multi-byte characters anywhere."""
    for filler in range(65_500, 65_560):
        raw = framed(
            {"__metadata__": {"p": "é" * 4 + '"\\' + "x" * filler, "q": 12345}, "täst\n": record("F32"), "n": 1234567}
        )
        assert tensors(raw) == {"täst\n": ("F32", (2, 3))}


def test_the_label_of_mixed_files():
    def label(**bytes_of):
        return read_safetensors(
            BytesIO(framed({dtype: record(dtype, (size,), (0, 0)) for dtype, size in bytes_of.items()})), 10**9
        ).quant_label

    assert label(F8_E4M3=100, F32=10) == "F8_E4M3"
    assert label(F16=10, BF16=10) == "BF16 mix"
    assert label(F32=10) == "F32"
    assert label(XYZ=10) == ""


def test_the_shapes_that_are_kept_are_bounded():
    raw = framed({str(number): record(shape=(1,)) for number in range(MAX_KEPT_SHAPES + 5)} | {"n" * 300: record()})
    header = read_safetensors(BytesIO(raw), len(raw))
    assert len(header.tensor_shapes) == MAX_KEPT_SHAPES
    assert header.param_count == MAX_KEPT_SHAPES + 5 + 6


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=200, deadline=None)
@given(
    st.dictionaries(st.text(), json_values | st.builds(record, shape=st.lists(st.integers(0, 99), max_size=4))),
    st.booleans(),
)
def test_agrees_with_the_standard_decoder(header, ascii_only):
    raw = json.dumps(header, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    expected = {
        name: (value["dtype"], tuple(value["shape"]))
        for name, value in header.items()
        if name != "__metadata__" and isinstance(value, dict) and value.keys() >= {"dtype", "shape", "data_offsets"}
    }
    try:
        found = tensors(framed(raw))
    except NotThisFormat:
        assert not raw.isascii()  # lone surrogates are not UTF-8
    else:
        assert found == expected


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_give_a_header_or_a_header_error(raw):
    for data in (raw, framed(raw), framed(b"{" + raw), framed(b'{"a":' + raw + b"}")):
        try:
            read_safetensors(BytesIO(data), len(data))
        except HeaderError as error:
            assert error.code  # noqa: PT017
