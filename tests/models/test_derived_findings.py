"""Findings that planning makes: missing and doubtful components, lost pins, shared ids, files without a plan."""

from __future__ import annotations

import pytest

from gpus_app.models import Host, HostSetting
from gpus_app.services import save_target
from models_app.models import Finding, Row
from models_app.services import register_root
from models_app.services.derived_findings import note_findings
from quartermaster_site.access.audit import Actor
from tests.whole_tree import Tree

PICTURE = {"decoder.conv_in.weight": [512, 16, 3, 3]}


@pytest.fixture
def tree(tmp_path):
    found = Tree(tmp_path / "models")
    found.gguf("dit/z-image-turbo-Q4_0.gguf", "lumina2", {"cap_embedder.1.weight": [2560, 8]})
    found.chat("alice/Same-3B/Same-3B-Q8_0.gguf", "llama")
    found.chat("bob/Same-3B/Same-3B-Q8_0.gguf", "llama")
    return found


@pytest.fixture
def planned(host, tree, scan):
    register_root(host=host, path=str(tree.base), actor=Actor())
    assert scan().state == "succeeded"
    return host


def found(kind):
    return {item.path.rpartition("/models/")[2]: item for item in Finding.objects.filter(kind=kind)}


def test_a_missing_component_names_its_role_and_what_would_do(planned):
    (item,) = found("component-missing").values()
    assert item.text == "no VAE; no text encoder (2,560 wide, or stacked to that width, of architecture qwen3)"
    assert item.level == "warning"
    assert item.row == Row.objects.get(file_name="z-image-turbo-Q4_0.gguf")


def test_what_is_found_later_settles_it_and_the_rest_keeps_its_time(planned, tree, scan):
    before = found("component-missing")["dit/z-image-turbo-Q4_0.gguf"]
    tree.safetensors("parts/ae.safetensors", PICTURE)
    scan()
    after = found("component-missing")["dit/z-image-turbo-Q4_0.gguf"]
    assert (after.pk, after.since) == (before.pk, before.since)
    assert "VAE" not in after.text
    tree.chat("parts/Qwen3-4B-Q8_0.gguf", "qwen3", width=2560)
    scan()
    assert not found("component-missing")


def test_equal_candidates_are_named(planned, tree, scan):
    for name in "cab":
        tree.safetensors(f"parts/{name}.safetensors", PICTURE)
    scan()
    (item,) = found("component-ambiguous").values()
    assert item.text == "VAE: a.safetensors is used, by path alone; as good: b.safetensors, c.safetensors"
    assert item.level == "info"


def test_a_pin_whose_file_is_gone(planned, tree):
    path = str(tree.base / "gone.safetensors")
    HostSetting.objects.create(host=planned, section="encoders", values={"fluxVae": path})
    note_findings(type(planned).objects.get(pk=planned.pk))
    assert "fluxVae" in found("pin-gone")["gone.safetensors"].text
    HostSetting.objects.all().delete()
    note_findings(type(planned).objects.get(pk=planned.pk))
    assert not found("pin-gone")


def test_a_pin_in_a_folder_that_cannot_be_read_is_not_gone(planned, tree):
    planned.roots.update(state="missing")
    HostSetting.objects.create(host=planned, section="encoders", values={"fluxVae": str(tree.base / "x.safetensors")})
    note_findings(type(planned).objects.get(pk=planned.pk))
    assert not found("pin-gone")


def test_two_files_with_one_id(planned):
    (item,) = found("duplicate-id").values()
    assert item.path.endswith("bob/Same-3B/Same-3B-Q8_0.gguf")
    assert "served as same-3b-q8_0-bob, because same-3b-q8_0 is " in item.text
    assert item.text.endswith("alice/Same-3B/Same-3B-Q8_0.gguf")


def test_another_scan_keeps_them(planned, scan):
    before = dict(Finding.objects.values_list("pk", "since"))
    scan()
    assert dict(Finding.objects.values_list("pk", "since")) == before


def test_models_that_the_file_of_this_router_leaves_out(planned, tree, scan, actor, django_capture_on_commit_callbacks):
    """An audio.cpp model needs a second file beside the config, so a target mends it without another scan."""
    tree.gguf("echo-tts-Q8_0.gguf", "audiocpp", audiocpp__model_spec__family="echo_tts")
    assert scan().state == "succeeded"
    assert "name the path of the config file" in found("left-out")["echo-tts-Q8_0.gguf"].text
    with django_capture_on_commit_callbacks(execute=True):
        save_target(host=planned, path="/srv/router/config.yaml", actor=actor)
    assert '--config "/srv/router/audiocpp/echo-tts' in planned.revisions.latest("number").text
    assert not found("left-out")

    with django_capture_on_commit_callbacks(execute=True):
        save_target(host=Host.objects.get(), dialect="llama-server", path="/srv/router/models.ini", actor=actor)
    others = found("left-out")
    assert sorted(others) == ["dit/z-image-turbo-Q4_0.gguf", "echo-tts-Q8_0.gguf"]
    assert {(item.level, item.row.path) for item in others.values()} == {
        ("info", item.path) for item in others.values()
    }


def test_an_incomplete_package_is_said_once(planned, tree, scan):
    tree.gguf("alone/yue2-7b-Q8_0.gguf", "audiocpp", audiocpp__model_spec__family="yue2")
    scan()
    assert [item.kind for item in Finding.objects.filter(path__endswith="yue2-7b-Q8_0.gguf")] == ["package-incomplete"]
