"""The memory section: checked, versioned, and stored as deltas only."""

from __future__ import annotations

import pytest

from gpus_app import selectors
from gpus_app.models import Device, HostSetting
from gpus_app.services import save_memory_settings
from quartermaster_site.access.audit import Actor
from quartermaster_site.access.models import AuditEntry
from quartermaster_site.errors import EditConflict, NotAllowed, Refused
from quartermaster_site.jobs.models import Job

GIB = 1 << 30


@pytest.fixture(autouse=True)
def _no_planning(monkeypatch):
    monkeypatch.setattr("quartermaster_site.jobs.dispatch.send", lambda *args, **kwargs: None)


@pytest.fixture
def save(host, actor):
    def run(version=0, **values):
        return save_memory_settings(host=host, values=values, version=version, actor=actor)

    return run


def fresh(host):
    return selectors.get_host(host.slug)


def test_saves_what_was_set_and_asks_for_a_plan(save, host):
    row = save(targetVramGB=22, ttlSec=60)
    assert row.values == {"targetVramGB": 22.0, "ttlSec": 60}
    assert row.version == 1
    assert Job.objects.get().kind == "plan_host"
    entry = AuditEntry.objects.get(action="settings.memory")
    assert entry.changes == {"targetVramGB": [None, 22.0], "ttlSec": [None, 60]}


def test_saving_the_same_again_changes_nothing(save):
    save(targetVramGB=22)
    Job.objects.all().delete()
    assert save(version=1, targetVramGB=22).version == 1
    assert not Job.objects.exists()
    assert AuditEntry.objects.filter(action="settings.memory").count() == 1


def test_the_same_form_sent_twice_is_no_conflict(save):
    save(version=0, targetVramGB=22)
    assert save(version=0, targetVramGB=22).version == 1


def test_a_default_is_stored_as_absent(save):
    assert save(vramOverheadGB=0.5, ttlSec=600, autoVram=False).values == {}


def test_zero_is_a_value_where_it_means_something(save):
    assert save(vramOverheadGB=0, ttlSec=0).values == {"vramOverheadGB": 0.0, "ttlSec": 0}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("targetVramGB", 0),
        ("targetVramGB", -1),
        ("targetVramGB", float("nan")),
        ("targetVramGB", float("inf")),
        ("targetVramGB", 1e30),
        ("targetVramGB", "22"),
        ("targetVramGB", True),
        ("maxRamGB", 0),
        ("vramOverheadGB", -0.1),
        ("ttlSec", 1.5),
        ("ttlSec", -1),
        ("nonsense", 1),
    ],
)
def test_other_values_are_refused_by_field(save, key, value):
    with pytest.raises(Refused) as refused:
        save(**{key: value})
    assert list(refused.value.fields) == [key]
    assert not HostSetting.objects.exists()


def test_somebody_else_saved_meanwhile(save, host, make_user):
    save(targetVramGB=22)
    other = Actor(user=make_user("editor"), name="editor")
    with pytest.raises(EditConflict) as conflict:
        save_memory_settings(host=host, values={"targetVramGB": 10}, version=0, actor=other)
    assert conflict.value.saved == {"targetVramGB": 22.0}
    assert (conflict.value.version, conflict.value.by) == (1, "admin")
    assert HostSetting.objects.get().values == {"targetVramGB": 22.0}


@pytest.mark.parametrize(("role", "allowed"), [("viewer", False), ("operator", False), ("editor", True)])
def test_who_may_save(host, make_user, role, allowed):
    actor = Actor(user=make_user(role), name=role)
    if allowed:
        save_memory_settings(host=host, values={"ttlSec": 1}, version=0, actor=actor)
    else:
        with pytest.raises(NotAllowed, match="the role editor"):
            save_memory_settings(host=host, values={"ttlSec": 1}, version=0, actor=actor)


def test_without_a_broker_it_saves_all_the_same(save, monkeypatch):
    monkeypatch.setattr("quartermaster_site.jobs.connection.broker_problem", lambda: "gone")
    assert save(targetVramGB=22).version == 1
    job = Job.objects.get()
    assert (job.kind, job.state) == ("plan_host", "queued"), "it is planned as soon as there is a broker"


def test_the_budget_of_two_cards(save, host):
    for index, free in ((0, 20), (1, 10)):
        Device.objects.create(host=host, index=index, name=f"Card {index}", total_bytes=24 * GIB, free_bytes=free * GIB)
    assert selectors.host_budget(fresh(host)).target_bytes == 30 * GIB
    save(targetVramGB=24, maxRamGB=64)
    budget = selectors.host_budget(fresh(host))
    assert len(budget.device_bytes) == 2
    assert budget.target_bytes == pytest.approx(24 * GIB, abs=4)
    assert budget.ram_bytes == 64 * GIB


def test_without_a_gpu_plans_are_for_ram(host):
    assert selectors.host_budget(fresh(host)).device_bytes == ()


def test_without_a_gpu_a_budget_can_be_set_by_hand(save, host):
    save(targetVramGB=22)
    assert selectors.host_budget(fresh(host)).device_bytes == (22 * GIB,)


def test_above_what_is_there_warns_and_keeps_the_value(save, host):
    Device.objects.create(host=host, index=0, name="Card", total_bytes=24 * GIB, free_bytes=24 * GIB)
    host.ram_total_bytes = 32 * GIB
    host.save()
    save(targetVramGB=48, maxRamGB=64)
    settings = selectors.memory_settings(fresh(host))
    assert settings.target_vram_gib == 48
    assert set(settings.warnings) == {"targetVramGB", "maxRamGB"}


@pytest.mark.parametrize(("target", "warned"), [(23.92, False), (23.94, False), (23.98, True)])
def test_what_is_rounded_for_the_page_warns_of_nothing(save, host, target, warned):
    Device.objects.create(host=host, index=0, name="Card", total_bytes=int(23.94 * GIB), free_bytes=20 * GIB)
    save(targetVramGB=target)
    assert bool(selectors.memory_settings(fresh(host)).warnings) == warned


def test_auto_vram_only_lowers_the_target(save, host):
    Device.objects.create(host=host, index=0, name="Card", total_bytes=24 * GIB, free_mark_bytes=10 * GIB)
    save(targetVramGB=22, autoVram=True)
    assert selectors.target_vram_gib(fresh(host)) == 10
