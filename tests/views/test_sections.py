"""Sections of a host's settings: forms from the catalogue, what would change, two people, the way to the defaults."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from django.test import Client

from gpus_app.models import Host, HostSetting
from models_app import convert
from models_app.core.launch.tokens import split_command
from models_app.models import Revision
from models_app.section_form import FORM_SECTIONS, default_values, flat_values, nested_values, section_fields
from quartermaster_site.access.models import AuditEntry
from tests.views.conftest import run


@pytest.fixture
def editor(as_role: Callable[[str], Client]) -> Client:
    return as_role("editor")


@pytest.fixture
def post(editor: Client, scanned: Host, django_capture_on_commit_callbacks: Any) -> Callable[..., Any]:
    """`post("kv", kvQuant="q8_0")` applies a section of the host, as an editor, with what that queues."""

    def send(name: str, client: Client = editor, **data: str) -> Any:
        address = f"/hosts/{scanned.slug}/settings/{name}/"
        return run(django_capture_on_commit_callbacks, lambda: client.post(address, data))

    return send


def _text(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html))


def _stored(name: str) -> Any:
    return HostSetting.objects.get(section=name).values


def test_what_is_applied_is_planned_with(post: Any) -> None:
    assert post("kv", version="0", kvQuant="q8_0").status_code == 302
    assert _stored("kv") == {"kvQuant": "q8_0"}
    revision = Revision.objects.order_by("-number").first()
    assert revision is not None
    commands = [split_command(entry["cmd"]) for entry in yaml.safe_load(revision.text)["models"].values()]
    types = {words[words.index("-ctk") + 1] for words in commands if "-ctk" in words}
    assert types == {"q8_0"}
    assert AuditEntry.objects.get(action="settings.kv").changes == {"kvQuant": [None, "q8_0"]}


def test_defaults_and_untouched_forms_store_nothing(editor: Client, post: Any) -> None:
    assert post("advanced", version="0", threads="7", computeBufFactor="1", denseMinCtx="32k").status_code == 302
    assert not HostSetting.objects.filter(section="advanced").exists()
    post("advanced", version="0", threads="3")
    entries = AuditEntry.objects.count()
    assert post("advanced", version="1", threads="3").status_code == 302
    assert AuditEntry.objects.count() == entries
    html = editor.get("/hosts/local/settings/advanced/").content.decode()
    assert "set here · editor; default: 7" in html
    HostSetting.objects.filter(section="advanced").update(values={"threads": 3, "loraDir": "/loras"})
    assert post("advanced", version="1", threads="").status_code == 302
    assert _stored("advanced") == {"loraDir": "/loras"}, "what has a page of its own stays"


def test_off_is_a_value_and_a_hand_set_part_survives(as_role: Any, post: Any, scanned: Host) -> None:
    HostSetting.objects.create(
        host=scanned, section="kv", values={"slotCache": {"recurrentSeeds": True, "enable": True}}, version=1
    )
    form = {"version": "1", "slotCache-enable": "on", "slotCache-preambleCaches": "off", "slotCache-maxDiskGB": "2"}
    assert post("kv", **form).status_code == 302
    slot_cache = convert.core_settings(Host.objects.get(slug="local")).slot_cache
    assert (slot_cache.enable, slot_cache.preamble_caches, slot_cache.recurrent_seeds) == (True, False, True)
    assert slot_cache.max_disk_gb == 2.0
    admin = as_role("admin")
    assert post("guards", client=admin, version="0", multiResident="off", minGpuFraction="0").status_code == 302
    settings = convert.core_settings(Host.objects.get(slug="local"))
    assert (settings.multi_resident, settings.min_gpu_fraction) == (False, 0.0)


def test_what_would_change_stores_nothing(post: Any) -> None:
    answer = post("kv", version="0", kvQuant="q4_0", intent="impact")
    assert answer.status_code == 200
    assert re.search(r"[1-9] of 4 plans would change", _text(answer.content.decode()))
    assert not HostSetting.objects.filter(section="kv").exists()


def test_restoring_defaults_empties_the_form_first(post: Any) -> None:
    post("advanced", version="0", threads="3", visionCtx="4k")
    answer = post("advanced", version="1", threads="3", visionCtx="4096", **{"reset-group": "advanced"})
    assert "2 settings not applied" in _text(answer.content.decode())
    assert _stored("advanced") == {"threads": 3, "visionCtx": 4096}


def test_memory_and_devices_go_back_to_their_defaults(editor: Client, post: Any) -> None:
    post("gpu", version="0", minGpuVramGB="5", sharedMemory="off")
    assert _stored("gpu")["multiGpu"] is False, "an unticked box"
    for name in ("memory", "gpu"):
        before = _stored(name)
        html = editor.get(f"/hosts/local/settings/{name}/?defaults=1").content.decode()
        assert "Nothing is applied yet" in html
        assert _stored(name) == before
        fields = dict(re.findall(r'<input type="text" name="(\w+)"[^>]*value="([^"]+)"', html))
        version = re.findall(r'name="version" value="(\d+)"', html)[0]
        ticked = dict.fromkeys(re.findall(r'<input type="checkbox" name="(\w+)"[^>]*checked', html), "on")
        assert fields == {}
        assert post(name, version=version, **ticked).status_code == 302
        assert _stored(name) in ({}, {"multiGpu": True}), name


def test_two_people_see_three_columns(as_role: Any, post: Any) -> None:
    post("advanced", version="0", threads="3")
    post("advanced", version="1", threads="4")
    answer = post("advanced", client=as_role("admin"), version="1", threads="5", **{"was-threads": "3"})
    assert answer.status_code == 409
    assert re.search(r"Threads 5 4 3", _text(answer.content.decode()))
    assert _stored("advanced") == {"threads": 4}


@pytest.mark.parametrize("typed", ["'", "1e309", "NaN", "10" * 30, "-7", "1,000,0", "٣٣", "9" * 3000])
def test_rubbish_is_answered_with_a_message(post: Any, typed: str) -> None:
    for name, key in (("advanced", "visionCtx"), ("advanced", "denseCtxLadder"), ("kv", "slotCache-maxSessions")):
        answer = post(name, version="0", **{key: typed})
        assert answer.status_code == 422, (name, key)
        assert "q-err" in answer.content.decode()


def test_who_may_change_what(as_role: Any, post: Any, editor: Client) -> None:
    assert post("guards", version="0", oomGuardGraceSec="60").status_code == 403
    assert "needs the role admin" in editor.get("/hosts/local/settings/guards/").content.decode()
    assert post("kv", client=as_role("operator"), version="0", kvQuant="q8_0").status_code == 403
    assert as_role("viewer").get("/hosts/local/settings/kv/").status_code == 200


@pytest.mark.parametrize("section", FORM_SECTIONS)
def test_forms_give_back_what_is_stored(section: str) -> None:
    stored = default_values(section)
    nested = nested_values(section, stored, {})
    assert flat_values(section, nested) == {
        key: list(value) if isinstance(value, tuple) else value
        for key, value in stored.items()
        if next(field for field in section_fields(section) if field.key == key).is_set(value)
    }
