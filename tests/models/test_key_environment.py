"""Keys that a router takes from its environment: the file names variables, texts hold placeholders, nothing opens."""

from __future__ import annotations

import pytest

from gpus_app.models import Host
from gpus_app.services import request_plan, save_memory_settings
from models_app.core.export.keys import reference_to, resolved, with_variables
from models_app.core.export.load import load
from models_app.core.export.router.expansion import environment_names, with_environment
from models_app.core.export.stamp import read_stamp, stamped
from models_app.models import ApiKey, KeyPolicy, Revision
from models_app.selectors.api_keys import key_line
from models_app.selectors.comparing import live_revision
from models_app.selectors.host_files import export_texts
from models_app.selectors.key_environment import environment_of
from models_app.services import start_write
from models_app.services.api_keys import KeyValues, create_key, revoke_key
from models_app.services.drift import storable_text
from models_app.services.key_environment import (
    environment_file,
    hold_secrets,
    name_variables,
    note_variables_set,
)
from models_app.services.key_export import service_secret
from models_app.services.key_hosts import set_required
from quartermaster_site.access.audit import Actor
from quartermaster_site.access.models import AuditEntry
from quartermaster_site.errors import NotAllowed, Refused
from tests.models.import_cases import items


@pytest.fixture(autouse=True)
def _own_data_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("QM_DATA_DIR", str(tmp_path / "data"))


@pytest.fixture
def target(scanned, host, tmp_path, do, actor):
    """A file of ours for the router that can limit keys, with one key of a client."""
    host.publish_path, host.publish_dialect = str(tmp_path / "router.yaml"), "quartermaster"
    host.save()
    do(create_key, values=KeyValues("lab", [host], everything=True), actor=actor)
    do(start_write, revision=Revision.objects.order_by("-number").first(), actor=actor)
    host.refresh_from_db()
    assert host.written_sha256
    return tmp_path / "router.yaml"


def numbers(host):
    return [item.key.pk for item in environment_of(host).variables]


def named(path):
    return load(path.read_text()).value.get("apiKeys", [])


def test_a_placeholder_of_a_name_becomes_what_a_router_replaces():
    text = stamped('# a\n# b\n# c\napiKeys:\n  - "<env-key-7>"\n  - "<key-8>"\n', host="gpu-a", revision=12)
    written = resolved(with_variables(text), {"<key-8>": "qm-inline"})
    assert read_stamp(written).intact
    variables = environment_names(load(written))
    assert variables == ["QM_ROUTER_KEY_7"]
    read = with_environment(written, variables, {"QM_ROUTER_KEY_7": 'odd"\\'})
    assert load(read).value["apiKeys"] == ['odd"\\', "qm-inline"]


def test_the_switch_changes_the_keys_alone_and_back(target, host, do, actor):
    key, service = ApiKey.objects.get(name="lab"), service_secret(host)
    secret = named(target)[1]
    do(save_memory_settings, host=host, values={"ttlSec": 5}, version=0, actor=actor)
    do(name_variables, host=host, numbers=numbers(host), actor=actor)
    text = target.read_text()
    assert named(target) == [reference_to(number) for number in numbers(host)]
    assert secret not in text
    assert service not in text
    assert read_stamp(text).intact
    live = live_revision(Host.objects.get())
    assert (live.origin, live.state) == ("keys", "written")
    assert f'"<env-key-{key.pk}>"' in live.text
    assert "ttl: 5" not in text, "what waits for a review goes on waiting"
    assert key.pk in live.inputs["keys"], "so its secret is not forgotten while it is live"
    assert f"<env-key-{key.pk}>" in storable_text(host, text)
    assert reference_to(key.pk) in export_texts(host, with_secrets=True)["config.yaml"]

    do(hold_secrets, host=host, actor=actor)
    assert named(target) == [service, secret]
    assert AuditEntry.objects.filter(action="access-key.environment").count() == 2


def test_a_new_key_waits_for_its_variable_and_a_revoked_one_for_nothing(target, host, do, actor):
    do(name_variables, host=host, numbers=numbers(host), actor=actor)
    old, before = ApiKey.objects.get(name="lab"), named(target)
    new, _ = do(create_key, values=KeyValues("new", [host], everything=True), actor=actor)
    assert named(target) == before
    [place] = key_line(new).places
    assert place.reason == f"QM_ROUTER_KEY_{new.pk} is to be set in its router's environment"
    do(revoke_key, key=old, actor=actor)
    assert named(target) == before[:1], "that of the worker stays"
    do(note_variables_set, host=host, numbers=[new.pk, 4711], actor=actor)
    assert named(target) == [before[0], reference_to(new.pk)]
    assert 4711 not in KeyPolicy.objects.get().variables_set


def test_the_worker_keeps_its_variable_while_no_key_is_required(target, host, do, actor):
    do(name_variables, host=host, numbers=numbers(host), actor=actor)
    do(revoke_key, key=ApiKey.objects.get(name="lab"), actor=actor)
    [service] = named(target)
    do(set_required, host=host, required=False, typed_slug="local", actor=actor)
    assert named(target) == []
    do(set_required, host=host, required=True, actor=actor)
    assert named(target) == [service]


def test_llama_server_gets_secrets_whatever_is_chosen(target, host, do, actor):
    secrets = named(target)
    do(name_variables, host=host, numbers=numbers(host), actor=actor)
    Host.objects.update(publish_dialect="llama-server", publish_path=str(target.parent / "models.ini"))
    do(request_plan, host=Host.objects.get(), actor=actor)
    do(start_write, revision=Revision.objects.order_by("-number").first(), replace=True, actor=actor)
    assert (target.parent / "models.keys").read_text().splitlines() == secrets
    with pytest.raises(Refused, match="cannot name variables"):
        name_variables(host=Host.objects.get(), numbers=[], actor=actor)


def test_what_planning_writes_is_nothing_to_keep_by_hand(target, host, do, actor, bring_in):
    do(name_variables, host=host, numbers=numbers(host), actor=actor)
    text = target.read_text()
    batch = bring_in(text.replace("apiKeys:\n", 'apiKeys:\n  - "${env.OTHERS}"\n'), dialect="quartermaster")
    assert batch.state != "failed", batch.problem
    [found] = [item for item in items(batch) if item.source == "apiKeys"]
    assert found.value == ["${env.OTHERS}"], "a reference stays one, and no secret is invented"
    batch = bring_in(text, dialect="quartermaster")
    [found] = [item for item in items(batch) if item.source == "apiKeys"]
    assert (found.target.kind, found.value) == ("nowhere", None)
    assert ApiKey.objects.count() == 2


def test_variables_are_given_out_until_they_are_set(host, actor):
    with pytest.raises(Refused, match="Require keys"):
        name_variables(host=host, numbers=[], actor=actor)
    key, secret = create_key(values=KeyValues("lab", [host], everything=True), actor=actor)
    limited, _ = create_key(values=KeyValues("few", [host], everything=False, ids=["a"]), actor=actor)
    text = environment_file(host=host, actor=actor)
    assert f"# lab\nQM_ROUTER_KEY_{key.pk}={secret}\n" in text
    assert f"={service_secret(host)}\n" in text
    assert limited.pk not in numbers(host), "llama-swap cannot limit a key, so its file never names that one"
    entry = AuditEntry.objects.get(action="config.export-secrets")
    assert secret not in str(entry.__dict__)
    with pytest.raises(Refused, match="others meanwhile"):
        name_variables(host=host, numbers=[key.pk], actor=actor)
    name_variables(host=host, numbers=numbers(host), actor=actor)
    with pytest.raises(Refused, match="not given out again"):
        environment_file(host=host, actor=actor)


def test_only_administrators_choose(host, make_user):
    edda = Actor(user=make_user("editor", "edda"), name="edda")
    for call in (hold_secrets, environment_file):
        with pytest.raises(NotAllowed):
            call(host=host, actor=edda)
    for call in (name_variables, note_variables_set):
        with pytest.raises(NotAllowed):
            call(host=host, numbers=[], actor=edda)
