"""Component files of a scan: what is stored, kept while it is out of reach, and forgotten."""

from __future__ import annotations

import os

import pytest

from models_app.models import Component, Finding, HeaderFacts
from models_app.services import register_root, remove_root
from quartermaster_site.access.audit import Actor
from quartermaster_site.jobs.models import Job, State
from quartermaster_site.jobs.receiving import receive
from tests.whole_tree import Tree

VAE = {"decoder.conv_in.weight": [512, 16, 3, 3]}
ENTRY = {"path": "/m/ae.safetensors", "role": "vae", "family": "flux", "width": 0, "size_bytes": 9}


@pytest.fixture
def tree(tmp_path):
    found = Tree(tmp_path / "models")
    found.safetensors("parts/ae.safetensors", VAE)
    found.gguf("parts/umt5-xxl-encoder-Q8_0.gguf", "umt5", embedding_length=4096)
    found.chat("chat/Qwen3-4B-Q8_0.gguf", "qwen3", width=2560)
    found.projector("chat/mmproj-F16.gguf")
    return found


@pytest.fixture
def surveyed(host, tree, scan):
    register_root(host=host, path=str(tree.base), actor=Actor())
    job = scan()
    assert job.state == "succeeded", (job.error, job.log)
    return job


def names():
    return {component.path.rpartition("/")[2]: component for component in Component.objects.all()}


def test_files_with_role_family_size_and_evidence(surveyed, tree):
    found = names()
    assert {name: (item.role, item.family, item.width) for name, item in found.items()} == {
        "ae.safetensors": ("vae", "flux", 0),
        "umt5-xxl-encoder-Q8_0.gguf": ("t5", "umt5", 4096),
        "Qwen3-4B-Q8_0.gguf": ("llm", "qwen3", 2560),
        "mmproj-F16.gguf": ("projector", "", 0),
    }
    assert found["ae.safetensors"].recognised_by == "tensor decoder.conv_in.weight, 512 x 16 x 3 x 3"
    assert found["ae.safetensors"].size_bytes == (tree.base / "parts/ae.safetensors").stat().st_size
    assert found["Qwen3-4B-Q8_0.gguf"].mmproj.endswith("chat/mmproj-F16.gguf")
    assert surveyed.result["components"] == 4
    assert not HeaderFacts.objects.filter(path__endswith=".safetensors").exists()


def test_scanning_again_writes_the_same(surveyed, scan):
    def state():
        return list(Component.objects.values("pk", "path", "first_seen_at", "away_since"))

    before = state()
    scan()
    assert state() == before


def test_what_a_file_turned_into_replaces_what_it_was(surveyed, scan, tree):
    tree.safetensors("parts/ae.safetensors", {"decoder.conv_in.weight": [384, 32, 3, 3]})
    scan()
    assert "small decoder" in names()["ae.safetensors"].withheld


def test_a_file_from_before_1970_is_no_trouble(surveyed, scan, tree):
    for name in ("parts/ae.safetensors", "chat/Qwen3-4B-Q8_0.gguf"):
        os.utime(tree.base / name, (-5, -5))
    assert scan().state == "succeeded"
    assert names()["ae.safetensors"].mtime_ns == -5_000_000_000


def test_a_file_that_is_gone_is_forgotten(surveyed, scan, tree):
    (tree.base / "parts/ae.safetensors").unlink()
    scan()
    assert "ae.safetensors" not in names()


def test_a_root_that_disappears_takes_nothing_with_it(surveyed, scan, tree):
    away = tree.base.with_name("unplugged")
    tree.base.rename(away)
    scan()
    assert len(names()) == 4
    assert all(item.away_since for item in names().values())
    away.rename(tree.base)
    scan()
    assert not any(item.away_since for item in names().values())


def test_an_empty_mount_point_takes_no_components_with_it(surveyed, scan, tree):
    tree.base.rename(tree.base.with_name("unmounted"))
    tree.base.mkdir()
    scan()
    assert all(item.away_since for item in names().values())


def test_a_removed_root_leaves_no_components(surveyed, host, tree, make_user):
    remove_root(root=host.roots.get(), actor=Actor(user=make_user("admin")))
    assert not Component.objects.exists()


def test_files_that_are_neither_model_nor_component_are_noted(surveyed, scan, tree):
    tree.safetensors("lora/style.safetensors", {"x.lora_down.weight": [4, 4]})
    (tree.base / "cut.safetensors").write_bytes(b"\x01")
    scan()
    found = {item.path.rpartition("/")[2]: (item.kind, item.level) for item in Finding.objects.all()}
    assert found == {
        "style.safetensors": ("adapter", "info"),
        "cut.safetensors": ("header-unreadable", "error"),
        "umt5-xxl-encoder-Q8_0.gguf": ("dropped-encoder", "info"),
    }


@pytest.fixture
def send(host):
    job = Job.objects.create(kind="scan", host=host, token="t")

    def run(components):
        data = {"sequence": 1, "components": components}
        receive({"job": job.pk, "token": "t", "kind": "batch", "data": data})
        job.refresh_from_db()
        return job

    return run


def test_what_is_as_agreed_is_stored(send):
    assert send([ENTRY, {**ENTRY, "path": "/m/b\x00.gguf"}]).state == State.RUNNING
    assert {item.path for item in Component.objects.all()} == {"/m/ae.safetensors", "/m/b�.gguf"}


@pytest.mark.parametrize(
    "entries",
    [
        [ENTRY] * 1001,
        [{**ENTRY, "role": "planner"}],
        [{**ENTRY, "path": ""}],
        [{**ENTRY, "path": "/" + "x" * 2000}],
        [{**ENTRY, "width": -1}],
        [{**ENTRY, "size_bytes": 1 << 70}],
        [{**ENTRY, "vision": "yes"}],
        [{**ENTRY, "mmproj": 3}],
        ["a"],
        {"a": 1},
    ],
)
def test_anything_else_fails_the_job_and_stores_nothing(send, entries):
    assert send(entries).state == State.FAILED
    assert not Component.objects.exists()
