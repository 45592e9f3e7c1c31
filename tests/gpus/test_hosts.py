"""Hosts: heartbeats, what a probe reports, the target of their file."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from gpus_app.models import Device, Host
from gpus_app.services import note_heartbeat, register_host, save_target, start_probe
from gpus_app.tasks import host_heartbeat
from quartermaster_site.access.audit import Actor
from quartermaster_site.errors import EditConflict, NotAllowed, Refused
from quartermaster_site.jobs.models import Job, State
from quartermaster_site.jobs.receiving import receive

GIB = 1 << 30


@pytest.fixture(autouse=True)
def sent(monkeypatch):
    calls = []
    monkeypatch.setattr("quartermaster_site.jobs.dispatch.send", lambda *args, **kwargs: calls.append(args))
    return calls


@pytest.mark.parametrize(("seconds", "state"), [(5, "online"), (31, "late"), (91, "offline"), (None, "never")])
def test_states_follow_the_last_contact(host, seconds, state):
    host.last_seen_at = None if seconds is None else timezone.now() - timedelta(seconds=seconds)
    assert host.state == state
    assert host.is_reachable == (state in ("online", "late"))


def test_a_heartbeat_is_noted_and_the_first_asks_for_devices(db):
    register_host(slug="gpu-a", name="GPU A")
    now = timezone.now().timestamp()
    note_heartbeat(slug="gpu-a", worker="box", version="0.1.0", sent_at=now - 7)
    host = Host.objects.get()
    assert host.state == "online"
    assert 6 < host.clock_skew_seconds < 9
    note_heartbeat(slug="gpu-a", worker="box", version="0.1.0", sent_at=now)
    note_heartbeat(slug="gpu-a", worker="box", version="0.1.0", sent_at=now - 20)
    assert -1 < Host.objects.get().clock_skew_seconds < 1, "a message that waited is no clock that is behind"
    assert Job.objects.filter(kind="probe_devices").count() == 1


def test_a_heartbeat_of_a_stranger_makes_no_host(db):
    note_heartbeat(slug="stranger", worker="x", version="", sent_at=0)
    assert not Host.objects.exists()


@pytest.mark.parametrize(
    "arguments",
    [
        {"slug": 5, "worker": "x", "version": "", "sent_at": 0},
        {"slug": "local", "worker": None, "version": "", "sent_at": 0},
        {"slug": "local", "worker": "x", "version": "", "sent_at": "now"},
        {"slug": "local", "worker": "x", "version": "", "sent_at": 1e300},
    ],
)
def test_a_heartbeat_is_not_believed_blindly(host, arguments):
    before = host.last_seen_at
    host_heartbeat(**arguments)
    host.refresh_from_db()
    assert host.last_seen_at == before


def finish_probe(host, **data):
    job = start_probe(host=host, actor=Actor()).job
    facts = {"os_family": "linux", "cpu_count": 16, "ram_total_bytes": 64 * GIB, "ram_available_bytes": 60 * GIB}
    receive({"job": job.pk, "token": job.token, "kind": "done", "data": {"batches": 0, "warnings": 0, **facts, **data}})
    job.refresh_from_db()
    return job


def card(index, gib, **more):
    return {"index": index, "name": f"Card {index}", "total_bytes": gib * GIB, "used_bytes": GIB, **more}


def test_a_probe_fills_the_host(host):
    job = finish_probe(host, devices=[card(0, 24), card(1, 2)])
    assert job.state == State.SUCCEEDED
    assert job.result["eligible"] == 1
    host.refresh_from_db()
    assert (host.cpu_count, host.ram_total_bytes) == (16, 64 * GIB)
    first, second = host.devices.all()
    assert (first.eligible, first.free_bytes) == (True, 23 * GIB)
    assert not second.eligible
    assert "less than 3 GiB" in second.eligible_reason


def test_a_device_that_is_gone_goes(host):
    finish_probe(host, devices=[card(0, 24), card(1, 24)])
    finish_probe(host, devices=[card(0, 24)])
    assert Device.objects.count() == 1


def test_a_driver_that_cannot_be_asked_takes_no_device_away(host):
    """A card that fell off the bus, or a driver that waits for a restart: what was known stays, and it is said."""
    finish_probe(host, devices=[card(0, 24), card(1, 24)])
    finish_probe(host, devices=[card(0, 24)], notes=["nvidia: GPU 1 does not answer"], failed=["nvidia"])
    host.refresh_from_db()
    assert Device.objects.count() == 2
    assert host.probe_note == "nvidia: GPU 1 does not answer"


def test_no_gpu_is_said_with_its_reason(host):
    finish_probe(host, devices=[], notes=["nvidia: no driver"])
    host.refresh_from_db()
    assert host.probe_note == "nvidia: no driver"


@pytest.mark.parametrize(
    "data",
    [
        {"devices": [card(0, 24)] * 65},
        {"devices": [{"index": 0, "name": "x", "total_bytes": -1}]},
        {"devices": "many"},
        {"cpu_count": 1 << 40},
    ],
)
def test_a_wrong_probe_changes_nothing(host, data):
    assert finish_probe(host, **data).state == State.FAILED
    assert not Device.objects.exists()


def test_a_target_is_kept(host, actor):
    save_target(host=host, path="/srv/config.yaml", dialect="quartermaster", actor=actor)
    host.refresh_from_db()
    assert (host.publish_path, host.publish_dialect) == ("/srv/config.yaml", "quartermaster")


def test_a_new_path_forgets_what_was_written_to_the_old(host, actor):
    host.publish_path, host.written_sha256 = "/srv/a.yaml", "0" * 64
    host.save()
    save_target(host=host, path="/srv/b.yaml", dialect="llama-swap", actor=actor)
    host.refresh_from_db()
    assert host.written_sha256 == ""


def test_of_two_who_set_the_target_the_second_is_asked(host, actor):
    """Both had an empty path before their eyes; an old copy of the host overwrites nothing else either."""
    stale = Host.objects.get(pk=host.pk)
    seen = {"publish_path": "", "publish_dialect": "llama-swap"}
    save_target(host=host, path="/srv/a.yaml", seen=seen, actor=actor)
    note_heartbeat(slug=host.slug, worker="w", version="1", sent_at=0)
    with pytest.raises(EditConflict, match=r"admin changed the target meanwhile. It is now /srv/a.yaml"):
        save_target(host=stale, path="/srv/b.yaml", seen=seen, actor=actor)
    save_target(host=stale, path="/srv/a.yaml", seen=seen, actor=actor)
    save_target(host=stale, dialect="quartermaster", seen={"publish_dialect": "llama-swap"}, actor=actor)
    host.refresh_from_db()
    assert (host.publish_path, host.publish_dialect, host.worker_id) == ("/srv/a.yaml", "quartermaster", "w")


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"path": "/srv/a\nb.yaml"}, "path"),
        ({"path": "/srv/\x00.yaml"}, "path"),
        ({"path": "config.yaml"}, "path"),
        ({"path": "/srv/"}, "path"),
        ({"path": "/srv/" + "x" * 1100}, "path"),
        ({"dialect": "nginx"}, "dialect"),
    ],
)
def test_a_wrong_target_is_refused_by_field(host, actor, fields, field):
    arguments = {"path": "/srv/config.yaml", "dialect": "llama-swap", **fields}
    with pytest.raises(Refused) as refused:
        save_target(host=host, actor=actor, **arguments)
    assert field in refused.value.fields


@pytest.mark.parametrize("role", ["viewer", "operator", "editor"])
def test_only_admins_change_the_target(host, make_user, role):
    actor = Actor(user=make_user(role), name=role)
    with pytest.raises(NotAllowed):
        save_target(host=host, path="/srv/c.yaml", dialect="llama-swap", actor=actor)
