"""Headers of files that were not downloaded: ranges, redirects, shares (headers.md 14)."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from io import BytesIO

import pytest

from models_app.core.catalog import Header
from models_app.core.errors import HeaderError, MalformedHeader, TruncatedHeader
from models_app.core.readers.remote import (
    MAX_REDIRECTS,
    RangeRefused,
    RangeRequest,
    fetch_range,
    share_key,
    stamp_size,
    take_body,
    walk_header,
)
from models_app.core.units import MIB
from tests.core.test_gguf_hostile import SMALL

HOSTS = ("hub.example",)


@dataclass
class Reply:
    status: int = 206
    location: str = ""
    body: list[bytes] = field(default_factory=lambda: [b"abcd"])


def request(**changes) -> RangeRequest:
    return RangeRequest(**{"repo": "owner/name", "path": "sub/model.gguf", "offset": 0, "length": 4, **changes})


def test_a_server_that_has_more_than_it_says():
    """Whatever the header says then: it is an answer or a HeaderError."""
    for size_bytes in range(len(SMALL)):
        with contextlib.suppress(HeaderError):
            assert (
                walk_header(lambda offset, length: SMALL[offset : offset + length], size_bytes).architecture == "llama"
            )


@pytest.mark.parametrize(
    "changes",
    [
        {"offset": -1},
        {"length": 0},
        {"length": -5},
        {"offset": 64 * MIB, "length": 1},
        {"repo": "name"},
        {"repo": "a/b/c"},
        {"repo": "owner/name/"},
        {"repo": "owner/na me"},
        {"repo": "../name"},
        {"repo": "owner/.."},
        {"repo": "owner/a..b"},
        {"repo": "owner/name\n"},
        {"path": "../x"},
        {"path": "a/../x"},
        {"path": "/etc/passwd"},
        {"path": "a//b"},
        {"path": ""},
        {"path": "a\\b"},
        {"path": "a\nb"},
    ],
)
def test_refused_before_anything_is_sent(changes):
    sent = []
    with pytest.raises(RangeRefused):
        fetch_range(
            request(**changes),
            lambda *arguments: sent.append(arguments),
            base_url="https://hub.example",
            allowed_hosts=HOSTS,
        )
    assert sent == []


def test_the_request_names_its_range():
    seen = []

    def send(url, headers):
        seen.append((url, headers["Range"]))
        return Reply()

    taken = fetch_range(request(path="a b?.gguf", offset=10), send, base_url="https://hub.example", allowed_hosts=HOSTS)
    assert taken == b"abcd"
    assert seen == [("https://hub.example/owner/name/resolve/main/a%20b%3F.gguf", "bytes=10-13")]


def test_redirects_stay_on_the_hosts():
    def send_to(target):
        def send(url, headers):
            return Reply(302, target) if url.startswith("https://hub.example/owner") else Reply()

        return send

    for target in ("https://cdn.hub.example/x", "/other"):
        assert fetch_range(request(), send_to(target), base_url="https://hub.example", allowed_hosts=HOSTS) == b"abcd"
    for target in (
        "https://evil.example/x",
        "http://hub.example/x",
        "https://hub.example.evil/x",
        "file:///etc/passwd",
        "https://xhub.example/",
    ):
        with pytest.raises(RangeRefused):
            fetch_range(request(), send_to(target), base_url="https://hub.example", allowed_hosts=HOSTS)


def test_redirects_end():
    sent = []

    def send(url, headers):
        sent.append(url)
        return Reply(302, f"/{len(sent)}")

    with pytest.raises(RangeRefused):
        fetch_range(request(), send, base_url="https://hub.example", allowed_hosts=HOSTS)
    assert len(sent) == MAX_REDIRECTS + 1


def test_no_more_is_taken_than_asked_for():
    def endless():
        while True:
            yield b"0123456789"

    assert take_body(206, endless(), request(length=25)) == b"0123456789" * 2 + b"01234"
    assert take_body(200, endless(), request(offset=13, length=9)) == b"345678901"
    assert take_body(206, [b"ab"], request(length=9)) == b"ab"
    assert take_body(200, [b"abc"], request(offset=2, length=9)) == b"c"
    assert take_body(200, [b"abc"], request(offset=20, length=9)) == b""
    for status in (204, 403, 404, 416, 500):
        with pytest.raises(RangeRefused):
            take_body(status, [b"x"], request())


def walk(outcomes, file_size=10**10, short_at=None):
    """Requests of a walk whose parser answers as told, one outcome a step."""
    requests, steps = [], iter(outcomes)

    def fetch(offset, length):
        requests.append((offset // MIB, length // MIB))
        return b"x" * (length // 2 if len(requests) == short_at else length)

    def parse(prefix, size):
        assert size == file_size
        outcome = next(steps)
        if isinstance(outcome, int):
            raise TruncatedHeader("cut", offset=0, need=outcome, retryable=True)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    try:
        return requests, walk_header(fetch, file_size, parse)
    except (TruncatedHeader, MalformedHeader) as error:
        return requests, error.code


def test_each_step_asks_for_the_bytes_added():
    assert walk([8 * MIB + 1, 24 * MIB + 1, Header()]) == ([(0, 8), (8, 16), (24, 40)], Header())


def test_the_walk_ends_with_the_last_step():
    assert walk([8 * MIB + 1, 24 * MIB + 1, 64 * MIB + 1]) == ([(0, 8), (8, 16), (24, 40)], "truncated")


def test_a_known_need_beyond_the_next_step_is_asked_for_at_once():
    assert walk([30 * MIB + 5, Header()])[0] == [(0, 8), (8, 23)]
    assert walk([30 * MIB + 5, 31 * MIB + 5, Header()])[0] == [(0, 8), (8, 23), (31, 33)]
    assert walk([64 * MIB + 1]) == ([(0, 8)], "truncated")


def test_another_error_or_a_short_answer_ends_it():
    assert walk([MalformedHeader("kv_count", "x")]) == ([(0, 8)], "kv_count")
    assert walk([9 * MIB], short_at=1) == ([(0, 8)], "truncated")
    assert walk([9 * MIB, 23 * MIB], short_at=2) == ([(0, 8), (8, 16)], "truncated")


def test_the_prefix_grows_in_place():
    content = bytes(range(256)) * 4096 * 30
    seen = []

    def parse(prefix: BytesIO, size: int) -> Header:
        seen.append(prefix.getvalue())
        raise TruncatedHeader("cut", offset=0, need=len(seen[-1]) + 1, retryable=True)

    with pytest.raises(TruncatedHeader):
        walk_header(lambda offset, length: content[offset : offset + length], len(content), parse)
    assert [len(part) for part in seen] == [8 * MIB, 24 * MIB, len(content)]
    assert all(content.startswith(part) for part in seen)


@pytest.mark.parametrize(
    ("name", "quant", "key"),
    [
        ("Qwen3-8B-Q4_K_M.gguf", "Q4_K_M", "QWEN3-8B|GGUF"),
        ("qwen3-8b.q4_k_m.gguf", "q4_k_m", "QWEN3-8B|GGUF"),
        ("M-i1-IQ2_XXS.gguf", "IQ2_XXS", "M|GGUF"),
        ("M-UD-Q4_K_XL-00001-of-00002.gguf", "Q4_K_XL", "M|00001-OF-00002.GGUF"),
        ("model.gguf", "", ""),
        ("model.gguf", "Q4_0", ""),
    ],
)
def test_share_keys(name, quant, key):
    assert share_key(name, quant) == key


def test_the_size_is_stamped_on_a_copy():
    shared = Header(architecture="x")
    assert stamp_size(shared, [10 << 30, 5 << 30]).file_size_bytes == 15 << 30
    assert shared.file_size_bytes == 0
