"""The registry of a host's executables: who may change it, what a change does to plans and to the exported file."""

from __future__ import annotations

import pytest

from gpus_app.models import Backend
from gpus_app.selectors import get_host
from models_app import convert
from models_app.models import Override, Root, Row
from models_app.selectors.backends import host_backends
from models_app.services.backends import BackendValues, add_backend, remove_backend, save_backend, star_backend
from quartermaster_site.access.audit import Actor
from quartermaster_site.access.models import AuditEntry
from quartermaster_site.errors import EditConflict, NotAllowed, Refused


@pytest.fixture(autouse=True)
def _nothing_is_sent(monkeypatch):
    monkeypatch.setattr("quartermaster_site.jobs.dispatch.send", lambda *args, **kwargs: None)


@pytest.fixture
def add(host, actor):
    def backend(kind, path, **more):
        slug = more.pop("slug", "")
        return add_backend(host=host, values=BackendValues(kind, path, **more), slug=slug, actor=actor)

    return backend


@pytest.fixture
def model(host):
    root = Root.objects.create(host=host, path="/models", state="ok")

    def row(name, model_class="llm", **more):
        path = f"/models/{name}.gguf"
        return Row.objects.create(
            host=host, root=root, path=path, served_id=name, file_name=f"{name}.gguf", model_class=model_class, **more
        )

    return row


def settings(host):
    return convert.core_settings(get_host(host.slug))


def test_a_backend_is_stored_under_the_canonical_kind_and_an_id_of_its_own(add, host):
    first, second = add("llama.cpp", "/opt/a/llama-server"), add("Server", "/opt/b/llama-server")
    assert [(row.kind, row.slug) for row in (first, second)] == [("llama", "llama"), ("llama", "llama-2")]
    assert add("llama", "/opt/a/llama-server") == first, "twice the same is once"
    assert AuditEntry.objects.filter(action="backend.add").count() == 2


def test_ids_are_unique_on_a_host(add):
    add("llama", "/opt/a/llama-server", slug="mine")
    with pytest.raises(Refused) as refused:
        add("llama", "/opt/b/llama-server", slug="mine")
    assert "taken" in refused.value.fields["slug"]


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("kind", {"kind": "espresso"}),
        ("path", {"path": "llama-server"}),
        ("path", {"path": "/opt/folder/"}),
        ("path", {"path": "/opt/a\nb"}),
        ("path", {"path": "/" + "x" * 1024}),
        ("name", {"name": "x" * 101}),
        ("variant", {"variant": "cuda; rm"}),
    ],
)
def test_a_bad_value_is_refused_by_field(add, field, values):
    with pytest.raises(Refused) as refused:
        add(**{"kind": "llama", "path": "/opt/a/llama-server", **values})
    assert list(refused.value.fields) == [field]
    assert not Backend.objects.exists()


@pytest.mark.parametrize("role", ["viewer", "operator", "editor"])
def test_only_administrators_change_it(host, add, make_user, role):
    row = add("llama", "/opt/a/llama-server")
    person = Actor(user=make_user(role), name=role)
    values = BackendValues("llama", "/opt/b/llama-server")
    for change in (
        lambda: add_backend(host=host, values=values, actor=person),
        lambda: save_backend(backend=row, values=values, edition=1, actor=person),
        lambda: star_backend(backend=row, starred=True, actor=person),
        lambda: remove_backend(backend=row, actor=person),
    ):
        with pytest.raises(NotAllowed):
            change()


def test_plans_take_the_first_of_a_class_and_a_star_before_it(add, host, actor):
    add("llama", "/opt/a/llama-server")
    second = add("llama", "/opt/b/llama-server", variant="vulkan")
    assert settings(host).server_exe == "/opt/a/llama-server"
    assert settings(host).sd_server_exe == "/opt/a/sd-server", "the others stand beside it"
    star_backend(backend=second, starred=True, actor=actor)
    found = settings(host)
    assert found.server_exe == "/opt/b/llama-server"
    assert [(entry.id, entry.default, entry.variant) for entry in found.backends] == [
        ("llama", False, ""),
        ("llama-2", True, "vulkan"),
    ]


def test_a_star_is_taken_from_every_row_that_shares_a_class(add, actor):
    speech, recognition, audio = (
        add("tts", "/opt/tts-server"),
        add("asr", "/opt/parakeet-server"),
        add("audiocpp", "/opt/audiocpp_server"),
    )
    other = add("llama", "/opt/llama-server")
    for row in (speech, recognition, other):
        star_backend(backend=row, starred=True, actor=actor)
    star_backend(backend=audio, starred=True, actor=actor)
    assert set(Backend.objects.filter(starred=True).values_list("slug", flat=True)) == {"audiocpp", "llama"}


def test_of_two_who_edit_the_second_sees_what_is_stored(add, actor):
    row = add("llama", "/opt/a/llama-server")
    save_backend(backend=row, values=BackendValues("llama", "/opt/b/llama-server"), edition=1, actor=actor)
    with pytest.raises(EditConflict) as conflict:
        save_backend(backend=row, values=BackendValues("llama", "/opt/c/llama-server"), edition=1, actor=actor)
    assert conflict.value.saved["path"] == "/opt/b/llama-server"
    assert conflict.value.version == 2
    same = save_backend(backend=row, values=BackendValues("llama", "/opt/b/llama-server"), edition=1, actor=actor)
    assert same.edition == 2, "what is stored already changes nothing"


def test_another_path_forgets_what_the_old_file_said(add, actor):
    row = add("llama", "/opt/a/llama-server")
    Backend.objects.update(probe={"flags": ["-m"]}, banner_sha256="a" * 64, version="b1")
    saved = save_backend(backend=row, values=BackendValues("llama", "/opt/b/llama-server"), edition=1, actor=actor)
    assert (saved.probe, saved.banner_sha256, saved.version, saved.probed_at) == ({}, "", "", None)


def test_models_of_a_backend_and_what_runs_them_without_it(add, model, host):
    a, b = add("llama", "/opt/a/llama-server"), add("llama", "/opt/b/llama-server")
    kokoro = add("ttscpp", "/opt/tts.cpp/tts-server")
    for name in ("one", "two"):
        model(name)
    model("kokoro-82m", "tts", architecture="kokoro")
    model("embed", "embedding")
    Override.objects.create(host=host, match="/models/two.gguf", fields={"backend": b.slug}, version=1)
    found = host_backends(get_host(host.slug))
    assert [item.served_id for item in found.models_of(a)] == ["embed", "one"]
    assert [item.served_id for item in found.models_of(b)] == ["two"]
    assert [item.served_id for item in found.models_of(kokoro)] == ["kokoro-82m"]
    assert [(item.served_id, program.path) for item, program in found.without(b)] == [("two", "/opt/a/llama-server")]
    assert {program.path for _, program in found.without(a)} == {"/opt/b/llama-server"}


def test_a_pattern_pins_every_file_that_it_covers(add, model, host):
    add("llama", "/opt/a/llama-server")
    b = add("llama", "/opt/b/llama-server")
    model("one"), model("two")
    Override.objects.create(host=host, match="/models/*", fields={"backend": b.slug}, version=1)
    assert len(host_backends(get_host(host.slug)).models_of(b)) == 2


def test_removing_one_asks_for_new_plans_and_is_remembered(add, actor, host):
    row = add("llama", "/opt/a/llama-server")
    remove_backend(backend=row, actor=actor)
    assert not Backend.objects.exists()
    assert settings(host).server_exe == "llama-server"
    entry = AuditEntry.objects.get(action="backend.remove")
    assert entry.changes["path"] == ["/opt/a/llama-server", None]
    remove_backend(backend=row, actor=actor)
