"""Where hosts have their spawn guard, and what files and imports make of it."""

from __future__ import annotations

import pytest
from django.urls import reverse

from gpus_app.models import Host, HostSetting, OsFamily
from gpus_app.selectors import get_host
from gpus_app.services import request_plan
from models_app import host_tasks
from models_app.core.export.revisions.compare import compare
from models_app.core.imports.report import Status
from models_app.models import Override, Revision, Row, SpawnGuard
from models_app.pages.difference import _field_line
from models_app.pages.section_page import router_note
from models_app.services.import_applying import items_of_batch
from models_app.services.sections import save_fleet_section
from models_app.services.spawn_guards import note_place
from quartermaster_site.access.audit import Actor
from quartermaster_site.jobs import untrusted
from tests.core.test_spawn_export import outline
from tests.models.import_cases import models, written

PLACE = {"program": "/opt/q/bin/quartermaster-spawn", "header_cache": "/data/worker/headers.sqlite3"}


@pytest.fixture
def host(host):
    """A host with something to guard."""
    HostSetting.objects.create(host=host, section="memory", values={"targetVramGB": 8}, version=1)
    return host


@pytest.fixture
def guarded(monkeypatch, scanned, host, actor, scan, django_capture_on_commit_callbacks):
    """A scanned host with the guard, switched on for all models."""
    monkeypatch.setattr(host_tasks, "guard_place", lambda: PLACE)
    scan()
    with django_capture_on_commit_callbacks(execute=True):
        save_fleet_section(host=host, section="guards", values={"spawnGuard": True}, version=0, actor=actor)
    return host


def commands(host, dialect="llama-swap"):
    return {name: model["cmd"] for name, model in written(host, dialect)["models"].items()}


def test_a_scan_says_where_it_is_and_the_file_uses_it(guarded):
    for words in commands(guarded).values():
        assert words[0] == PLACE["program"]
        assert words[1 + words.index("--header-cache")] == PLACE["header_cache"]
        assert "llama-server" in words[1 + words.index("--")]


def test_one_model_may_go_without(guarded, folder, actor, django_capture_on_commit_callbacks):
    path = str(folder / "beta-2b-Q4_0.gguf")
    Override.objects.create(host=guarded, match=path, fields={"spawnGuard": "off"})
    with django_capture_on_commit_callbacks(execute=True):
        request_plan(host=get_host(guarded.slug), actor=Actor())
    with_guard = {name: words[0] == PLACE["program"] for name, words in commands(guarded).items()}
    assert sum(with_guard.values()) == len(with_guard) - 1
    assert not with_guard[next(name for name in with_guard if name.startswith("beta"))]


def test_a_place_that_moved_is_planned_for(guarded, monkeypatch, scan):
    elsewhere = {**PLACE, "program": "/srv/q/bin/quartermaster-spawn"}
    monkeypatch.setattr(host_tasks, "guard_place", lambda: elsewhere)
    scan()
    assert {words[0] for words in commands(guarded).values()} == {elsewhere["program"]}


def test_our_own_file_with_guards_changes_nothing(guarded, bring_in):
    revision = Revision.objects.order_by("-number").first()
    batch = bring_in(revision.text)
    assert {found["way"] for found in models(batch).values()} == {"same"}
    assert [item for item in items_of_batch(batch) if item.status not in (Status.SAME, Status.LOST)] == []


def test_a_file_without_guards_switches_them_off_for_its_models(guarded, host, folder, bring_in, take_over):
    path = folder / "beta-2b-Q4_0.gguf"
    command = f"llama-server -m {path} --port ${{PORT}} -ngl 99 -c 4096"
    batch = take_over(bring_in({"models": {"beta": {"cmd": command}}}))
    assert batch.state == "applied", batch.problem
    assert Override.objects.get(match=str(path)).fields["spawnGuard"] == "off"
    assert commands(host)["beta"][0] == "llama-server"


def test_a_file_with_a_guard_brings_it_along(scanned, host, folder, bring_in, take_over):
    SpawnGuard.objects.update_or_create(host=host, defaults=PLACE)
    path = folder / "beta-2b-Q4_0.gguf"
    command = f"/x/quartermaster-spawn --target-gb 9 -- llama-server -m {path} --port ${{PORT}} -ngl 99 -c 4096"
    batch = take_over(bring_in({"models": {"beta": {"cmd": command}}}))
    assert batch.state == "applied", batch.problem
    assert Override.objects.get(match=str(path)).fields["spawnGuard"] == "on"
    words = commands(host)["beta"]
    assert words[0] == PLACE["program"]
    assert words[words.index("--") + 1 :][-4:] == ["-ngl", "99", "-c", "4096"]


def test_the_worker_names_its_script_and_its_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("QM_DATA_DIR", str(tmp_path))
    script = tmp_path / "quartermaster-spawn"
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    assert host_tasks.guard_place()["program"] == ""
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    assert host_tasks.guard_place() == {
        "program": str(script),
        "header_cache": str(tmp_path / "worker" / "headers.sqlite3"),
    }


def test_what_a_host_says_is_not_believed_blindly(host):
    assert not note_place(host=host, value=None)  # of a host of an older version
    assert note_place(host=host, value=PLACE)
    assert not note_place(host=host, value=PLACE)
    for odd in ("relative/quartermaster-spawn", "/a\nb", "/a${env.X}", ""):
        note_place(host=host, value={**PLACE, "program": odd})
        assert SpawnGuard.objects.get(host=host).program == ""
    for value in ("text", {"program": "/" * 2000}):
        with pytest.raises(untrusted.ReportRefused):
            note_place(host=host, value=value)
    Host.objects.filter(pk=host.pk).update(os_family=OsFamily.WINDOWS)
    host.refresh_from_db()
    note_place(host=host, value={"program": "C:\\q\\quartermaster-spawn"})
    assert SpawnGuard.objects.get(host=host).program == ""


@pytest.mark.parametrize(("dialect", "shown"), [("llama-swap", True), ("quartermaster", False)])
def test_the_page_of_a_model_says_that_it_may_start_otherwise(guarded, actor, client, dialect, shown):
    Host.objects.filter(pk=guarded.pk).update(publish_dialect=dialect)
    client.force_login(actor.user)
    row = Row.objects.first()
    assert row.served_id
    for address in ("models:model-show", "models:model-edit"):
        text = client.get(reverse(address, args=[row.pk])).content.decode()
        assert ("Started through the spawn guard" in text) == shown


def test_a_comparison_calls_it_by_its_name():
    (model,) = compare(outline(None), outline()).models
    (line,) = [_field_line(field, "llama-swap") for field in model.fields]
    assert (line.label, line.name, line.before) == ("Spawn guard", "quartermaster-spawn", None)
    assert "--target-gb 11.5 --min-gpu-fraction 0.5" in line.after


def test_the_settings_say_where_a_host_has_it(host):
    host.publish_dialect = "llama-swap"
    assert "not known yet: its next scan says so" in router_note(host, "guards")
    note_place(host=host, value=PLACE)
    host = Host.objects.get(pk=host.pk)
    assert f"This host has it at {PLACE['program']}." in router_note(host, "guards")
    assert PLACE["program"] not in router_note(host, "kv")
    host.os_family = OsFamily.WINDOWS
    assert "On Windows there is none" in router_note(host, "guards")
    host.publish_dialect = "quartermaster"
    assert router_note(host, "guards") == ""
