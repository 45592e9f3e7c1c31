"""Importing a router's file: read, report, take over, undo."""

from __future__ import annotations

import shutil

import pytest
import yaml

from models_app.core.imports.meaning import differences, meaning_of
from models_app.models import Change, Fragment, ImportBatch, Override, Revision, Row
from models_app.services import save_override
from models_app.services.import_applying import Choice, items_of_batch, start_apply
from models_app.services.import_undoing import undo_import
from models_app.services.importing import start_import
from quartermaster_site.access.audit import Actor
from quartermaster_site.access.models import AuditEntry

SECTIONS = frozenset({"models", "top", "backends"})


@pytest.fixture
def read(host, actor, django_capture_on_commit_callbacks):
    """Bring in a text or a config; the batch as it was read."""

    def run(config, dialect="llama-swap", name="config.yaml", by=actor):
        text = config if isinstance(config, str) else yaml.safe_dump(config, sort_keys=False)
        with django_capture_on_commit_callbacks(execute=True):
            batch = start_import(host=host, name=name, data=text.encode(), dialect=dialect, actor=by)
        return ImportBatch.objects.select_related("host").get(pk=batch.pk)

    return run


@pytest.fixture
def apply(actor, django_capture_on_commit_callbacks):
    """Take over everything that is new, exactly as written; `items` are boxes ticked beside."""

    def run(batch, way="exact", items=(), by=actor, sections=SECTIONS, ways=None):
        ways = ways or {name: way if found["way"] == "exact" else found["way"] for name, found in models(batch).items()}
        numbers = {number for number, item in enumerate(items_of_batch(batch)) if item.section in ("top", "backends")}
        choice = Choice(frozenset(sections), ways, frozenset(numbers | set(items)))
        with django_capture_on_commit_callbacks(execute=True):
            start_apply(batch=batch, choice=choice, actor=by)
        batch.refresh_from_db()
        return batch

    return run


def models(batch):
    return batch.report["models"]


def items(batch, status=None, kind=None):
    return [
        item
        for item in items_of_batch(batch)
        if (status is None or item.status == status) and (kind is None or item.target.kind == kind)
    ]


def written(host, dialect="llama-swap"):
    """What the newest text of the host means."""
    revision = Revision.objects.filter(host=host).order_by("-number").first()
    assert revision.state == "validated", revision.findings
    return meaning_of(revision.text.encode(), dialect)


def meaning(config, dialect="llama-swap"):
    return meaning_of(yaml.safe_dump(config, sort_keys=False).encode(), dialect)


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
    host, shelf_of_40, read, apply, actor, django_capture_on_commit_callbacks
):
    """Import, see that nothing would change, edit one model, review, publish."""
    config = hand_written(shelf_of_40)
    batch = read(config)
    assert batch.state == "read", batch.problem
    assert {found["way"] for found in models(batch).values()} == {"exact"}
    for found in models(batch).values():
        assert found["after"]["exact"] == found["before"]
    batch = apply(batch)
    assert batch.state == "applied", batch.problem
    assert differences(meaning(config), written(host)) == []

    row = Row.objects.get(served_id="hand-1")
    with django_capture_on_commit_callbacks(execute=True):
        save_override(row=row, values={"ttlSec": 33}, version=Override.objects.get(match=row.path).version, actor=actor)
    assert differences(meaning(config), written(host)) == [("models.hand-1.ttl", 0, 33)]


def test_undo_brings_everything_back(host, shelf_of_40, read, apply, actor, django_capture_on_commit_callbacks):
    before = Revision.objects.order_by("-number").first().body_sha256
    batch = apply(read(hand_written(shelf_of_40)))
    with django_capture_on_commit_callbacks(execute=True):
        undo_import(batch=batch, actor=actor)
    assert Revision.objects.order_by("-number").first().body_sha256 == before
    assert not Override.objects.exists()
    assert not Fragment.objects.exists()
    assert ImportBatch.objects.get().state == "undone"
    assert AuditEntry.objects.filter(action="import.undo").count() == 1
    assert Change.objects.filter(action="undo").count() == 40
