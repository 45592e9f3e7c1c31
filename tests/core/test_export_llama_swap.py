"""The llama-swap dialect: what is left out, moved or baked in, and that its loader and schema take the result."""

from __future__ import annotations

import json

import pytest

from models_app.core.errors import ExportError
from models_app.core.export import load, schema
from models_app.core.export.dialects import BY_SLUG
from models_app.core.export.document import Document, Entry, Skipped
from models_app.core.export.llama_swap import Options, convert
from models_app.core.export.llama_swap_entry import Converted, context_tokens, convert_entry, without_flag
from models_app.core.export.parse import document_of
from models_app.core.export.render import render
from models_app.core.export.router.load_rules import load_config
from models_app.core.export.verify import first_difference, require_valid, verify

OPTIONS = Options(config_folder="/srv/qm")


def entry(**fields):
    command = fields.pop("command", ("llama-server", "--port ${PORT}"))
    return Entry("m", tuple(command), fields.pop("fields", {}), model_class=fields.pop("model_class", "llm"), base="m")


def converted(**fields):
    result = convert_entry(entry(**fields), OPTIONS)
    assert isinstance(result, Converted)
    return result


def test_what_a_person_reads_stays_and_the_rest_moves():
    result = converted(
        fields={
            "ttl": 0,
            "env": ["CUDA_VISIBLE_DEVICES=0", "lower=1"],
            "estVramGB": 3.5,
            "name": "n" * 200,
            "aliases": ["a", "", "a"],
            "unlisted": True,
            "slotCachePreamble": False,
            "capabilities": {"in": ["text", "image"], "out": ["text"], "reasoningEffort": ["low"], "tools": True},
        },
        command=("llama-server", "-c 65536 --parallel 2", '--slot-save-path "/c x"', "--port ${PORT}"),
    ).entry
    assert result.command == ("llama-server", "-c 65536 --parallel 2", "--port ${PORT}")
    assert result.fields == {
        "ttl": 0,
        "env": ["CUDA_VISIBLE_DEVICES=0"],
        "name": "n" * 128,
        "aliases": ["a"],
        "unlisted": True,
        "capabilities": {"in": ["text", "image"], "out": ["text"], "tools": True, "context": 32768},
        "metadata": {"quartermaster": {"class": "llm", "estVramGB": 3.5, "reasoningEffort": ["low"]}},
    }
    assert any("upper-case" in text for text in result.comments)


@pytest.mark.parametrize(
    ("model_class", "given", "kept", "moved"),
    [
        ("video", {"in": ["text"], "out": ["video", "audio"]}, None, {"out": ["video", "audio"]}),
        ("3d", {"in": ["image"], "out": ["3d"]}, None, {"out": ["3d"]}),
        ("image", {"in": ["text", "image"], "out": ["image"]}, {"in": ["text", "image"], "out": ["image"]}, {}),
        ("embedding", {"embedding": True}, None, {"embedding": True}),
        ("audiocpp", {"music": True, "musicScore": "abc"}, None, {"music": True, "musicScore": "abc"}),
        ("llm", {"reranker": False, "context": 0}, None, {}),
    ],
)
def test_capabilities_are_never_cut(model_class, given, kept, moved):
    result = converted(fields={"capabilities": given}, model_class=model_class).entry
    assert result.fields.get("capabilities") == kept
    block = dict(result.fields["metadata"]["quartermaster"])
    block.pop("class")
    assert block == moved


def test_audiocpp_gets_a_file_beside_the_config():
    fields = {"audiocpp": {"family": "ace_step", "path": "/m/a.gguf", "task": "gen"}, "concurrencyLimit": 1}
    result = converted(fields=fields, model_class="audiocpp")
    (companion,) = result.companions
    assert result.entry.command[-1] == f'--config "/srv/qm/{companion.name}"'
    assert json.loads(companion.text)["models"] == [
        {"id": "m", "family": "ace_step", "path": "/m/a.gguf", "task": "gen"}
    ]
    own = converted(fields=fields, command=("audiocpp_server --config mine.json", "--port ${PORT}"))
    assert own.companions == ()
    piped = convert_entry(entry(fields=fields), Options())
    assert isinstance(piped, Skipped)
    assert "name the path of the config file" in piped.reason


@pytest.mark.parametrize(
    "fields",
    [
        {"command": ("srv", "--port ${PORT}", "-m '/m/${HOME}.gguf'")},
        {"command": ("srv", "--port ${PORT} --other ${PORT}")},
        {"command": ("srv", "--port ${PORT} ${env.SECRET}")},
        {"fields": {"promptEnhancerPrompt": "use ${x}"}},
        {"fields": {"capabilities": {"reasoningEffort": ["${x}"]}}},
    ],
)
def test_macros_never_reach_the_file(fields):
    result = convert_entry(entry(**fields), OPTIONS)
    assert isinstance(result, Skipped)
    assert "${" not in result.reason


def test_flags_are_taken_out_of_their_line_only():
    lines = ['-a "b c" --slot-save-path x -d', "-e  'keep  as is'", "--slot-save-path=/y", "--slot-save-path z"]
    assert without_flag(lines, "--slot-save-path") == ['-a "b c" -d', "-e  'keep  as is'"]


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("-c 8192", 8192),
        ("--ctx-size 8192 -np 3", 2730),
        ("-c 8192 -c 4096", 4096),
        ("-c x", 0),
        ("--ctx", 0),
        ('"open', 0),
    ],
)
def test_window_of_one_conversation(command, expected):
    assert context_tokens([command]) == expected


def document(**fields):
    return Document(
        "quartermaster",
        header=("Quartermaster config - generated T", "TargetVramGB=22  MaxRamGB=64  Threads=8"),
        top=fields.get("top", {}),
        models=fields.get("models", (entry(),)),
        tail=fields.get("tail", {"groups": {"exclusive": {"swap": True, "exclusive": True, "members": ["m"]}}}),
    )


def test_scoped_keys_never_open_a_server():
    scoped = {"apiKeys": ["a", "b"], "apiKeyModels": {"a": ["m"], "b": ["m"]}}
    with pytest.raises(ExportError, match="open to everyone"):
        convert(document(top=scoped), OPTIONS)
    opened = convert(document(top=scoped), Options(allow_open=True))
    assert "apiKeys" not in opened.top
    assert "WARNING: 2 API keys limited to some models were left out" in opened.notes


def test_listeners_are_named_with_what_they_hid():
    tail = {
        "groups": {
            "a": {"swap": True, "exclusive": True, "members": ["m"]},
            "b": {"swap": False, "exclusive": True, "members": ["n", "o"]},
            "cpu": {"swap": True, "exclusive": False, "persistent": False, "pool": "ram", "members": ["p"]},
            "none": {"swap": True, "exclusive": True, "members": []},
        },
        "listeners": {":1": {"groups": ["a", "cpu"]}, ":2": {"groups": ["b", "cpu"]}},
    }
    models = tuple(Entry(name, ("srv", "--port ${PORT}"), {}, base=name) for name in "mnop")
    result = convert(document(models=models, tail=tail), OPTIONS)
    assert result.tail == {
        "groups": {
            "a": {"swap": True, "exclusive": True, "members": ["m"]},
            "b": {"swap": False, "exclusive": True, "members": ["n", "o"]},
            "cpu": {"swap": True, "exclusive": False, "persistent": True, "members": ["p"]},
        }
    }
    assert "WARNING: no longer limited to some addresses: m, n, o" in result.notes
    assert "# nothing here protects the memory of models that stay loaded together: b" in render(result)


def test_skipped_models_leave_their_group():
    models = (entry(), Entry("bad", ("srv", "--port ${PORT} ${x}"), {}, base="bad"))
    tail = {"groups": {"exclusive": {"swap": True, "exclusive": True, "members": ["m", "bad"]}}}
    for dialect in (BY_SLUG["llama-swap"], BY_SLUG["quartermaster"]):
        result = dialect.convert(document(models=models, tail=tail), OPTIONS)
        assert result.tail["groups"]["exclusive"]["members"] == ["m"]
        assert [item.id for item in result.skipped] == ["bad"]
        assert load_config(dialect.slug, render(result), {}).loads


def test_matrix_instead_of_groups():
    models = (
        Entry("a", ("srv", "--port ${PORT}"), {"estVramGB": 6}, base="a", size_bytes=5 << 30),
        Entry("a-32k", ("srv -c 1", "--port ${PORT}"), {"estVramGB": 7}, base="a", size_bytes=5 << 30),
        Entry("b", ("srv -b", "--port ${PORT}"), {"estVramGB": 5}, base="b", size_bytes=1),
        Entry("sam", ("sam", "--port ${PORT}"), {}, base="sam", model_class="sam"),
    )
    tail = {
        "groups": {
            "exclusive": {"swap": True, "exclusive": True, "members": ["a", "a-32k", "b"]},
            "sam": {"swap": False, "exclusive": False, "persistent": True, "members": ["sam"]},
        }
    }
    result = convert(document(models=models, tail=tail), Options(matrix_budget_gb=12))
    assert result.tail == {
        "matrix": {
            "vars": {"m1": "a", "m2": "a-32k", "m3": "b", "m4": "sam"},
            "evict_costs": {"m1": 5, "m2": 5, "m3": 1},
            "sets": {"s1": "(m1 | m2) & (m3) & m4"},
        }
    }
    text = render(result)
    assert load_config("llama-swap", text, {}).loads
    require_valid(verify(result, text))


EXAMPLE = {
    "healthCheckTimeout": 300,
    "vramBudgetGB": 22,
    "apiKeys": ["full", "scoped"],
    "apiKeyModels": {"scoped": ["m"]},
    "models": {
        "m": {
            "cmd": "llama-server -m /m.gguf --port ${PORT}",
            "capabilities": {"in": ["text", "image"], "out": ["text"]},
        },
        "v": {"cmd": "sd-server --listen-port ${PORT}", "capabilities": {"in": ["text"], "out": ["video"]}},
    },
    "groups": {"g": {"swap": True, "exclusive": True, "members": ["m", "v"]}},
}


@pytest.mark.parametrize("slug", ["llama-swap", "quartermaster"])
def test_every_dialect_passes_its_own_judges(slug):
    result = BY_SLUG[slug].convert(document_of(EXAMPLE, header=("Quartermaster config - generated T",)), OPTIONS)
    text = render(result)
    assert verify(result, text) == []
    assert schema.is_valid(slug, load.load(text).value)
    assert load_config(slug, text, {}).loads


def test_a_text_that_reads_back_differently_is_found():
    meant = {"models": {"m": {"cmd": "a b", "ttl": 600, "l": [1, 2.5]}}}
    assert first_difference(meant, {"models": {"m": {"cmd": "a b\n", "ttl": 600.0, "l": [1, 2.5]}}}) is None
    for other in ({"cmd": "a", "ttl": 600, "l": [1, 2.5]}, {"cmd": "a b", "ttl": True, "l": [1, 2.5]}):
        assert first_difference(meant, {"models": {"m": other}}) is not None
    with pytest.raises(ExportError, match="V-22"):
        require_valid(verify(document(), render(document()).replace("--port", "--prt")))
