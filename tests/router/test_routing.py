"""What a host's worker does at its router: loading, unloading, and a new file that the router refuses."""

from __future__ import annotations

import json
from hashlib import sha256

import pytest

from models_app import routing
from models_app.router.connection import RouterAway, RouterRefused
from models_app.target_file import write_target
from tests.router_stand_in import recorded, stand_in

SERVER = "llama-server-router"
OLD, NEW = "[a]\nmodel = /a.gguf\n", "[a]\nmodel = /a.gguf\n[b]\nmodel = /b.gguf\n"
RELOAD = ("GET", "/models?reload=1")


@pytest.fixture
def router():
    with stand_in() as found:
        found.replay(SERVER, "router properties")
        yield found


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch):
    monkeypatch.setattr(routing, "_PAUSE_SECONDS", 0.01)


def listing(*ids, value="unloaded", **status):
    records = [{"id": name, "source": "preset", "status": {"value": value, "args": ["x"], **status}} for name in ids]
    return {"status": 200, "body": json.dumps({"data": records})}


def inputs(router, **more):
    return {"url": router.url, "key": "", "kind": "llama-server", **more}


def told(router, **more):
    return routing.act(inputs(router, **more), lambda text: None, lambda: True)


def written(tmp_path, before=OLD):
    target = tmp_path / "models.ini"
    if before is not None:
        target.write_text(before)
    digest = sha256(NEW.encode()).hexdigest()
    return target, write_target(str(target), NEW, sha256=digest, expected_sha256="", adopt=True)


def test_load_waits_until_it_is_loaded(router):
    router.replay(SERVER, "load")
    router.answer("GET", "/models", *[listing("qwen3-0.6b", value=state) for state in ("loading", "loading", "loaded")])
    (model,) = told(router, action="load", model="qwen3-0.6b")["router"]["models"]
    assert (model["state"], model["command"]) == ("loaded", ["x"])


def test_a_model_that_does_not_start(router):
    router.replay(SERVER, "load")
    router.answer("GET", "/models", listing("a", value="loading"), listing("a", failed=True, exit_code=1))
    with pytest.raises(routing.RouterRefusal, match="a did not start. Its process ended with code 1"):
        told(router, action="load", model="a")


def test_all_slots_are_busy(router):
    router.replay(SERVER, "load while two are still loading at models-max 2")
    router.answer("GET", "/models", listing("a", "b", value="loading"))
    with pytest.raises(routing.RouterRefusal, match="All slots of the router are busy"):
        told(router, action="load", model="c")


def test_a_model_that_the_router_does_not_know(router):
    router.replay(SERVER, "load one that does not exist")
    with pytest.raises(routing.RouterRefusal, match="does not know nope"):
        told(router, action="load", model="nope")


def test_unload_waits_until_it_is_down(router):
    router.replay(SERVER, "unload (answers at once)")
    router.answer("GET", "/models", listing("embed", value="loaded"), listing("embed"))
    (model,) = told(router, action="unload", model="embed")["router"]["models"]
    assert (model["state"], model["command"]) == ("unloaded", [])


def test_unload_all(router):
    router.replay(SERVER, "unload (answers at once)")
    router.answer("GET", "/models", listing("a", "b", value="loaded"), listing("a", "b"))
    told(router, action="unload", model=routing.ALL)
    assert [json.loads(body)["model"] for method, _, body in router.asked if method == "POST"] == ["a", "b"]


def test_a_new_file_is_read(router, tmp_path):
    router.answer(*RELOAD, listing("a", "b"))
    target, result = written(tmp_path)
    assert routing.reload(inputs(router), result, OLD.encode(), NEW) == {
        "outcome": "reloaded: the router lists 2 models",
        "warned": False,
    }
    assert target.read_text() == NEW


def test_a_refused_file_is_put_back_and_read_again(router, tmp_path):
    refusal = recorded(SERVER, "reload with one alias twice (afterwards every load hangs until a good reload)")
    router.answer(*RELOAD, refusal, listing("a"))
    target, result = written(tmp_path)
    with pytest.raises(routing.RouterRefusal, match="put back and read again: nothing has changed"):
        routing.reload(inputs(router), result, OLD.encode(), NEW)
    assert target.read_text() == OLD
    assert [path for _, path, _ in router.asked].count(RELOAD[1]) == 2


def test_a_refused_first_file_is_taken_away(router, tmp_path):
    router.answer(*RELOAD, recorded(SERVER, "reload of a file with an unknown key"))
    target, result = written(tmp_path, before=None)
    with pytest.raises(routing.RouterRefusal, match="option 'foo' not recognized.*taken away"):
        routing.reload(inputs(router), result, None, NEW)
    assert not target.exists()


def test_a_router_that_hangs_after_all_is_said(router, tmp_path):
    router.answer(*RELOAD, recorded(SERVER, "reload of a file with an unknown key"))
    target, result = written(tmp_path)
    with pytest.raises(routing.RouterRefusal, match="was not read: .*Restart the router"):
        routing.reload(inputs(router), result, OLD.encode(), NEW)
    assert target.read_text() == OLD


@pytest.mark.parametrize("answer", ["keys: no key", None])
def test_a_router_out_of_reach_keeps_the_new_file(router, tmp_path, answer):
    if answer:
        router.answer(*RELOAD, recorded(SERVER, answer))
    target, result = written(tmp_path)
    where = inputs(router) if answer else {**inputs(router), "url": "http://127.0.0.1:9"}
    outcome = routing.reload(where, result, OLD.encode(), NEW)
    assert outcome["warned"]
    assert outcome["outcome"].startswith("not reloaded: ")
    assert target.read_text() == NEW


def test_a_router_that_reads_another_file(router, tmp_path):
    router.answer(*RELOAD, listing("a", "z"))
    _, result = written(tmp_path)
    outcome = routing.reload(inputs(router), result, OLD.encode(), NEW)
    assert outcome["warned"]
    assert "lacks 1 of the written models and lists 1 others" in outcome["outcome"]


def test_llama_swap_needs_no_call(router, tmp_path):
    _, result = written(tmp_path)
    outcome = routing.reload({**inputs(router), "kind": "llama-swap"}, result, None, "models: {}\n")
    assert not outcome["warned"]
    assert not router.asked


def test_why_there_is_no_state(router):
    router.answer("GET", "/props", recorded(SERVER, "keys: wrong key"))
    assert "wants a key" in routing.look(inputs(router))["problem"]


def test_errors_reach_the_person():
    with pytest.raises(RouterAway):
        routing.act(
            {"url": "http://127.0.0.1:9", "kind": "llama-swap", "action": "unload", "model": "a"},
            lambda text: None,
            lambda: True,
        )
    assert str(RouterRefused(500, "no")) == "the router answers 500: no"
