"""The settings of a host as they were when a text was planned, brought back as ordinary changes."""

from __future__ import annotations

import pytest

from gpus_app.models import HostSetting
from gpus_app.services import request_plan, save_memory_settings
from models_app.models import Change, Override, Revision, RevisionDetails, Row
from models_app.services import add_variant, delete_variant, save_override, save_variant
from models_app.services.adopting import adopt_settings, undone
from quartermaster_site.access.audit import Actor
from quartermaster_site.errors import NotAllowed, Refused


@pytest.fixture
def do(django_capture_on_commit_callbacks):
    def run(call, **arguments):
        with django_capture_on_commit_callbacks(execute=True):
            return call(**arguments)

    return run


@pytest.fixture
def row(scanned):
    return Row.objects.get(file_name="beta-2b-Q4_0.gguf")


@pytest.fixture
def snapshot(do, host):
    """The newest text, made from what is set now."""

    def take():
        do(request_plan, host=host, actor=Actor())
        return Revision.objects.order_by("-number").first()

    return take


def fields_of(row):
    own = Override.objects.filter(match=row.path).first()
    return {key: value for key, value in own.fields.items() if value is not None} if own else {}


def test_settings_and_pins_come_back(scanned, host, row, do, actor, snapshot):
    do(save_memory_settings, host=host, values={"ttlSec": 60}, version=0, actor=actor)
    do(save_override, row=row, values={"ctx": 2048, "temp": 0.5}, version=0, actor=actor)
    wanted = snapshot()
    do(save_memory_settings, host=host, values={"ttlSec": 90, "maxRamGB": 4.0}, version=1, actor=actor)
    do(save_override, row=row, values={"temp": 0.7}, version=1, actor=actor)
    do(save_override, row=row, values={"ctx": 1024, "unlisted": True}, version=2, actor=actor)
    assert snapshot().body_sha256 != wanted.body_sha256
    before = Change.objects.count()
    found = do(adopt_settings, revision=wanted, actor=actor)
    assert (found.sections, found.models, found.left) == (("memory",), 1, ())
    assert HostSetting.objects.get(section="memory").values == {"ttlSec": 60}
    assert fields_of(row) == {"ctx": 2048, "temp": 0.5}
    assert Change.objects.count() == before + 1, "an ordinary change, which can be taken back"
    newest = snapshot()
    assert newest.number > wanted.number
    assert newest.body_sha256 == wanted.body_sha256, "the same settings make the same text"
    again = do(adopt_settings, revision=newest, actor=actor)
    assert (again.sections, again.models) == ((), 0)


def test_variants_come_and_go(scanned, row, do, actor, snapshot):
    kept = do(add_variant, row=row, name="kept", values={"temp": 0.1}, actor=actor)
    gone = do(add_variant, row=row, name="gone", values={"temp": 0.2}, actor=actor)
    wanted = snapshot()
    do(save_variant, row=row, variant=kept, values={"temp": 0.9}, version=kept.version, actor=actor)
    do(delete_variant, row=row, variant=gone, actor=actor)
    do(add_variant, row=row, name="new", values={"temp": 0.3}, actor=actor)
    do(adopt_settings, revision=wanted, actor=actor)
    variants = Override.objects.get(match=row.path).variants
    assert {item.name: item.fields for item in variants.all()} == {"kept": {"temp": 0.1}, "gone": {"temp": 0.2}}
    assert snapshot().body_sha256 == wanted.body_sha256


def test_what_cannot_be_brought_back_is_said(scanned, host, row, do, actor, snapshot):
    wanted = snapshot()
    HostSetting.objects.create(host=host, section="variants", values={"defaultVariants": [{"name": "all"}]})
    Change.objects.create(host=host, match="/away/*.gguf", action="save", changes={"temp": [None, 1]}, actor="edda")
    assert do(adopt_settings, revision=wanted, actor=actor).left == ("fleet variants", "/away/*.gguf")


def test_a_text_whose_inputs_are_not_known(scanned, actor):
    RevisionDetails.objects.all().delete()
    with pytest.raises(Refused, match="was not kept"):
        adopt_settings(revision=Revision.objects.get(), actor=actor)


def test_it_takes_an_editor(scanned, make_user):
    with pytest.raises(NotAllowed):
        adopt_settings(revision=Revision.objects.get(), actor=Actor(user=make_user("operator"), name="otto"))


def test_changes_are_undone_from_the_newest():
    changes = [Change(changes={"a": [2, 3], "b": [None, 1]}), Change(changes={"a": [None, 2], "c": [7, None]})]
    assert undone({"a": 3, "b": 1, "d": 4}, changes) == {"c": 7, "d": 4}
