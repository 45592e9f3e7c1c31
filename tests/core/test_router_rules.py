"""What the reading routers do, beyond the vectors: loading, admission, scopes, answers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from models_app.core.errors import ExportError
from models_app.core.export.router import admission, command, requests
from models_app.core.export.router.load_rules import load_config, read_config

ANSWERS = Path(__file__).parent.parent / "data" / "llama-swap-answers.json"
MODEL = "models:\n  m:\n    cmd: srv --port ${PORT}\n"


def refused(text, dialect="llama-swap", **environ):
    return [violation.message for violation in load_config(dialect, text, environ).violations]


def test_environment_macros():
    text = '# ${env.IGNORED}\nmodels:\n  m:\n    cmd: srv --port ${PORT} "${env.KEY}"\n'
    assert refused(text) == ["environment variable 'KEY' is not set"]
    assert refused(text, KEY="a\nb") == ["environment variable 'KEY' holds a line break or NUL"]
    loaded = load_config("llama-swap", MODEL + '    name: "${env.KEY}"\n', {"KEY": 'a"b\\c'})
    assert loaded.models["m"]["name"] == 'a"b\\c'


def test_declared_macros_nest_and_keep_their_type():
    text = (
        "macros: {base: /opt, bin: '${base}/srv', t: 30}\n"
        "models:\n  m:\n    macros: {base: /own}\n    cmd: ${bin} --port ${PORT} --id ${MODEL_ID}\n    ttl: ${t}\n"
        "    filters: {setParamsByID: {'${MODEL_ID}:high': {}}}\n"
    )
    loaded = load_config("llama-swap", text, {})
    assert loaded.violations == ()
    assert loaded.models["m"]["cmd"] == "/own/srv --port 5800 --id m"
    assert loaded.models["m"]["ttl"] == 30
    assert loaded.aliases == {"m:high": "m"}


@pytest.mark.parametrize(
    ("addition", "fragment"),
    [
        ("startPort: 0\n", "startPort"),
        ("logToStdout: nowhere\n", "logToStdout"),
        ("macros: {a: [1]}\n", "must be a text"),
        ("macros: {a: 'x ${a}'}\n", "holds itself"),
        ("macros: {'a b': 1}\n", "is not up to"),
        ("macros: []\n", "must be a mapping"),
        ("apiKeys: ['${x}']\n", "apiKeys.0: unknown macro"),
        ("groups: {g: {swap: perhaps, members: [m]}}\n", "true or false"),
        ("groups: {g: [m]}\n", "a mapping"),
        ("groups: {g: {members: [m, m]}}\n", "duplicate model member m"),
        ("matrix: {sets: {}}\n", "at least one set"),
        ("matrix: {vars: {'a b': m}, sets: {s: m}}\n", "is not 1 to 32"),
        ("matrix: {vars: {a: m}, evict_costs: {a: 0}, sets: {s: a}}\n", "above 0"),
        ("routing: {router: {use: dice}}\n", "unknown router"),
        ("routing: {router: {use: matrix, settings: {}}}\n", "at least one set"),
        ("routing: {scheduler: {use: lifo}}\n", "only fifo"),
        ("routing: {scheduler: {settings: {fifo: {priority: {x: 1}}}}}\n", "no model here"),
        ("profiles: {p: [m]}\n", "old list form"),
        ("profiles: {p: {pins: {m: nobody}}}\n", "no model of this file"),
        ("selectors: {m: {strategy: warm, targets: [m]}}\n", "no name of its own"),
        ("selectors: {s: {strategy: best, targets: [m]}}\n", "strategy must be"),
        ("selectors: {s: {strategy: warm}}\n", "has no targets"),
        ("selectors: {s: {strategy: pin, targets: [s]}}\n", "no model here"),
        ("performance: {every: 2s}\n", "at least 5s"),
        ("performance: {every: soon}\n", "no duration"),
        ("peers: {p: 1}\n", "must be a mapping"),
        ("peers: {p: {proxy: http://x}}\n", "has no models"),
        ("peers: {p: {models: [a]}}\n", "no usable proxy"),
        (
            "peers: {p: {proxy: http://x, models: [a]}}\nselectors: {s: {strategy: warm, targets: [a]}}\n",
            "no model here",
        ),
        ("selectors: {s: {strategy: spillover, targets: [m, m]}}\n", "one model twice"),
        ("selectors: {s: {strategy: spillover, targets: [m], settings: {spillover: 0}}}\n", "at least 1"),
        ("groups: {g: {swap: 'no'}}\nrouting: {router: {settings: {groups: {}}}}\n", ""),
        ("peers: {p: {proxy: http://x, models: [a]}}\n  ".rstrip() + "\n", ""),
    ],
)
def test_what_llama_swap_refuses(addition, fragment):
    messages = refused(MODEL + addition)
    if fragment:
        assert any(fragment in message for message in messages), messages
    else:
        assert messages == []


@pytest.mark.parametrize(
    ("proxy", "sound"),
    [
        ("http://localhost:8080", True),
        ("http://[::1]:8080/x?y#z", True),
        ("localhost", True),
        ("/path:1", True),
        ("12:30", False),
        ("http://host:port", False),
        ("http://a b/", False),
        ("http://x/%zz", False),
        ("http://x/\x01", False),
    ],
)
def test_addresses(proxy, sound):
    model = {"models": {"m": {"cmd": "srv", "proxy": proxy}}}
    assert read_config("llama-swap", model).loads is sound


def test_groups_below_routing():
    text = MODEL + "routing: {router: {settings: {groups: {g: {members: [m]}}}}}\n"
    assert load_config("llama-swap", text, {}).groups["g"]["members"] == ["m"]
    assert load_config("llama-swap", MODEL, {}).groups == {
        "(default)": {"swap": True, "exclusive": True, "persistent": False, "members": ["m"]}
    }


def test_structures_of_any_shape_are_judged_not_crashed_on():
    for value in (None, [], "x", 7, {"models": []}, {"models": {"m": 1}}, {"models": {"m": None}}, {"groups": 1}):
        read_config("llama-swap", value)
        read_config("quartermaster", value)
    strange = {name: [{"a": 1}] for name in ("models", "groups", "matrix", "routing", "peers", "profiles", "listeners")}
    assert not read_config("quartermaster", strange).loads


def test_words_of_a_command():
    assert command.spawned_argv("literal", ["srv \\", "'a b' # c"], 1) == ["srv", "a b", "#", "c"]
    assert command.spawned_argv("folded", ["srv", "--port ${PORT}"], 9) == ["srv", "--port", "9"]


def test_memory_pools_leave_each_other_alone():
    groups = {
        "g": {"members": ["a", "b"]},
        "cpu": {"members": ["c", "d"], "pool": "ram", "exclusive": False},
    }
    estimates = {"a": 5, "b": 5, "c": 30, "d": 20}
    arguments = {"running": ["c", "a"], "budget_gb": 8}
    assert admission.evictions(groups, estimates, target="b", **arguments) == ["a"]
    assert admission.evictions(groups, estimates, target="d", running=["c", "a"], budget_gb=40) == ["c"]
    assert admission.evictions(groups, estimates, target="a", **arguments) == []


def test_context_requests():
    assert requests.parse_ctx_request("q?ctx=512") == ("q", 512, True)
    for name in ("q", "?ctx=4096", "q?ctx=511", "q?ctx=4194305", "q?ctx=4k", "q?CTX=4096", "q?ctx=٤٠٩٦"):
        assert requests.parse_ctx_request(name) == (name, 0, False)
    assert requests.resolve_ctx_request(["q"], {}, "q") == ""


def test_scopes():
    models = ["a", "b"]
    assert requests.scope_check(models, [], "a?ctx=4096", key_models=["b"]).status == 403
    assert requests.scope_check(models, [], "b?ctx=4096", key_models=["b"]).status == 200
    assert requests.scope_check(models, ["b"], "b").listed == ["a"]
    assert requests.scope_check(models, [], "x").status == 404
    assert requests.scope_check(models, [], "a", listener_models=[]) == ([], 404)


def test_upstream_paths():
    assert requests.upstream_split({"m"}, "/upstream/m") == ("m", "/")
    assert requests.upstream_split({"m"}, "/upstream/other/x") == ("", "")


def test_events():
    for text in ("", "data: {", 'data: {"type": "x", "data": 7}', "data: []", "event: message"):
        with pytest.raises(ExportError):
            requests.decode_event(text)


def test_a_real_router_read_the_same_command():
    """`cmd` and `proxy` as a real llama-swap reported them for this block (tests/data)."""
    answers = json.loads(ANSWERS.read_text(encoding="utf-8"))["answers"]
    running = next(answer for answer in answers if answer["about"] == "one model loaded")
    (recorded,) = json.loads(running["body"])["running"]
    text = (
        "models:\n  qwen3-0.6b:\n    cmd: >\n      /opt/llama/llama-server\n      -m /srv/models/qwen3-0.6b-q8_0.gguf\n"
        "      -c 2048\n      --host 127.0.0.1\n      --port ${PORT}\n    ttl: 700\n"
    )
    model = load_config("llama-swap", text, {}).models["qwen3-0.6b"]
    assert {name: model[name] for name in ("cmd", "proxy", "ttl")} == {
        name: recorded[name] for name in ("cmd", "proxy", "ttl")
    }


def test_records_of_capabilities():
    record = requests.v1_models_record({"in": ["audio"], "out": ["text"], "reranker": True, "context": 8192})
    assert record["capabilities"] == {"audio_transcriptions": True, "reranker": True}
    assert record["meta"] == {"n_ctx": 8192}
    assert requests.v1_models_record({}) == {}
    assert requests.v1_models_record({"in": ["image"]}) == {
        "architecture": {"input_modalities": ["image"]},
        "capabilities": {"vision": True},
    }
