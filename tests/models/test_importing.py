"""Importing a router's file: read, report, take over, undo."""

from __future__ import annotations

import json
import shutil

import pytest

from gpus_app.models import Host
from gpus_app.selectors import get_host
from gpus_app.services import request_plan
from models_app.core.export.schema import FOLDER, is_valid
from models_app.core.imports.meaning import differences
from models_app.core.imports.report import Status
from models_app.models import Change, Fragment, ImportBatch, Override, Revision, Row, Variant
from models_app.services import save_override
from models_app.services.import_applying import items_of_batch
from models_app.services.import_undoing import undo_import
from quartermaster_site.access.audit import Actor
from quartermaster_site.access.models import AuditEntry
from tests.models.import_cases import items, meaning, models, written


@pytest.fixture
def shelf_of_40(folder, host, scan):
    """Forty models in a scanned folder."""
    from models_app.services import register_root

    for path in folder.iterdir():
        path.unlink()
    from tests.tiny_models import tiny_gguf

    tiny_gguf(folder / "first.gguf", name="First")
    paths = []
    for number in range(40):
        path = folder / f"model-{number:02}-Q4_0.gguf"
        shutil.copy(folder / "first.gguf", path)
        paths.append(path)
    (folder / "first.gguf").unlink()
    register_root(host=host, path=str(folder), actor=Actor())
    assert scan().state == "succeeded"
    assert Row.objects.count() == 40
    return paths


def hand_written(paths):
    """Forty entries as people write them: macros, every order of flags, keys of many kinds."""
    entries = {}
    for number, path in enumerate(paths):
        command = [
            f"${{server}} -m {path} -c {4096 * (number % 3 + 1)} -ngl 99 --jinja",
            f"llama-server --port ${{PORT}} --model {path}\n--flash-attn on\n  --temp 0.{number % 9 + 1}",
            f"llama-server -m {path} --port ${{PORT}}",
            f'llama-server --host 127.0.0.1 --port ${{PORT}} -m "{path}" --chat-template-kwargs \'{{"a": "b c"}}\'',
        ][number % 4]
        entry = {"cmd": command}
        if number % 5 == 0:
            entry |= {"ttl": 60 * number, "aliases": [f"alias-{number}"], "env": ["CUDA_VISIBLE_DEVICES=0"]}
        if number % 7 == 0:
            entry |= {"unlisted": True, "description": "by hand", "filters": {"stripParams": "temperature"}}
        entries[f"hand-{number}"] = entry
    return {
        "healthCheckTimeout": 90,
        "logLevel": "warn",
        "macros": {"server": "llama-server --port ${PORT}"},
        "models": entries,
        "groups": {"pair": {"swap": False, "exclusive": True, "members": ["hand-0", "hand-1"]}},
    }


def test_forty_hand_written_models_change_nothing(
    host, shelf_of_40, bring_in, take_over, actor, django_capture_on_commit_callbacks
):
    """Import, see that nothing would change, edit one model, review, publish."""
    config = hand_written(shelf_of_40)
    batch = bring_in(config)
    assert batch.state == "read", batch.problem
    assert {found["way"] for found in models(batch).values()} == {"exact"}
    for found in models(batch).values():
        assert found["after"]["exact"] == found["before"]
    batch = take_over(batch)
    assert batch.state == "applied", batch.problem
    assert differences(meaning(config), written(host)) == []

    row = Row.objects.get(served_id="hand-1")
    with django_capture_on_commit_callbacks(execute=True):
        save_override(row=row, values={"ttlSec": 33}, version=Override.objects.get(match=row.path).version, actor=actor)
    assert differences(meaning(config), written(host)) == [("models.hand-1.ttl", 0, 33)]


def test_undo_brings_everything_back(host, shelf_of_40, bring_in, take_over, actor, django_capture_on_commit_callbacks):
    before = Revision.objects.order_by("-number").first().body_sha256
    batch = take_over(bring_in(hand_written(shelf_of_40)))
    with django_capture_on_commit_callbacks(execute=True):
        undo_import(batch=batch, actor=actor)
    assert Revision.objects.order_by("-number").first().body_sha256 == before
    assert not Override.objects.exists()
    assert not Fragment.objects.exists()
    assert ImportBatch.objects.get().state == "undone"
    assert AuditEntry.objects.filter(action="import.undo").count() == 1
    assert Change.objects.filter(action="undo").count() == 40


EVERY_KEY = {
    "healthCheckTimeout": 45,
    "globalTTL": 900,
    "unloadTimeout": 20,
    "logLevel": "debug",
    "logTimeFormat": "rfc3339",
    "logToStdout": "both",
    "metricsMaxInMemory": 500,
    "captureBuffer": 7,
    "store": {"path": "/var/lib/swap"},
    "ui": {"activity": {"session_id": ["x-session"]}},
    "performance": {"disabled": False, "every": "30s"},
    "startPort": 6000,
    "sendLoadingState": True,
    "includeAliasesInList": True,
    "macros": {"bin": "llama-server", "serve": "${bin} --port ${PORT}", "window": 8192, "warm": True},
    "profiles": {"day": {"description": "by day", "pins": {"any": "first"}}},
    "selectors": {
        "any": {
            "strategy": "spillover",
            "targets": ["first", "second"],
            "settings": {"spillover": 2},
            "name": "Any",
            "description": "either",
            "unlisted": True,
            "metadata": {"a": [1, {"b": None}]},
        }
    },
    "apiKeys": ["sk-one-two-three", "sk-four-five"],
    "peers": {
        "other": {
            "proxy": "http://10.0.0.2:8080",
            "apiKey": "sk-peer",
            "models": ["far"],
            "filters": {"stripParams": "top_k", "setParams": {"x": 1}},
            "timeouts": {"connect": 1, "keepalive": 2, "responseHeader": 3, "tlsHandshake": 4, "idleConn": 5},
        }
    },
    "upstream": {"ignorePaths": [".*\\.js$"]},
    "hooks": {"on_startup": {"preload": ["first"]}},
}
GROUPS = {
    "pair": {"swap": False, "exclusive": False, "persistent": True, "members": ["first", "second"]},
    "rest": {"swap": True, "exclusive": True, "members": ["third", "boxed"]},
}
MATRIX = {"vars": {"a": "first", "b": "second"}, "evict_costs": {"a": 5}, "sets": {"both": "a & b"}}
FIFO = {"scheduler": {"use": "fifo", "settings": {"fifo": {"priority": {"first": 10}}}}}
WAYS_TO_GROUP = {
    "groups": {"groups": GROUPS, "routing": FIFO},
    "matrix": {"matrix": MATRIX, "routing": FIFO},
    "routed groups": {"routing": {**FIFO, "router": {"use": "group", "settings": {"groups": GROUPS}}}},
    "routed matrix": {"routing": {**FIFO, "router": {"use": "matrix", "settings": {"matrix": MATRIX}}}},
}


def every_key(folder, grouping):
    """A config that uses every key of llama-swap's schema, on the files of a folder."""
    alpha, beta = folder / "alpha-1b-Q4_0.gguf", folder / "beta-2b-Q4_0.gguf"
    whole = {
        "macros": {"own": "--temp 0.1"},
        "cmd": f"${{serve}} -m {alpha} -c ${{window}} ${{own}} --alias ${{MODEL_ID}}",
        "cmdStop": "kill -TERM ${PID}",
        "name": "First",
        "description": "every key",
        "env": ["CUDA_VISIBLE_DEVICES=0", "LLAMA_ARG_THREADS=4"],
        "proxy": "http://127.0.0.1:${PORT}",
        "aliases": ["one", "uno"],
        "checkEndpoint": "/health",
        "ttl": 30,
        "unloadTimeout": 5,
        "useModelName": "alpha",
        "filters": {
            "stripParams": "temperature, top_k",
            "setParams": {"a": {"b": [1, 2.5, True, None, "on"]}},
            "setParamsByID": {"${MODEL_ID}:high": {"reasoning": "high"}, "one": {"x": "no"}},
        },
        "metadata": {"window": "${window}", "nested": {"list": [1, "off", {}]}},
        "concurrencyLimit": 3,
        "sendLoadingState": False,
        "unlisted": True,
        "timeouts": {
            "connect": 1,
            "keepalive": 2,
            "responseHeader": 3,
            "tlsHandshake": 4,
            "expectContinue": 5,
            "idleConn": 6,
        },
        "compat": {"ignoreWebsockets": True},
        "capabilities": {"in": ["text", "image"], "out": ["text"], "tools": True, "reranker": False, "context": 8192},
    }
    return {
        **EVERY_KEY,
        **WAYS_TO_GROUP[grouping],
        "models": {
            "first": whole,
            "second": {"cmd": f"${{serve}} -m {beta}"},
            "third": {"cmd": f"${{serve}} -m {beta} -c 4096", "description": "the same file"},
            "boxed": {"cmd": "podman run --rm -p ${PORT}:8080 image", "cmdStop": "podman stop image", "ttl": 0},
        },
    }


def keys_used(value, schema, definitions):
    """Dotted names of the schema's properties that a value uses."""
    schema = definitions[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    found = set()
    for key, inner in value.items() if isinstance(value, dict) else ():
        known = schema.get("properties", {}).get(key)
        if known is not None:
            found |= {key} | {f"{key}.{name}" for name in keys_used(inner, known, definitions)}
        elif isinstance(schema.get("additionalProperties"), dict):
            found |= {f"<>.{name}" for name in keys_used(inner, schema["additionalProperties"], definitions)}
    return found


def keys_known(schema, definitions):
    schema = definitions[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    found = set()
    for key, inner in schema.get("properties", {}).items():
        found |= {key} | {f"{key}.{name}" for name in keys_known(inner, definitions)}
    if isinstance(schema.get("additionalProperties"), dict):
        found |= {f"<>.{name}" for name in keys_known(schema["additionalProperties"], definitions)}
    return found


def test_the_configs_of_these_tests_use_every_key_of_the_schema(tmp_path):
    schema = json.loads((FOLDER / "llama-swap.json").read_text())
    used = set()
    for grouping in WAYS_TO_GROUP:
        config = every_key(tmp_path, grouping)
        assert is_valid("llama-swap", config)
        used |= keys_used(config, schema, schema["definitions"])
    assert keys_known(schema, schema["definitions"]) - used == set()


@pytest.mark.parametrize("grouping", WAYS_TO_GROUP)
def test_every_key_is_imported_without_loss(grouping, folder, scanned, host, bring_in, take_over):
    """What comes out means the same to the router as what went in."""
    config = every_key(folder, grouping)
    (folder / "alpha-1b-Q8_0.gguf").unlink()
    Row.objects.filter(path__endswith="Q8_0.gguf").delete()
    batch = bring_in(config)
    assert [found["way"] for found in models(batch).values()] == ["exact", "exact", "exact", "raw"]
    assert items(batch, Status.LOST) == []
    batch = take_over(batch)
    assert batch.state == "applied", batch.problem
    assert differences(meaning(config), written(host)) == []
    variant = Variant.objects.get()
    assert (variant.name, variant.fields["servedId"]) == ("third", "third")


@pytest.mark.parametrize("grouping", ["groups", "routed matrix"])
def test_the_same_file_again_says_nothing_new(grouping, folder, scanned, host, bring_in, take_over):
    config = every_key(folder, grouping)
    take_over(bring_in(config))
    again = bring_in(config)
    assert {found["way"] for found in models(again).values()} == {"same"}
    assert {item.status for item in items_of_batch(again) if item.section != "elsewhere"} == {Status.SAME}


@pytest.mark.parametrize("dialect", ["llama-swap", "quartermaster", "llama-server"])
def test_our_own_export_changes_nothing(dialect, scanned, host, bring_in, django_capture_on_commit_callbacks):
    Host.objects.filter(pk=host.pk).update(publish_dialect=dialect)
    with django_capture_on_commit_callbacks(execute=True):
        request_plan(host=get_host(host.slug), actor=Actor())
    revision = Revision.objects.order_by("-number").first()
    assert revision.dialect == dialect
    batch = bring_in(revision.text, dialect=dialect)
    assert batch.state == "read", batch.problem
    assert {found["way"] for found in models(batch).values()} == {"same"}
    ours = [item for item in items_of_batch(batch) if item.status not in (Status.SAME, Status.LOST)]
    assert ours == []
    lost = {item.target.field for item in items(batch, Status.LOST)}
    assert lost <= {"estVramGB", "estRamGB"}
