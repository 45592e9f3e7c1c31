"""API keys: shown once, sealed, limited, rotated, revoked, and in a file without anything else that waits."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from gpus_app.services import request_plan, save_memory_settings
from models_app.core.export.load import load
from models_app.core.export.stamp import read_stamp
from models_app.models import ApiKey, DiskVersion, KeyPolicy, Revision, RevisionDetails, Row
from models_app.selectors.comparing import live_revision, publishing_of
from models_app.services import start_write
from models_app.services.api_keys import KeyValues, change_key, create_key, revoke_key, rotate_key
from models_app.services.drift import storable_text
from models_app.services.key_export import export_keys, service_secret
from models_app.services.key_hosts import set_required
from models_app.services.key_publishing import publish_due_keys
from models_app.services.publishing import roll_back
from models_app.services.routers import inputs_of, router_of
from quartermaster_site import sealing
from quartermaster_site.access.audit import Actor
from quartermaster_site.access.models import AuditEntry
from quartermaster_site.errors import EditConflict, NotAllowed, Refused
from quartermaster_site.jobs.models import Job


@pytest.fixture(autouse=True)
def _own_data_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("QM_DATA_DIR", str(tmp_path / "data"))


@pytest.fixture
def target(scanned, host, tmp_path, do, actor):
    """A file of ours for the router that can limit keys."""
    host.publish_path, host.publish_dialect = str(tmp_path / "router.yaml"), "quartermaster"
    host.save()
    do(request_plan, host=host, actor=actor)
    do(start_write, revision=newest(), actor=actor)
    host.refresh_from_db()
    assert host.written_sha256
    return tmp_path / "router.yaml"


@pytest.fixture
def make(host, do, actor):
    def run(name="client", **values):
        values = {"everything": True, "hosts": [host], **values}
        return do(create_key, values=KeyValues(name, **values), actor=actor)

    return run


def newest():
    return Revision.objects.select_related("host").order_by("-number").first()


def on_disk(path):
    return load(path.read_text()).value


def dump() -> str:
    """Everything that the database holds."""
    with connection.cursor() as cursor:
        tables = connection.introspection.table_names(cursor)
        rows = []
        for table in tables:
            cursor.execute(f'SELECT * FROM "{table}"')
            rows += [str(row) for row in cursor.fetchall()]
    return "\n".join(rows)


def test_a_new_key_is_on_the_host_at_once(target, make, host):
    key, secret = make()
    assert secret.startswith("qm-")
    assert len(secret) == 51
    config = on_disk(target)
    assert config["apiKeys"] == [service_secret(host), secret]
    assert "apiKeyModels" not in config
    live = live_revision(type(host).objects.get())
    assert (live.origin, live.state, live.message) == ("keys", "written", "Keys only")
    assert f'- "{key.placeholder}"' in live.text
    assert read_stamp(target.read_text()).intact
    assert newest() == live, "nothing else waits"


def test_the_secret_is_nowhere_but_in_the_file(target, make, host):
    _, secret = make()
    assert secret in target.read_text()
    assert secret not in dump()
    assert service_secret(host) not in dump()
    assert (target.parent / "data" / sealing.FILE_NAME).stat().st_mode & 0o777 == 0o600


def test_what_waits_for_a_review_goes_on_waiting(target, make, host, do, actor):
    do(save_memory_settings, host=host, values={"ttlSec": 5}, version=0, actor=actor)
    make()
    assert "ttl: 5" not in target.read_text()
    assert "ttl: 5" in newest().text
    do(start_write, revision=newest(), actor=actor)
    assert "ttl: 5" in target.read_text()
    assert len(on_disk(target)["apiKeys"]) == 2


def test_a_limited_key_reaches_its_models_alone(target, make):
    row = Row.objects.get(file_name="beta-2b-Q4_0.gguf")
    _, secret = make(everything=False, files=[row.path])
    assert on_disk(target)["apiKeyModels"] == {secret: [row.served_id]}


def test_a_limited_key_that_reaches_nothing_is_withheld(target, make):
    _, secret = make(everything=False, files=["/gone.gguf"])
    assert secret not in target.read_text()
    assert len(on_disk(target)["apiKeys"]) == 1, "that of the worker stays"


def test_llama_swap_never_gets_a_limited_key(target, make, host, do, actor):
    row = Row.objects.first()
    _, limited = make("limited", everything=False, files=[row.path])
    _, full = make("full")
    type(host).objects.update(publish_dialect="llama-swap")
    do(request_plan, host=type(host).objects.get(), actor=actor)
    do(start_write, revision=newest(), actor=actor)
    text = target.read_text()
    assert limited not in text
    assert full in text
    assert "1 API key limited to some models was left out" in text


def test_llama_servers_keys_lie_in_a_file_beside(scanned, host, tmp_path, do, actor, make):
    host.publish_path, host.publish_dialect = str(tmp_path / "models.ini"), "llama-server"
    host.save()
    _, first = make("first")
    do(request_plan, host=host, actor=actor)
    do(start_write, revision=newest(), actor=actor)
    keys = tmp_path / "models.keys"
    assert keys.read_text().splitlines() == [service_secret(host), first]
    assert keys.stat().st_mode & 0o777 == 0o600
    assert "LLAMA_ARG_API_KEY_FILE=" in (tmp_path / "models.ini").read_text()
    assert first not in (tmp_path / "models.ini").read_text()
    _, second = make("second")
    assert keys.read_text().splitlines() == [service_secret(host), first, second]
    revoke_key(key=ApiKey.objects.get(name="first"), actor=actor)
    do(publish_due_keys)
    assert keys.read_text().splitlines() == [service_secret(host), second]


def test_revoking_leaves_the_key_of_the_worker(target, make, host, do, actor):
    key, secret = make()
    do(revoke_key, key=key, actor=actor)
    assert on_disk(target)["apiKeys"] == [service_secret(host)]
    assert ApiKey.objects.get(pk=key.pk).sealed, "a file might still have to be written with it"
    do(publish_due_keys)
    assert ApiKey.objects.get(pk=key.pk).sealed == "", "no file holds it any more"
    assert secret not in target.read_text()
    with pytest.raises(Refused, match="revoked"):
        rotate_key(key=key, overlap_days=0, actor=actor)


def test_a_key_ends_by_itself(target, make, do):
    key, secret = make(expires_at=timezone.now() + timedelta(days=1))
    assert secret in target.read_text()
    ApiKey.objects.filter(pk=key.pk).update(expires_at=timezone.now() - timedelta(seconds=1))
    do(publish_due_keys)
    assert secret not in target.read_text()
    do(publish_due_keys)
    assert AuditEntry.objects.filter(action="access-key.expire").count() == 1


def test_rotation_keeps_the_old_secret_for_a_while(target, make, host, do, actor):
    key, old = make(note="for the lab")
    fresh, new = do(rotate_key, key=key, overlap_days=3, actor=actor)
    assert set(on_disk(target)["apiKeys"]) == {service_secret(host), old, new}
    key.refresh_from_db()
    assert (key.name, fresh.name, fresh.note, key.successor) == ("client (old)", "client", "for the lab", fresh)
    ApiKey.objects.filter(pk=key.pk).update(expires_at=timezone.now())
    do(publish_due_keys)
    assert set(on_disk(target)["apiKeys"]) == {service_secret(host), new}
    with pytest.raises(Refused, match="0 to 7"):
        rotate_key(key=fresh, overlap_days=8, actor=actor)
    do(rotate_key, key=fresh, overlap_days=0, actor=actor)
    assert new not in target.read_text()


def test_a_changed_scope_keeps_the_secret(target, make, host, do, actor):
    key, secret = make()
    row = Row.objects.get(file_name="beta-2b-Q4_0.gguf")
    values = KeyValues("client", [host], everything=False, ids=[row.served_id])
    do(change_key, key=key, values=values, version=1, actor=actor)
    assert on_disk(target)["apiKeyModels"] == {secret: [row.served_id]}
    with pytest.raises(EditConflict):
        change_key(key=key, values=values, version=1, actor=actor)


def test_an_open_router_is_an_administrators_word(target, make, host, do, actor):
    key, _ = make()
    do(revoke_key, key=key, actor=actor)
    with pytest.raises(Refused, match="Type local"):
        set_required(host=host, required=False, actor=actor)
    do(set_required, host=host, required=False, typed_slug="local", actor=actor)
    assert "apiKeys" not in on_disk(target)
    do(set_required, host=host, required=True, actor=actor)
    assert on_disk(target)["apiKeys"] == [service_secret(host)]


def test_only_limited_keys_on_an_open_llama_swap_do_not_stop_planning(target, make, host, do, actor):
    make(everything=False, files=[Row.objects.first().path])
    do(set_required, host=host, required=False, typed_slug="local", actor=actor)
    type(host).objects.update(publish_dialect="llama-swap")
    do(request_plan, host=type(host).objects.get(), actor=actor)
    assert Job.objects.filter(kind="plan_host").first().state == "succeeded"
    assert "apiKeys" not in newest().text


def test_the_worker_asks_its_router_with_its_own_key(target, make, host):
    make()
    row = router_of(host)
    row.url = "http://127.0.0.1:8080"
    row.save()
    assert inputs_of(row)["key"] == service_secret(host)
    row.key = "typed"
    assert inputs_of(row)["key"] == "typed"


def test_a_rollback_brings_no_old_keys_back(target, make, host, do, actor):
    first = live_revision(host)
    key, secret = make()
    do(save_memory_settings, host=host, values={"ttlSec": 5}, version=0, actor=actor)
    do(start_write, revision=newest(), actor=actor)
    with_key = live_revision(type(host).objects.get())
    do(save_memory_settings, host=host, values={"ttlSec": 6}, version=1, actor=actor)
    do(start_write, revision=newest(), actor=actor)
    do(revoke_key, key=key, actor=actor)
    do(roll_back, revision=with_key, actor=actor)
    assert "ttl: 5" in target.read_text()
    assert on_disk(target)["apiKeys"] == [service_secret(host)]
    first.refresh_from_db()
    do(roll_back, revision=first, actor=actor)
    assert on_disk(target)["apiKeys"] == [service_secret(host)], "a text from before the first key stays no open door"


def test_keys_reach_a_pinned_host_and_leave_it_pinned(target, make, host, do, actor):
    first = live_revision(host)
    do(save_memory_settings, host=host, values={"ttlSec": 5}, version=0, actor=actor)
    do(start_write, revision=newest(), actor=actor)
    first.refresh_from_db()
    do(roll_back, revision=first, actor=actor)
    _, secret = make()
    assert secret in target.read_text()
    assert "ttl: 5" not in target.read_text()
    assert publishing_of(host).pinned == live_revision(type(host).objects.get())


def test_nothing_is_written_over_a_drift(target, make, host, do, actor):
    from models_app.services.target_looks import start_look

    target.write_text(target.read_text() + "# mine\n")
    do(start_look, host=host, actor=actor)
    _, secret = make()
    assert secret not in target.read_text()
    assert "# mine" in target.read_text()


def test_keys_that_could_not_be_written_are_not_tried_again_and_again(target, make, do):
    target.write_text(target.read_text() + "# mine\n")  # nobody has looked yet: the write finds it
    make()
    do(publish_due_keys)
    do(publish_due_keys)
    assert Job.objects.filter(kind="publish").count() == 2


def test_keys_of_ours_are_placeholders_in_what_others_put_there(target, make, host):
    key, secret = make()
    stored = storable_text(host, target.read_text() + f"# {secret} and qm-{'1' * 48}\n")
    assert secret not in stored
    assert stored.count(key.placeholder) == 2
    assert "qm-1111" not in stored
    assert not DiskVersion.objects.exists()


def test_a_form_sent_twice_makes_one_key(target, host, actor, do):
    values = KeyValues("client", [host], everything=True)
    first, secret = do(create_key, values=values, form_token="t", actor=actor)
    again, nothing = do(create_key, values=values, form_token="t", actor=actor)
    assert (again, nothing) == (first, "")
    assert secret


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"name": " "}, "name"),
        ({"name": "x" * 65}, "name"),
        ({"name": "TAKEN"}, "name"),
        ({"hosts": []}, "hosts"),
        ({"everything": False}, "scope"),
        ({"expires_at": timezone.now() - timedelta(days=1)}, "expires"),
        ({"note": "x" * 301}, "note"),
    ],
)
def test_what_cannot_be_a_key(host, actor, values, field):
    create_key(values=KeyValues("taken", [host], everything=True), actor=actor)
    given = {"name": "fresh", "hosts": [host], "everything": True, **values}
    with pytest.raises(Refused) as refused:
        create_key(values=KeyValues(given.pop("name"), **given), actor=actor)
    assert list(refused.value.fields) == [field]


def test_only_administrators(host, make_user):
    edda = Actor(user=make_user("editor", "edda"), name="edda")
    with pytest.raises(NotAllowed):
        create_key(values=KeyValues("x", [host], everything=True), actor=edda)


def test_before_anything_was_written_there_is_nothing_to_do(scanned, host, do, make):
    make()
    assert Job.objects.filter(kind="publish").count() == 0
    assert len(export_keys(host)) == 2
    assert KeyPolicy.objects.get().required
    assert RevisionDetails.objects.exists()


def test_a_lost_sealing_key_is_said_and_mended_by_making_keys_anew(target, make, tmp_path, host, do, actor):
    key, _ = make()
    (tmp_path / "data" / sealing.FILE_NAME).unlink()
    with pytest.raises(sealing.Unsealable, match="another one"):
        sealing.unseal(ApiKey.objects.get(pk=key.pk).sealed)
    assert service_secret(host) == "", "looks go on without it"
    assert "models" in storable_text(host, target.read_text())
    do(publish_due_keys)
    do(save_memory_settings, host=host, values={"ttlSec": 5}, version=0, actor=actor)
    job = Job.objects.filter(kind="plan_host").first()
    assert (job.state, job.error_kind) == ("failed", "Unsealable")
    do(revoke_key, key=key, actor=actor)
    do(set_required, host=host, required=False, typed_slug="local", actor=actor)
    do(set_required, host=host, required=True, actor=actor)
    assert on_disk(target)["apiKeys"] == [service_secret(host)]
    assert Job.objects.filter(kind="plan_host").first().state == "succeeded"
