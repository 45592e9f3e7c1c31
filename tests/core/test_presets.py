"""Presets for llama.cpp's own router: what is written is read back the same, and nothing leaks into another section."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models_app.core.errors import ExportError
from models_app.core.export.dialects import BY_SLUG
from models_app.core.export.document import Document, Entry, Skipped
from models_app.core.export.llama_swap import Options
from models_app.core.export.presets import check, options, reading, router
from models_app.core.export.presets.convert import convert
from models_app.core.export.presets.render import render
from models_app.core.export.presets.writing import served_id
from models_app.core.launch.tokens import join_tokens

DATA = Path(__file__).parents[1] / "data"
PLAIN = "[a]\nmodel = /srv/a.gguf\n"


def entry(name="a", argv=("-m", "/srv/a.gguf"), model_class="llm", executable="llama-server", **fields):
    return Entry(id=name, command=(executable, join_tokens(argv)), fields=fields, model_class=model_class)


def written(*entries, top=None, tail=None, **choices):
    document = Document(
        dialect="quartermaster",
        header=("Quartermaster config - generated now",),
        top=top or {},
        models=entries,
        tail=tail or {},
    )
    result = convert(document, Options(**choices))
    return result, render(result)


def rules(text, *, only=None):
    found = [item.rule for item in check.findings_of(text.encode())]
    return [rule for rule in found if only is None or rule in only]


def test_the_table_is_that_of_the_server():
    """The recorded list has no dashes and no order of its own; every spelling of it must be here once."""
    recorded = json.loads((DATA / "llama-server-preset-options.json").read_text())["options"]
    ours = [[flag.lstrip("-") for flag in option.flags] for option in options.options()]
    assert ours == [option["names"] for option in recorded]
    assert [option.handling for option in options.options()] == [option.get("preset", "") for option in recorded]
    assert [option.values for option in options.options()] == [option["values"] for option in recorded]
    assert [[flag.lstrip("-") for flag in option.negated] for option in options.options()] == [
        option.get("negated", []) for option in recorded
    ]


def test_names_of_options():
    assert options.by_key()["ngl"].name == "n-gpu-layers"
    assert options.by_key()["LLAMA_ARG_NO_KV_UNIFIED"].name == "kv-unified"
    assert options.by_key()["nocb"].name == "cont-batching"
    assert options.option_of_flag("--ctx_size").name == "ctx-size"
    assert options.option_of_flag("--ngl") is None


NASTY = st.text(
    st.sampled_from("ab01:/,;#=[]*\"'\\ \t\r\n\0\x1b\x85\u2028\ufeffé漢-._$%~") | st.characters(),
    min_size=0,
    max_size=40,
)


@given(names=st.lists(NASTY, min_size=1, max_size=4, unique=True), values=st.lists(NASTY, min_size=4, max_size=4))
def test_hostile_text_never_changes_another_section(names, values):
    """Whatever names, paths and arguments hold: each section reads back as it was meant, or is left out."""
    entries = [
        entry(name, ("-m", f"/srv/{value}", "--grammar", value), aliases=[value], ttl=5)
        for name, value in zip(names, values, strict=False)
    ]
    document, text = written(*entries)
    assert check.verify(document, text) == [] or not [
        item for item in check.verify(document, text) if item.severity == "block"
    ]
    read = reading.read(text)
    assert set(read.models) == {served_id(item.id) for item in document.entries}
    for item in document.entries:
        assert read.models[served_id(item.id)]["grammar"] == item.fields["grammar"]
    assert len(document.entries) + len(document.skipped) == len(entries)
    assert router.starts(text)


def test_a_command_becomes_long_keys_in_its_order():
    argv = ["-m", "/srv/a.gguf", "--port", "${PORT}", "-ngl", "99", "-c", "8192", "--no-kv-unified", "-fa", "on"]
    kwargs = "--chat-template-kwargs"
    document, text = written(entry(argv=[*argv, kwargs, '{"a": 1}', kwargs, '{"b": 2, "a": 3}'], ttl=60))
    assert list(document.entries[0].fields.items()) == [
        ("tags", "llm"),
        ("model", "/srv/a.gguf"),
        ("n-gpu-layers", "99"),
        ("ctx-size", "8192"),
        ("no-kv-unified", "true"),
        ("flash-attn", "on"),
        ("chat-template-kwargs", '{"a":3,"b":2}'),
        ("sleep-idle-seconds", "60"),
    ]
    assert "version = 1\n\n[a]\ntags = llm\nmodel = /srv/a.gguf\n" in text


@pytest.mark.parametrize(
    ("argv", "reason"),
    [
        (("-m", "/srv/a.gguf", "--no-such-flag", "1"), "no flag of llama-server"),
        (("-m", "/srv/a.gguf", "stray"), "belongs to no flag"),
        (("-m", "/srv/a.gguf", "-c"), "has no value"),
        (("-m", "/srv/a.gguf", "--list-devices"), "would end this server"),
        (("-m", "/srv/a.gguf", "--draft-max", "4"), "would end this server"),
        (("-m", "/srv/a.gguf", "--lora-scaled", "C:\\l.gguf:0.5"), "drive letter"),
        (("-c", "4096"), "names no model"),
        (("-m", "/srv/a.gguf", "--chat-template-kwargs", "{'a': 1}"), "no JSON"),
        (("-m", "/srv/a.gguf", "--chat-template-kwargs", '{"a": NaN}'), "no JSON"),
    ],
)
def test_what_the_file_cannot_hold_is_left_out_with_a_reason(argv, reason):
    document, text = written(entry(argv=argv), entry("b"))
    assert [item.id for item in document.skipped] == ["a"]
    assert reason in document.skipped[0].reason
    assert f'; SKIPPED "a": {document.skipped[0].reason}' in text
    assert [item.id for item in document.entries] == ["b"]


def test_other_servers_are_left_out_and_counted():
    document, text = written(
        entry("a"), entry("v", executable="vllm"), entry("s", model_class="sam"), Skipped("n", "not planned yet: image")
    )
    assert [item.id for item in document.entries] == ["a"]
    assert "; NOTE: 2 models of other servers left out" in text
    assert '; SKIPPED "s": served by sam, not by llama-server' in text


def test_two_ids_that_the_router_cannot_tell_apart():
    document, _ = written(entry("m:q8_0"), entry("m:Q8_0"))
    assert [item.id for item in document.entries] == ["m:q8_0"]
    assert document.entries[0].fields["alias"] == "m:q8_0"
    assert "tell it from m:q8_0" in document.skipped[0].reason


def test_variables_become_a_device_or_a_warning():
    document, text = written(
        entry(env=["CUDA_DEVICE_ORDER=PCI_BUS_ID", "CUDA_VISIBLE_DEVICES=1", "SECRET=hush"]),
        entry("b", env=["GGML_VK_VISIBLE_DEVICES=0,2"], argv=("-m", "/b", "--device", "none")),
    )
    assert document.entries[0].fields["device"] == "CUDA1"
    assert document.entries[1].fields["device"] == "none"
    assert "; RUN: CUDA_DEVICE_ORDER=PCI_BUS_ID llama-server" in text
    assert "; WARNING: SECRET cannot be set for one model here" in text
    assert "hush" not in text


def test_keys_lie_beside_the_file():
    top = {"apiKeys": ["one", "two"], "apiKeyModels": {"two": ["a"]}}
    document, text = written(entry(), top=top, config_folder="/srv/router", file_name="presets.ini")
    assert [(item.name, item.text) for item in document.companions] == [("presets.keys", "one\n")]
    assert (
        "LLAMA_ARG_API_KEY_FILE=/srv/router/presets.keys llama-server --models-preset /srv/router/presets.ini" in text
    )
    assert "WARNING: 1 API key limited to some models was left out" in text
    assert "= one" not in text
    with pytest.raises(ExportError, match="open to everyone"):
        written(entry(), top={"apiKeys": ["two"], "apiKeyModels": {"two": ["a"]}})


@pytest.mark.parametrize("key", ["#hidden", " blank", "two\nlines"])
def test_a_key_that_the_key_file_cannot_hold(key):
    with pytest.raises(ExportError, match="cannot hold it"):
        written(entry(), top={"apiKeys": [key]}, config_folder="/srv")


def test_what_is_lost_is_said():
    _, text = written(
        entry(unlisted=True, capabilities={"in": ["text"]}),
        top={"vramBudgetGB": 22, "slotCache": {"enable": True}},
        tail={"groups": {"x": {}}, "listeners": {"y": {}}},
    )
    assert "; NOTE: not expressible here: vramBudgetGB, slotCache, groups, listeners, capabilities" in text
    assert "; NOTE: listed all the same: a" in text
    assert "; NOTE: every model is served on one address" in text


def test_verify_sees_a_text_that_says_something_else():
    document, text = written(entry(ttl=5))
    assert check.verify(document, text) == []
    other = text.replace("sleep-idle-seconds = 5", "sleep-idle-seconds = 6")
    assert [item.rule for item in check.verify(document, other)] == ["V-02"]
    changed = replace(document, models=())
    assert [item.where for item in check.verify(changed, text)] == ["a"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (PLAIN, []),
        ("[a]\nmodel = /x\n[a]\nmodel = /y\n", ["LS-04"]),
        ("[a]\nmodel = /x\nalias = b\n[b]\nmodel = /y\n", ["LS-05"]),
        ("[*]\nalias = q\n[a]\nmodel = /x\n[b]\nmodel = /y\n", ["LS-05", "LS-24"]),
        ("[*]\nmodel = /x\n[a]\nc = 1\n", ["LS-24"]),
        ("[a]\ngpt-oss-20b-default = true\n", []),
        (f"{PLAIN}draft-max = 4\n", ["LS-08"]),
        (f"{PLAIN}pooling = auto\n", ["LS-08"]),
        (f"{PLAIN}list-devices = off\n", []),
        (f"{PLAIN}grammar = {'x' * 131_072}\n", ["LS-10"]),
        ("[a ]\nmodel = /x\n", ["LS-12"]),
        ("[a]\nmodel = /x#y\n", ["LS-13"]),
        ('[a]\nmodel = /x\ngrammar = "x"\n', ["LS-14"]),
        (f"{PLAIN}port = 1\n", ["LS-16"]),
        (f"{PLAIN}load-on-startup = yes\n", ["LS-17"]),
        (f"; RUN: llama-server --models-max 0\n{PLAIN}load-on-startup = 1\n", ["LS-18"]),
        ("[m:q8]\nmodel = /x\n", ["LS-19"]),
        ("[m:q8]\nmodel = /x\nalias = m:q8\n", []),
        ("version = 1\n" + PLAIN, []),
        ("model = /x\n" + PLAIN, ["LS-20"]),
        ("c = 9\n" + PLAIN, ["LS-06", "LS-20"]),
        ("[a]\nmodel = C:\\x.gguf\nlora = /a,b\n", ["LS-21"]),
        (f"{PLAIN}stop-timeout = soon\n", ["LS-22"]),
        ("[a,b]\nmodel = /x\n", ["LS-23"]),
        (f"{PLAIN}hf-token = x\n", ["LS-25"]),
        ("[a]\n model = /x\n", ["LS-02"]),
        ("[]\n", ["LS-02"]),
        ("[ ]\n", ["LS-02"]),
        ("[a] b\n", ["LS-02"]),
        ("--ctx-size = 4\n", ["LS-02"]),
        ("[a]\0\n", ["LS-01"]),
    ],
)
def test_rules_of_the_check(text, expected):
    assert sorted(rules(text)) == expected


def test_findings_name_line_and_remedy():
    [found] = check.check_bytes(f"{PLAIN}jinja = no\n".encode())
    assert (found.rule, found.line, found.where) == ("LS-17", 3, "a.jinja")
    assert "is read as on: write true or false" in found.message


def test_a_value_of_a_megabyte_of_blanks_is_no_work():
    text = f"[a]\nmodel = /x{' ' * 1_000_000}y\n"
    assert reading.read(text).models["a"]["model"].endswith("y")


def test_a_header_may_hold_a_line_break_but_not_for_us():
    assert list(reading.read("[a\nb]\nmodel = /x\n").models) == ["a\nb"]
    document, _ = written(entry("a\nb"))
    assert document.entries == ()


def test_a_reload_that_would_hang_is_known_before():
    old = PLAIN
    hanging = f"{PLAIN}alias = x\n[b]\nmodel = /b\nalias = a\n"
    found = router.reload(old, hanging, ["a"])
    assert (found.status, found.loads_hang, found.listed) == (500, True, ("a",))
    assert not router.starts(hanging)
    assert "LS-05" in rules(hanging)


def test_it_is_one_of_the_dialects():
    dialect = BY_SLUG["llama-server"]
    assert dialect.file_name == "models.ini"
    assert not dialect.scopes_keys
    assert dialect.check(b"[a]\n", "posix")[0].rule == "LS-06"


def test_only_blanks_of_ascii_are_trimmed_from_names():
    """A real router keeps a line separator at the start of a name (tests/core/test_real_router.py found it)."""
    assert reading.names_in(" b\t,\u2028a,\x0bc ,") == ("b", "c", "\u2028a")
