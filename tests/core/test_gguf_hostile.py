"""Broken and hostile GGUF files: every row of the table in headers.md 15, and whatever a fuzzer finds."""

from __future__ import annotations

import contextlib
import os
import struct
import threading
import time
import tracemalloc
from io import BytesIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models_app.core.catalog import Header
from models_app.core.errors import (
    HeaderError,
    MalformedHeader,
    NotThisFormat,
    SourceUnreadable,
    TruncatedHeader,
    UnsupportedVersion,
)
from models_app.core.readers import limits, read_header
from models_app.core.readers.gguf import read_gguf
from tests.gguf_bytes import gguf, header_bytes, pair, string, tensor, typed_value

SMALL = header_bytes(
    {
        "kv": [
            ["general.architecture", "string", "llama"],
            ["general.alignment", "u32", 32],
            ["llama.block_count", "u32", 2],
            ["llama.attention.head_count_kv", "array<u32>", [1, 2]],
            ["tokenizer.ggml.tokens", "array<string>", ["a", "bb", ""]],
            ["x", "array<array<u8>>", [[1, 2], []]],
            ["llama.attention.causal", "bool", True],
            ["general.name", "string", "A name"],
            ["f", "f64", 1.5],
        ],
        "tensors": [
            {"name": "token_embd.weight", "shape": [32, 8], "type": 12},
            {"name": "", "shape": [], "type": 0},
            {"name": "blk.0.ffn_up_exps.weight", "shape": [32, 4, 2], "type": 39},
        ],
    }
)


def read(raw: bytes, size: int | None = None) -> Header:
    return read_gguf(BytesIO(raw), len(raw) if size is None else size)


def code_of(raw: bytes, size: int | None = None) -> str:
    with pytest.raises(HeaderError) as caught:
        read(raw, size)
    return caught.value.code


def array(element: int, count: int, body: bytes = b"") -> bytes:
    """One key with an array whose head says what it likes."""
    return string("a.b") + struct.pack("<IIQ", 9, element, count) + body


def with_length(length: int, body: bytes = b"", type_id: int = 8, key: str = "general.name") -> bytes:
    """One key with a string whose length says what it likes."""
    return string(key) + struct.pack("<IQ", type_id, length) + body


def nested(depth: int) -> bytes:
    body = struct.pack("<IQ", 4, 1) + struct.pack("<I", 1)
    for _ in range(depth - 1):
        body = struct.pack("<IQ", 9, 1) + body
    return string("a.b") + struct.pack("<I", 9) + body


def counts(tensor_count: int, key_count: int, version: int = 3) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", version, tensor_count, key_count)


REFUSED = {
    "empty file": (b"", "empty"),
    "one byte of the magic": (b"G", "truncated"),
    "three bytes of the magic": (b"GGU", "truncated"),
    "a web page": (b"<!DOCTYPE html><html>", "not_gguf"),
    "zeros": (bytes(64), "not_gguf"),
    "two bytes of something else": (b"no", "not_gguf"),
    "safetensors": (struct.pack("<Q", 2) + b"{}", "not_gguf"),
    "magic, then nothing": (b"GGUF", "truncated"),
    "version 0": (counts(0, 0, 0), "version"),
    "version 1": (counts(0, 0, 1), "version"),
    "version 4": (counts(0, 0, 4), "version"),
    "version 99": (counts(0, 0, 99), "version"),
    "other byte order": (b"GGUF" + struct.pack(">IQQ", 3, 0, 0), "big_endian"),
    "2^63 keys": (counts(0, 1 << 63), "kv_count"),
    "65,537 keys": (counts(0, 65_537) + bytes(100), "kv_count"),
    "2^64-1 tensors": (counts((1 << 64) - 1, 0), "tensor_count"),
    "131,073 tensors": (counts(131_073, 0), "tensor_count"),
    "both counts too large": (counts(1 << 60, 1 << 60), "tensor_count"),
    "plausible counts, file ends": (counts(100, 1000), "truncated"),
    "key of length 0": (gguf([string("") + typed_value("u8", 1)]), "key_length"),
    "key above 1 MiB": (gguf([pair("k" * ((1 << 20) + 1), "u8", 1)]), "key_length"),
    "key longer than the file": (counts(0, 1) + struct.pack("<Q", 5000), "string_length"),
    "kept string longer than the file": (gguf([with_length(1 << 40)]), "string_length"),
    "skipped string of 2^63": (gguf([with_length(1 << 63, key="other")]), "string_length"),
    "skipped string of 2^64-1": (gguf([with_length((1 << 64) - 1, key="other")]), "string_length"),
    "string inside an array longer than the file": (
        gguf([array(8, 3, string("a") + struct.pack("<Q", 1 << 63) + string("b"))]),
        "string_length",
    ),
    "numeric array of 2^63": (gguf([array(0, 1 << 63, bytes(50))]), "array_count"),
    "byte size wraps to 0": (gguf([array(10, 1 << 61, bytes(50))]), "array_count"),
    "byte size wraps below 0": (gguf([array(0, (1 << 64) - 40, bytes(50))]), "array_count"),
    "string array of 2^40": (gguf([array(8, 1 << 40, bytes(50))]), "array_count"),
    "array array of 2^30": (gguf([array(9, 1 << 30, bytes(50))]), "array_count"),
    "inner array of 2^62": (gguf([array(9, 1, struct.pack("<IQ", 0, 1 << 62))]), "array_count"),
    "inner string array of 2^40": (gguf([array(9, 1, struct.pack("<IQ", 8, 1 << 40))]), "array_count"),
    "value type 13": (gguf([string("k") + struct.pack("<I", 13)]), "value_type"),
    "value type 2^32-1": (gguf([string("k") + struct.pack("<I", (1 << 32) - 1)]), "value_type"),
    "element type 99": (gguf([array(99, 1, bytes(8))]), "value_type"),
    "element type 99 inside": (gguf([array(9, 1, struct.pack("<IQ", 99, 1))]), "value_type"),
    "nested 5 deep": (gguf([nested(5)]), "nesting"),
    "nested 200 deep": (gguf([nested(200)]), "nesting"),
    "duplicate key": (gguf([pair("k", "u8", 1), pair("k", "u8", 1)]), "duplicate_key"),
    "duplicate long key": (gguf([pair("k" * 900, "u8", 1)] * 2), "duplicate_key"),
    "duplicate tensor": (gguf([], [tensor("t", [1], 0)] * 2), "duplicate_tensor"),
    "duplicate long tensor": (gguf([], [tensor("t" * 900, [1], 0)] * 2), "duplicate_tensor"),
    "dimension with the sign bit": (gguf([], [tensor("t", [1 << 63, 1], 0)]), "dimension"),
    "sign bit beside a 0": (gguf([], [tensor("t", [1 << 63, 0], 0)]), "dimension"),
    "product above 2^63-1": (gguf([], [tensor("t", [1 << 32, 1 << 31], 0)]), "dimension"),
    "9 dimensions": (gguf([], [tensor("t", [1] * 9, 0)]), "n_dims"),
    "1,000,000 dimensions": (gguf([], [string("t") + struct.pack("<I", 1_000_000) + bytes(64)]), "n_dims"),
    "tensor name above 1 MiB": (gguf([], [tensor("t" * ((1 << 20) + 1), [1], 0)]), "key_length"),
    "tensor name longer than the file": (gguf([], [struct.pack("<Q", 5000)]), "string_length"),
    "alignment 0": (gguf([pair("general.alignment", "u32", 0)]), "alignment"),
    "alignment 24": (gguf([pair("general.alignment", "u32", 24)]), "alignment"),
    "alignment 2^31": (gguf([pair("general.alignment", "u32", 1 << 31)]), "alignment"),
    "alignment of type u64": (gguf([pair("general.alignment", "u64", 32)]), "alignment"),
    "alignment of type string": (gguf([pair("general.alignment", "string", "32")]), "alignment"),
    "cut before a one-byte value": (gguf([string("llama.attention.causal") + struct.pack("<I", 7)]), "truncated"),
    "cut before the tensor infos": (counts(1, 1) + pair("k", "u8", 1), "truncated"),
}


@pytest.mark.parametrize(("raw", "code"), REFUSED.values(), ids=REFUSED.keys())
def test_refused(raw, code):
    with pytest.raises(HeaderError) as caught:
        read(raw)
    assert caught.value.code == code
    family = {
        "empty": NotThisFormat,
        "not_gguf": NotThisFormat,
        "version": UnsupportedVersion,
        "big_endian": UnsupportedVersion,
        "truncated": TruncatedHeader,
    }.get(code, MalformedHeader)
    assert type(caught.value) is family
    assert 0 <= caught.value.offset <= len(raw)


ACCEPTED = {
    "nothing at all": counts(0, 0),
    "key of 70,000 bytes": gguf([pair("k" * 70_000, "u8", 1)]),
    "key of exactly 1 MiB": gguf([pair("k" * (1 << 20), "u8", 1)]),
    "nested 4 deep": gguf([nested(4)]),
    "0 dimensions": gguf([], [tensor("t", [], 0)]),
    "a dimension of 0": gguf([], [tensor("t", [0, 1 << 40], 0)]),
    "8 dimensions": gguf([], [tensor("t", [1] * 8, 0)]),
    "unknown tensor type": gguf([], [tensor("t", [4], 250)]),
    "removed tensor type": gguf([], [tensor("t", [4], 4)]),
    "no multiple of the block": gguf([], [tensor("t", [33], 2)]),
    "largest product": gguf([], [tensor("t", [(1 << 63) - 1], 0)]),
    "tensor name not UTF-8": gguf([], [tensor(b"\xff\xfe", [4], 0)]),
    "key not UTF-8": gguf([pair(b"\xff\xfe", "u8", 1)]),
    "newline and macro in a tensor name": gguf([], [tensor("a\n${b}'\"", [4], 0)]),
    "block number of 2^40": gguf([], [tensor(f"blk.{1 << 40}.x.weight", [4], 0)]),
    "trailing bytes": counts(0, 0) + b"junk",
    "bool that is neither 0 nor 1": gguf([string("k") + struct.pack("<IB", 7, 200)]),
    "empty arrays": gguf(
        [array(4, 0), string("c") + struct.pack("<IIQ", 9, 8, 0), string("d") + struct.pack("<IIQ", 9, 9, 0)]
    ),
    "wrong type for every wanted key": gguf(
        [
            pair(key, "array<u8>", [1])
            for key in ("general.architecture", "general.name", "tokenizer.chat_template", "config", "split.count")
        ]
    ),
}


@pytest.mark.parametrize("raw", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_accepted(raw):
    read(raw)


def test_hints_for_what_the_file_is_instead():
    for raw, hint in (
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\n", "git-lfs"),
        (b"lmgg" + bytes(20), "legacy-ggml"),
        (b"tjgg" + bytes(20), "legacy-ggml"),
        (b"version of something", ""),
    ):
        with pytest.raises(NotThisFormat) as caught:
            read(raw)
        assert caught.value.hint == hint


def test_the_version_is_carried():
    with pytest.raises(UnsupportedVersion) as caught:
        read(counts(0, 0, 7))
    assert caught.value.version == 7


def test_a_kept_string_over_the_limit_reads_as_absent():
    raw = gguf(
        [
            pair("general.name", "string", {"repeat": "a", "count": (1 << 20) + 1}),
            pair("general.basename", "string", "b"),
        ]
    )
    header = read(raw)
    assert (header.general_name, header.base_name) == ("", "b")
    assert header.warnings


def test_too_many_strings_are_refused_before_they_are_walked():
    half = limits.MAX_WALKED_ELEMENTS // 2 + 1
    body = bytes(8 * half)
    raw = gguf(
        [string("a") + struct.pack("<IIQ", 9, 8, half) + body, string("b") + struct.pack("<IIQ", 9, 8, half) + body]
    )
    assert code_of(raw) == "array_count"


def test_truncated_at_every_offset():
    whole = read(SMALL)
    assert whole.architecture == "llama"
    for end in range(1, len(SMALL)):
        with pytest.raises(TruncatedHeader) as caught:
            read(SMALL[:end])
        error = caught.value
        assert end < error.need <= len(SMALL)
        assert error.retryable is False
        assert error.offset <= end


def test_a_prefix_of_a_larger_file_says_what_it_needs():
    """Asking for `need` bytes again and again ends with the whole header, and every step helps."""
    size, end = 10**9, 0
    while end < len(SMALL):
        with pytest.raises(TruncatedHeader) as caught:
            read(SMALL[:end], size)
        assert caught.value.retryable
        assert caught.value.need > end
        end = caught.value.need
    assert end == len(SMALL)
    assert read(SMALL, size).file_size_bytes == size


def test_the_partial_record_comes_with_a_cut_in_the_tensor_infos():
    with pytest.raises(TruncatedHeader) as caught:
        read(SMALL[:-10])
    assert caught.value.partial is not None
    assert caught.value.partial.block_count == 2
    with pytest.raises(TruncatedHeader) as caught:
        read(SMALL[:60])
    assert caught.value.partial is None


def test_paths_that_are_no_files(tmp_path):
    fifo = tmp_path / "x.gguf"
    os.mkfifo(fifo)
    for path in (str(tmp_path), str(tmp_path / "missing"), "/dev/null", "/dev/zero", str(fifo), "bad\0path", ""):
        with pytest.raises(SourceUnreadable) as caught:
            read_header(path)
        assert caught.value.code == "unreadable"
        assert caught.value.path == path


def test_a_fifo_does_not_hang_the_reader(tmp_path):
    fifo = str(tmp_path / "x.gguf")
    os.mkfifo(fifo)

    def run() -> None:
        with pytest.raises(SourceUnreadable):
            read_header(fifo)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(5)
    assert not thread.is_alive()


def test_a_link_loop_and_a_dangling_link(tmp_path):
    (tmp_path / "a.gguf").symlink_to(tmp_path / "b.gguf")
    (tmp_path / "b.gguf").symlink_to(tmp_path / "a.gguf")
    (tmp_path / "c.gguf").symlink_to(tmp_path / "missing")
    for name in ("a.gguf", "c.gguf"):
        with pytest.raises(SourceUnreadable):
            read_header(str(tmp_path / name))


class Shrinking(BytesIO):
    """A file that loses its end after the size was taken."""

    def read(self, size: int | None = -1) -> bytes:
        raw = super().read(size)
        return raw[: max(0, 100 - (self.tell() - len(raw)))]


def test_a_file_that_shrinks_is_truncated():
    with pytest.raises(TruncatedHeader):
        read_gguf(Shrinking(SMALL), len(SMALL))


class Failing(BytesIO):
    def read(self, size: int | None = -1) -> bytes:
        raise OSError(5, "Input/output error")


def test_a_read_error_is_a_header_error(tmp_path, monkeypatch):
    path = tmp_path / "x.gguf"
    path.write_bytes(SMALL)
    monkeypatch.setattr("models_app.core.readers._source.FileIO", lambda fd, mode: _failing_file(fd))
    with pytest.raises(SourceUnreadable) as caught:
        read_header(str(path))
    assert "Input/output" in caught.value.message


def _failing_file(descriptor: int) -> Failing:
    stream = Failing(SMALL)
    stream.fileno = lambda: descriptor  # type: ignore[method-assign]
    return stream


def many_pairs(kind: str, value: object) -> bytes:
    pairs, size = [], 0
    while size < 64_000:
        pairs.append(pair(f"k{len(pairs)}", kind, value))
        size += len(pairs[-1])
    return gguf(pairs)


SIXTY_FOUR_KIB = {
    "keys": many_pairs("u8", 1),
    "small arrays": many_pairs("array<u8>", [1] * 8),
    "empty strings": gguf([array(8, 8_000, bytes(64_000))]),
    "inner arrays": gguf([array(9, 5_300, struct.pack("<IQ", 0, 0) * 5_300)]),
    "inner string arrays": gguf([array(9, 5_300, struct.pack("<IQ", 8, 0) * 5_300)]),
    "tensors": gguf([], [tensor(f"{index}", [], 0) for index in range(2_200)]),
    "a block each": gguf([], [tensor(f"blk.{index}.a.weight", [1], 0) for index in range(1_300)]),
    "one far block": gguf([], [tensor("blk.4095.ffn_up.weight", [1, 1], 0)]),
    "template": gguf([pair("tokenizer.chat_template", "string", "set effort='a' reasoning_effort " * 1_990)]),
    "config": gguf([pair("config", "string", "[" + '{"a":0},' * 7_000)]),
    "names": gguf([pair("general.name", "string", "a-" * 32_000), pair("general.size_label", "string", "a")]),
    "claims of 4 million strings": gguf([array(8, 4_000_000, bytes(64_000))]),
}


@pytest.mark.parametrize("raw", SIXTY_FOUR_KIB.values(), ids=SIXTY_FOUR_KIB.keys())
def test_small_input_costs_little(raw):
    """At most 50 ms and 16 MiB for 64 KiB. The clock is scaled by a loop of known cost, because machines are shared."""
    assert len(raw) <= 65_600
    best = min(timed(raw) for _ in range(3))
    assert best <= 0.05 * slowness()
    tracemalloc.start()
    try:
        timed(raw)
        assert tracemalloc.get_traced_memory()[1] <= 16 << 20
    finally:
        tracemalloc.stop()


def timed(raw: bytes) -> float:
    started = time.process_time()
    with contextlib.suppress(HeaderError):
        read(raw)
    return time.process_time() - started


def slowness() -> float:
    """How much slower than a quiet core this one is: 100,000 string skips take 12 ms there."""
    raw, unpack = bytes(800_000), struct.Struct("<Q").unpack_from
    started, pos = time.process_time(), 0
    for _ in range(100_000):
        pos += 8 + unpack(raw, pos)[0]
    return max(1.0, (time.process_time() - started) / 0.012)


def test_a_scattered_file_is_given_up(tmp_path):
    """A sparse file whose strings lie megabytes apart could keep a reader busy for hours."""
    path = tmp_path / "x.gguf"
    hop, hops = 1 << 24, 20_000
    with open(path, "wb") as out:
        out.write(counts(0, 1) + string("a") + struct.pack("<IIQ", 9, 8, hops))
        start = out.tell()
        for index in range(hops):
            out.seek(start + index * (hop + 8))
            out.write(struct.pack("<Q", hop))
        out.truncate(start + hops * (hop + 8))
    started = time.process_time()
    with pytest.raises(MalformedHeader):
        read_header(str(path))
    assert time.process_time() - started < 2 * slowness()


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.integers(0, len(SMALL) - 1), st.integers(0, 255)), max_size=6), st.integers(0, len(SMALL)))
def test_mutated_bytes_give_a_header_or_a_header_error(changes, end):
    raw = bytearray(SMALL)
    for index, value in changes:
        raw[index] = value
    expect_answer(bytes(raw[:end] if end % 3 == 0 else raw))


@settings(max_examples=200, deadline=None)
@given(st.integers(0, len(SMALL) - 8), st.sampled_from([0, 1, 1 << 31, 1 << 32, 1 << 62, 1 << 63, (1 << 64) - 1]))
def test_mutated_lengths_give_a_header_or_a_header_error(index, value):
    expect_answer(SMALL[:index] + struct.pack("<Q", value) + SMALL[index + 8 :])


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=300), st.integers(0, 5), st.integers(0, 5))
def test_random_bytes_behind_a_good_start(raw, tensor_count, key_count):
    expect_answer(counts(tensor_count, key_count) + raw)


def expect_answer(raw: bytes) -> None:
    answer: Header | HeaderError
    try:
        answer = read(raw, len(raw) + 1000)
    except HeaderError as error:
        answer = error
    assert isinstance(answer, Header) or (answer.code and str(answer))
