"""Asking routers: recorded answers of real ones, and answers that no router would give."""

from __future__ import annotations

import json
import socket
import threading
import time

import pytest

from models_app.router import connection as wire
from models_app.router import llama_server, llama_swap
from models_app.router.client import CLIENTS
from models_app.router.connection import Connection, RouterAway, RouterRefused, checked_url, is_sendable_key
from tests.router_stand_in import recorded, stand_in

SERVER, SWAP = "llama-server-router", "llama-swap"


@pytest.fixture
def router():
    with stand_in() as found:
        yield found


def test_what_llama_server_has_loaded(router):
    router.replay(SERVER, "router properties", "one model loaded (meta appears)")
    state = llama_server.look(Connection(router.url))
    assert (state.kind, state.version, state.slots) == ("llama-server", "b0-unknown", 2)
    held = {model.id: model for model in state.held}
    assert list(held) == ["qwen3-0.6b"]
    assert held["qwen3-0.6b"].aliases == ("qwen", "small")
    assert held["qwen3-0.6b"].window_tokens == 2048
    assert "--ctx-size" in held["qwen3-0.6b"].command
    assert not state.all_slots_busy
    assert [method for method, _, _ in router.asked] == ["GET", "GET"]


@pytest.mark.parametrize(
    ("about", "model", "state"),
    [
        ("while it loads", "qwen3-0.6b", "loading"),
        ("a model asleep (process and slot stay)", "qwen3-0.6b", "sleeping"),
        ("after a model process was killed", "qwen3-0.6b", "failed"),
        ("its state afterwards", "missing", "failed"),
        ("all models, nothing loaded", "embed", "unloaded"),
    ],
)
def test_states(router, about, model, state):
    router.replay(SERVER, "router properties", about)
    found = {item.id: item for item in llama_server.look(Connection(router.url)).models}[model]
    assert found.state == state
    assert (found.exit_code is None) == (state != "failed")


def test_load_and_unload(router):
    router.replay(SERVER, "load", "load again", "unload (answers at once)", "unload one that is not loaded")
    link = Connection(router.url)
    llama_server.load(link, "qwen3-0.6b")
    with pytest.raises(RouterRefused, match="model is already running"):
        llama_server.load(link, "qwen3-0.6b")
    llama_server.unload(link, "embed")
    llama_server.unload(link, "embed")  # not running: what was asked for is so
    assert router.asked[-1] == ("POST", "/models/unload", '{"model": "embed"}')


def test_all_slots_busy_and_unknown(router):
    router.replay(SERVER, "load while two are still loading at models-max 2", "load one that does not exist")
    for status in (500, 404):
        with pytest.raises(RouterRefused) as refused:
            llama_server.load(Connection(router.url), "x")
        assert refused.value.status == status


def test_reload(router):
    router.replay(
        SERVER,
        "reload after adding a section: running models that did not change stay",
        "reload of a file with an unknown key",
    )
    assert "qwen3-0.6b" in llama_server.reload(Connection(router.url))
    with pytest.raises(RouterRefused, match="option 'foo' not recognized"):
        llama_server.reload(Connection(router.url))


def test_keys(router):
    router.answer("GET", "/props", recorded(SERVER, "keys: no key"))
    with pytest.raises(RouterRefused, match="wants a key"):
        llama_server.look(Connection(router.url, "secret"))
    assert router.headers[0]["Authorization"] == "Bearer secret"
    assert "secret" not in repr(Connection(router.url, "secret"))


def test_a_server_with_a_model_is_no_router(router):
    router.answer("GET", "/props", {"status": 200, "body": '{"role":"model"}'})
    with pytest.raises(RouterAway, match="not as a router"):
        llama_server.look(Connection(router.url))


def test_what_llama_swap_runs(router):
    router.replay(SWAP, "version", "one model loaded", "listing while loaded")
    (model,) = llama_swap.look(Connection(router.url)).models
    assert (model.id, model.state) == ("qwen3-0.6b", "loaded")
    assert model.command[-1] == "5800"


def test_llama_swap_unloads_and_loads(router):
    router.replay(SWAP, "unload one by API", "unload one that does not exist", "unload all, API")
    llama_swap.unload(Connection(router.url), "qwen3-0.6b")
    with pytest.raises(RouterRefused, match="model not found"):
        llama_swap.unload(Connection(router.url), "nope")
    llama_swap.unload_all(Connection(router.url))
    router.answer("GET", "/upstream/a/b%3Fc%23/", {"status": 404, "body": "no page of the model's server"})
    llama_swap.load(Connection(router.url), "a/b?c#")
    router.answer("GET", "/upstream/x/", {"status": 500, "body": '{"src":"llama-swap","error":{"message":"it died"}}'})
    with pytest.raises(RouterRefused, match="it died"):
        llama_swap.load(Connection(router.url), "x")


@pytest.mark.parametrize(
    "body",
    [
        "",
        "[]",
        "no json",
        '{"data": 5}',
        '{"data": [5]}',
        '{"data": ' + json.dumps([{"id": str(n)} for n in range(4001)]) + "}",
        "[" * 100_000,
    ],
)
def test_answers_that_no_router_gives(router, body):
    router.answer("GET", "/props", {"status": 200, "body": '{"role":"router","max_instances":true,"build_info":5}'})
    router.answer("GET", "/models", {"status": 200, "body": body})
    with pytest.raises(RouterAway):
        llama_server.look(Connection(router.url))


def test_hostile_records_are_cut_to_what_can_be_kept(router):
    records = [
        {"id": "a\x00\ud800", "status": {"value": ["loaded"], "args": "x", "exit_code": 1e9}, "meta": 7},
        {"id": "b", "status": 5, "aliases": [1, None, "x"], "meta": {"n_ctx": -1}},
        {"id": 7},
        {},
    ]
    router.answer("GET", "/props", {"status": 200, "body": '{"role":"router","max_instances":true}'})
    router.answer("GET", "/models", {"status": 200, "body": json.dumps({"data": records})})
    state = llama_server.look(Connection(router.url))
    assert state.slots is None
    assert [(model.id, model.state, model.window_tokens) for model in state.models] == [
        ("a�?", "unloaded", None),
        ("b", "unloaded", None),
    ]


def test_redirects_are_not_followed(router):
    router.answer("GET", "/props", {"status": 302, "body": "", "send": {"Location": f"{router.url}/models"}})
    with pytest.raises(RouterRefused, match="redirects"):
        llama_server.look(Connection(router.url))
    assert len(router.asked) == 1


def test_an_answer_without_end_is_cut(router, monkeypatch):
    monkeypatch.setattr(wire, "MAX_ANSWER_BYTES", 1000)
    router.answer("GET", "/props", {"status": 200, "body": "x" * 100_000})
    with pytest.raises(RouterAway, match=r"^http:\S+: its answer is longer than"):
        llama_server.look(Connection(router.url))


def test_a_server_that_drips_is_left():
    """Each byte comes in time, the answer as a whole does not."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=_drip, args=(listener,), daemon=True).start()
        began = time.monotonic()
        with pytest.raises(RouterAway, match="too long"):
            Connection(f"http://127.0.0.1:{listener.getsockname()[1]}").text("GET", "/", seconds=0.5)
        assert time.monotonic() - began < 3


def _drip(listener):
    taken, _ = listener.accept()
    try:
        taken.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        for _ in range(100):
            taken.sendall(b"x")
            time.sleep(0.05)
    except OSError:
        taken.close()


def test_nobody_listens():
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with pytest.raises(RouterAway, match="nothing listens there"):
        llama_server.look(Connection(f"http://127.0.0.1:{port}"))


def test_something_that_does_not_speak_http():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=lambda: listener.accept()[0].sendall(b"220 mail\r\n" * 9), daemon=True).start()
        with pytest.raises(RouterAway):
            Connection(f"http://127.0.0.1:{listener.getsockname()[1]}").text("GET", "/", seconds=2)


def test_addresses():
    assert checked_url(" http://127.0.0.1:8080/ ") == "http://127.0.0.1:8080"
    assert checked_url("https://router.example/base") == "https://router.example/base"
    assert checked_url("") == ""
    for bad in (
        "ftp://x",
        "127.0.0.1:8080",
        "http://",
        "http://u:p@x",
        "http://x/?a",
        "http://x:99999",
        "http://x/\ny",
    ):
        with pytest.raises(ValueError):
            checked_url(bad)


def test_keys_that_no_header_can_carry():
    assert is_sendable_key("sk-abc")
    assert not is_sendable_key("a\r\nX: y")
    assert not is_sendable_key("é")
    with pytest.raises(RouterAway, match="characters"):
        Connection("http://127.0.0.1:1", "a\nb").text("GET", "/")


def test_every_dialect_has_a_client():
    from models_app.core.export.dialects import BY_SLUG

    assert set(CLIENTS) == set(BY_SLUG)


@pytest.mark.parametrize(
    "answer",
    [
        b"Content-Length: 1000\r\n\r\n{}",
        b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n",
        b"Transfer-Encoding: chunked\r\n\r\n9\r\n{}",
    ],
)
def test_an_answer_that_ends_in_the_middle_is_none(answer):
    def serve(listener):
        taken, _ = listener.accept()
        taken.recv(65536)
        taken.sendall(b"HTTP/1.1 200 OK\r\n" + answer)
        taken.close()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, args=(listener,), daemon=True).start()
        with pytest.raises(wire.AnswerCut, match="in the middle of its answer, after 2 bytes"):
            Connection(f"http://127.0.0.1:{listener.getsockname()[1]}").text("GET", "/")
