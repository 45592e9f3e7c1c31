"""A host's router: who sets its address, what is believed of its answers, and what people have it do."""

from __future__ import annotations

import json
import time
from datetime import timedelta

import pytest
from django.utils import timezone

from gpus_app.models import Host
from gpus_app.services import note_heartbeat
from models_app.models import Revision, Router
from models_app.routing import ALL
from models_app.services import start_write
from models_app.services.routers import router_of, save_router, start_action, take_look
from models_app.tasks import router_looked_at
from quartermaster_site.access.audit import Actor
from quartermaster_site.access.models import AuditEntry
from quartermaster_site.errors import EditConflict, NotAllowed, NotFound, Refused
from quartermaster_site.jobs.models import Job
from quartermaster_site.jobs.untrusted import ReportRefused
from quartermaster_site.preparation import recover
from tests.router_stand_in import recorded, stand_in

SERVER = "llama-server-router"


@pytest.fixture
def router():
    with stand_in() as found:
        found.replay(SERVER, "router properties", "one model loaded (meta appears)")
        yield found


@pytest.fixture
def linked(host, router, actor, django_capture_on_commit_callbacks):
    """The host with that router, asked once."""
    Host.objects.update(publish_dialect="llama-server", probed_at=timezone.now())
    host.refresh_from_db()
    with django_capture_on_commit_callbacks(execute=True):
        save_router(host=host, url=router.url, key="s3cret-key", reload_after_write=True, version=0, actor=actor)
    return Router.objects.get()


def save(linked, actor, **changes):
    values = {"url": linked.url, "key": None, "reload_after_write": True, "version": linked.version} | changes
    return save_router(host=linked.host, actor=actor, **values)


def test_an_address_is_asked_at_once(linked, router):
    assert (linked.held, linked.slots, linked.problem) == (1, 2, "")
    assert router.headers[0]["Authorization"] == "Bearer s3cret-key"
    loaded = [item for item in linked.listed if item["state"] == "loaded"]
    assert [item["id"] for item in loaded] == ["qwen3-0.6b"]


def test_the_key_is_in_no_log(linked, actor):
    entry = AuditEntry.objects.get(action="router.settings")
    assert entry.changes["credential"] == ["none", "set"]
    assert "s3cret" not in json.dumps(entry.changes)


def test_a_key_never_goes_to_another_address(linked, actor):
    assert save(linked, actor, reload_after_write=False).key == "s3cret-key"
    linked.refresh_from_db()
    moved = save(linked, actor, url="http://router.example")
    assert (moved.key, moved.listed, moved.seen_at) == ("", [], None)


def test_of_two_who_edit_the_second_is_asked(linked, actor):
    with pytest.raises(EditConflict):
        save(linked, actor, version=0, url="http://other.example")


@pytest.mark.parametrize(("field", "value"), [("url", "ftp://x"), ("url", "http://u:p@x"), ("key", "a\r\nb")])
def test_what_cannot_be_an_address_or_a_key(host, actor, field, value):
    values = {"url": "http://x", "key": None, field: value}
    with pytest.raises(Refused) as refused:
        save_router(host=host, reload_after_write=True, version=0, actor=actor, **values)
    assert field in refused.value.fields
    assert not Router.objects.exists()


@pytest.mark.parametrize("role", ["viewer", "operator", "editor"])
def test_only_administrators_set_it(host, make_user, role):
    someone = Actor(user=make_user(role, "somebody"), name="somebody")
    with pytest.raises(NotAllowed):
        save_router(host=host, url="http://x", key=None, reload_after_write=True, version=0, actor=someone)


def test_each_heartbeat_has_it_asked(linked, router):
    before = len(router.asked)
    note_heartbeat(slug="local", worker="w", version="1", sent_at=time.time())
    assert len(router.asked) == before + 2


def test_since_stays_while_the_state_does(linked, router):
    was = {item["id"]: "2026-01-01T00:00:00+00:00" for item in linked.listed}
    Router.objects.update(listed=[{**item, "since": was[item["id"]]} for item in linked.listed])
    router.answer("GET", "/models", recorded(SERVER, "after the eviction"))
    note_heartbeat(slug="local", worker="w", version="1", sent_at=time.time())
    now = {item["id"]: item for item in Router.objects.get().listed}
    states = {name: (item["state"], item["since"] == was[name]) for name, item in now.items()}
    assert states["qwen3-0.6b"] == ("unloaded", False)
    assert states["missing"] == ("unloaded", True)


def test_what_was_known_stays_when_the_router_is_away(linked, router):
    router.answer("GET", "/props", recorded(SERVER, "keys: no key"))
    note_heartbeat(slug="local", worker="w", version="1", sent_at=time.time())
    now = Router.objects.get()
    assert "wants a key" in now.problem
    assert (now.listed, now.seen_at) == (linked.listed, linked.seen_at)


def test_answers_that_nobody_asked_for(linked):
    answer = {"problem": "x"}
    for token in ("", "guess"):
        with pytest.raises(ReportRefused):
            take_look("local", token, answer)
    router_looked_at("local", 5, answer)
    router_looked_at("nowhere", "t", [])
    assert Router.objects.get().problem == ""


@pytest.mark.parametrize(
    "answer",
    [
        {"models": 5},
        {"models": [5]},
        {"models": [{"id": 5}]},
        {"models": [{"id": "a", "state": "odd", "aliases": [], "command": []}]},
        {"models": [{"id": "a", "state": "loaded", "aliases": ["x"] * 101, "command": []}]},
        {"models": [], "slots": -1, "kind": "x", "version": "y"},
        {"models": [], "slots": None, "kind": 5, "version": "y"},
    ],
)
def test_answers_that_are_not_as_agreed(linked, answer):
    Router.objects.update(asked_at=timezone.now(), token="t")
    with pytest.raises(ReportRefused):
        take_look("local", "t", answer)


def test_a_lost_question_is_asked_again(linked, router):
    Router.objects.update(asked_at=timezone.now(), token="t")
    before = len(router.asked)
    note_heartbeat(slug="local", worker="w", version="1", sent_at=time.time())
    assert len(router.asked) == before
    Router.objects.update(asked_at=timezone.now() - timedelta(minutes=3))
    note_heartbeat(slug="local", worker="w", version="1", sent_at=time.time())
    assert len(router.asked) > before


def test_a_worker_that_went_away_is_asked_again_at_once(linked):
    Router.objects.update(asked_at=timezone.now())
    recover()
    assert Router.objects.get().asked_at is None


@pytest.fixture
def act(linked, actor, django_capture_on_commit_callbacks):
    def run(action, model):
        with django_capture_on_commit_callbacks(execute=True):
            started = start_action(host=linked.host, action=action, model=model, actor=actor)
        return Job.objects.get(pk=started.job.pk)

    return run


def test_unload_and_what_is_known_then(act, router):
    router.replay(SERVER, "unload (answers at once)")
    router.answer("GET", "/models", recorded(SERVER, "all models, nothing loaded"))
    job = act("unload", "qwen3-0.6b")
    assert job.state == "succeeded", job.error
    assert "s3cret" not in json.dumps(job.inputs)
    assert Router.objects.get().held == 0
    assert AuditEntry.objects.filter(action="router.unload").count() == 1


def test_a_refused_load_is_told(act, router):
    router.replay(SERVER, "load one that does not exist")
    job = act("load", "embed")
    assert job.state == "failed"
    assert "does not know embed" in job.error
    assert "s3cret" not in json.dumps(job.inputs)


def test_who_may_unload(linked, make_user, django_capture_on_commit_callbacks):
    with pytest.raises(NotAllowed):
        start_action(host=linked.host, action="unload", model=ALL, actor=Actor(user=make_user("viewer"), name="v"))
    for action, model in (("load", ALL), ("unload", "unknown"), ("delete", "embed"), ("load", "")):
        with pytest.raises(NotFound if model == "unknown" else Refused):
            start_action(
                host=linked.host, action=action, model=model, actor=Actor(user=make_user("operator", model), name="o")
            )


def test_without_an_address_nothing_is_asked(host, actor):
    assert router_of(host).pk is None
    with pytest.raises(Refused, match="No router address"):
        start_action(host=host, action="unload", model=ALL, actor=actor)


@pytest.fixture
def write(scanned, linked, actor, tmp_path, django_capture_on_commit_callbacks):
    Host.objects.update(publish_path=str(tmp_path / "models.ini"))

    def run():
        with django_capture_on_commit_callbacks(execute=True):
            started = start_write(revision=Revision.objects.select_related("host").first(), actor=actor)
        return Job.objects.get(pk=started.job.pk)

    return run


def test_a_write_has_the_file_read(write, router):
    ids = [{"id": name, "source": "preset"} for name in ("alpha-1b-q4_0",)]
    router.answer("GET", "/models?reload=1", {"status": 200, "body": json.dumps({"data": ids})})
    job = write()
    assert job.result["reload"].startswith("reloaded")
    assert "s3cret" not in json.dumps(job.inputs)
    assert Revision.objects.latest("pk").state == "written"


def test_a_refused_file_is_no_written_one(write, router, tmp_path):
    router.answer("GET", "/models?reload=1", recorded(SERVER, "reload of a file with an unknown key"))
    job = write()
    assert (job.state, job.error_kind) == ("failed", "RouterRefusal")
    assert "option 'foo' not recognized" in job.error
    assert Revision.objects.latest("pk").state == "failed"
    assert Host.objects.get().written_sha256 == ""
    assert not (tmp_path / "models.ini").exists()


def test_nobody_is_asked_where_that_is_off(write, router):
    Router.objects.update(reload_after_write=False)
    assert write().result["reload"] == ""
    assert ("GET", "/models?reload=1", "") not in router.asked
