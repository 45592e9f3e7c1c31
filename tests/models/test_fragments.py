"""Raw fragments: merged last, never over what planning writes, administrators only."""

from __future__ import annotations

import pytest

from models_app.core.export import load
from models_app.models import Fragment, Revision
from models_app.services.fragments import save_fragment
from quartermaster_site.access.audit import Actor
from quartermaster_site.access.models import AuditEntry
from quartermaster_site.errors import EditConflict, NotAllowed, Refused


@pytest.fixture
def keep(host, actor, django_capture_on_commit_callbacks):
    def run(served_id="", version=0, form="yaml", by=actor, **fields):
        with django_capture_on_commit_callbacks(execute=True):
            return save_fragment(host=host, form=form, served_id=served_id, fields=fields, version=version, actor=by)

    return run


def newest():
    revision = Revision.objects.order_by("-number").first()
    return revision, load.load(revision.text).value


def test_keys_are_added_at_the_top_and_in_an_entry(scanned, keep):
    keep(logLevel="debug", macros={"lib": "/opt/lib"})
    keep("alpha-1b-q4_0", aliases=["a"], filters={"stripParams": "temperature"}, ttl=5)
    revision, config = newest()
    assert (config["logLevel"], config["macros"]) == ("debug", {"lib": "/opt/lib"})
    entry = config["models"]["alpha-1b-q4_0"]
    assert (entry["aliases"], entry["filters"]) == (["a"], {"stripParams": "temperature"})
    assert entry["ttl"] == 600
    assert "so it is not taken from a raw fragment: models.alpha-1b-q4_0.ttl" in revision.text
    assert revision.state == "validated"


def test_an_entry_of_its_own(scanned, keep):
    keep("other", cmd="podman run \\\n  -p ${PORT}:80 x", cmdStop="podman stop x", ttl=0)
    _, config = newest()
    assert config["models"]["other"]["cmd"].split() == ["podman", "run", "-p", "${PORT}:80", "x"]
    assert config["models"]["other"]["cmdStop"] == "podman stop x"
    assert "other" in config["groups"]["exclusive"]["members"]


def test_groups_by_hand_take_the_place_of_planned_ones(scanned, keep):
    keep(matrix={"vars": {"a": "alpha-1b-q4_0"}, "sets": {"s": "a"}})
    revision, config = newest()
    assert "groups" not in config
    assert config["matrix"] == {"vars": {"a": "alpha-1b-q4_0"}, "sets": {"s": "a"}}
    assert revision.state == "validated"


def test_a_fragment_is_validated_like_everything_else(scanned, keep):
    keep(groups={"g": {"members": ["gone"]}})
    revision, _ = newest()
    assert revision.state == "blocked"
    assert any("gone" in finding["message"] for finding in revision.findings)


def test_presets_and_yaml_do_not_mix(scanned, keep):
    keep("alpha-1b-q4_0", form="presets", seed="7")
    _, config = newest()
    assert "seed" not in config["models"]["alpha-1b-q4_0"]


def test_only_administrators(scanned, keep, make_user):
    with pytest.raises(NotAllowed):
        keep(by=Actor(user=make_user("editor")), logLevel="debug")


def test_a_second_save_from_the_same_version_is_a_conflict(scanned, keep):
    keep(logLevel="debug")
    with pytest.raises(EditConflict):
        keep(logLevel="info")
    assert keep(version=1, logLevel="info").version == 2


def test_the_same_twice_changes_nothing_and_nothing_removes_it(scanned, keep):
    keep(logLevel="debug")
    assert keep(logLevel="debug").version == 1
    assert keep(version=1) is None
    assert not Fragment.objects.exists()
    assert [entry.action for entry in AuditEntry.objects.filter(action__startswith="fragment")] == ["fragment.save"] * 2


def test_models_do_not_hide_at_the_top(scanned, keep):
    with pytest.raises(Refused):
        keep(models={"x": {"cmd": "y"}})


def test_keys_of_clients_are_masked_in_the_audit(scanned, keep):
    keep(apiKeys=["sk-1234567890"])
    assert "1234567890" not in str(AuditEntry.objects.get(action="fragment.save").changes)
