"""Sections of a host's settings that planning reads as they are."""

from __future__ import annotations

import pytest

from gpus_app.models import HostSetting
from gpus_app.selectors import get_host
from models_app import convert
from models_app.core.fields import SETTINGS_FIELDS
from models_app.core.imports.settings_source import section_of_key
from models_app.fleet_sections import FLEET_SECTIONS, cleaned, section_of
from models_app.services.sections import save_fleet_section
from quartermaster_site.access.audit import Actor
from quartermaster_site.access.models import AuditEntry
from quartermaster_site.errors import EditConflict, NotAllowed, Refused
from quartermaster_site.jobs.models import Job

ELSEWHERE = {"memory", "gpu", "folders", "backends", "variants", "keys", "app"}
"""Groups of the catalogue that have a page of their own, or are not of a host."""


def test_every_setting_has_a_place():
    left = [field.key for field in SETTINGS_FIELDS if field.group not in ELSEWHERE and not section_of(field.key)]
    assert left == ["encoders", "extraModels"]


def test_an_import_puts_every_setting_where_it_is_read():
    places = {key: name for name, section in FLEET_SECTIONS.items() for key in section.keys}
    assert {key: section_of_key(key) for key in places} == places


@pytest.mark.parametrize(
    ("section", "values", "stored"),
    [
        ("guards", {"minGpuFraction": -1, "oomGuardEvict": True}, {"minGpuFraction": 0.0}),
        ("kv", {"kvQuant": "Q8_0", "slotCache": {"enable": True, "maxSessions": 20}}, None),
        ("advanced", {"denseCtxLadder": [131072, 65536, 32768], "threads": 7, "visionCtx": 4096}, {"visionCtx": 4096}),
        ("names", {"displayNames": {" a ": " A ", "b": " "}}, {"displayNames": {"a": "A"}}),
        ("enhancers", {"promptEnhancers": [{"model": " m ", "systemPrompt": " x\n"}, {"name": "half"}]}, None),
        ("declared", {"extraImageModels": []}, {}),
    ],
)
def test_what_is_stored_is_set_and_no_default(section, values, stored):
    if section == "kv":
        stored = {"kvQuant": "q8_0", "slotCache": {"enable": True}}
    if section == "enhancers":
        stored = {"promptEnhancers": [{"model": "m", "systemPrompt": " x\n"}]}
    assert cleaned(section, values) == stored
    assert cleaned(section, stored) == stored


@pytest.mark.parametrize(
    ("section", "values", "key"),
    [
        ("guards", {"minGpuFraction": 2}, "minGpuFraction"),
        ("guards", {"threads": 2}, "threads"),
        ("kv", {"kvQuant": "q9"}, "kvQuant"),
        ("kv", {"slotCache": {"maxSessions": -1}}, "slotCache"),
        ("advanced", {"threads": "many"}, "threads"),
        ("advanced", {"denseCtxLadder": [0]}, "denseCtxLadder"),
        ("groups", {"groups": [{"name": " "}]}, "groups"),
        ("groups", {"groups": [{"name": "a", "listen": "nowhere"}]}, "groups"),
        ("groups", {"groups": [{"name": "a"}] * 1001}, "groups"),
        (
            "declared",
            {"extraImageModels": [{"name": "a", "modelPath": "/a", "modelFlag": "--run"}]},
            "extraImageModels",
        ),
    ],
)
def test_what_cannot_be_used_is_refused_by_key(section, values, key):
    with pytest.raises(Refused) as refusal:
        cleaned(section, values)
    assert list(refusal.value.fields) == [key]


def test_planning_takes_what_is_saved(host, actor, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        row = save_fleet_section(host=host, section="advanced", values={"threads": 3}, version=0, actor=actor)
    assert (row.version, convert.core_settings(get_host(host.slug)).threads) == (1, 3)
    assert AuditEntry.objects.get(action="settings.advanced").changes == {"threads": [None, 3]}
    assert Job.objects.filter(kind="plan_host").count() == 1
    save_fleet_section(host=host, section="advanced", values={"threads": 3}, version=0, actor=actor)
    with pytest.raises(EditConflict):
        save_fleet_section(host=host, section="advanced", values={}, version=0, actor=actor)
    assert HostSetting.objects.get(section="advanced").version == 1


def test_who_may_save_what(host, make_user):
    editor = Actor(user=make_user("editor"), name="editor")
    save_fleet_section(host=host, section="sampling", values={"dryDefault": True}, version=0, actor=editor)
    for section in [name for name, item in FLEET_SECTIONS.items() if item.level.name == "MANAGE"]:
        with pytest.raises(NotAllowed):
            save_fleet_section(host=host, section=section, values={}, version=0, actor=editor)
    viewer = Actor(user=make_user("viewer"), name="viewer")
    with pytest.raises(NotAllowed):
        save_fleet_section(host=host, section="sampling", values={}, version=1, actor=viewer)
