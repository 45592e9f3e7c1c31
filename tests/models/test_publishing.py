"""Rollback and pin, policies, approval by a second person, writing by itself, and the mass-change guard."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from gpus_app.services import request_plan, save_memory_settings
from models_app.core.export.revisions.outline import outline_from_json, outline_of
from models_app.core.export.stamp import read_stamp
from models_app.models import Publishing, Revision, RevisionDetails, Root
from models_app.selectors.comparing import compare_revisions, live_revision, publishing_of, watch_of
from models_app.services import start_write
from models_app.services.drift_choices import keep_ours
from models_app.services.publishing import lift_pin, roll_back, save_policy, send_back, submit, write_due
from models_app.services.target_looks import adopt_seen, start_look
from quartermaster_site.access.audit import Actor
from quartermaster_site.access.models import AuditEntry
from quartermaster_site.errors import EditConflict, NotAllowed, Refused
from quartermaster_site.jobs.models import Job
from tests.tiny_models import tiny_gguf


@pytest.fixture
def target(scanned, host, tmp_path):
    host.publish_path = str(tmp_path / "router.yaml")
    host.save()
    return tmp_path / "router.yaml"


@pytest.fixture
def do(django_capture_on_commit_callbacks):
    """Call something with everything that it queues."""

    def run(call, **arguments):
        with django_capture_on_commit_callbacks(execute=True):
            return call(**arguments)

    return run


@pytest.fixture
def person(make_user):
    def make(role, name):
        return Actor(user=make_user(role, name), name=name)

    return make


def newest():
    return Revision.objects.select_related("host").order_by("-number").first()


@pytest.fixture
def new_text(do, host, actor):
    """Change a setting; the newest text says so."""

    def make(seconds):
        version = host.settings.filter(section="memory").values_list("version", flat=True).first() or 0
        do(save_memory_settings, host=host, values={"ttlSec": seconds}, version=version, actor=actor)
        return newest()

    return make


def test_a_text_keeps_what_it_was_made_from(scanned, new_text, host):
    first = newest()
    second = new_text(5)
    found = compare_revisions(first, second)
    assert found.difference.of("changed") == 3
    [change] = {change.fields for change in found.difference.models}
    assert [(field.name, field.before, field.after) for field in change] == [("ttl", "600", "5")]
    [cause] = found.causes.host
    assert (cause.name, cause.before, cause.after, cause.by) == ("ttlSec", None, 5, "admin")
    assert found.effect.stops == "all"


@pytest.mark.parametrize("dialect", ["llama-swap", "quartermaster", "llama-server"])
def test_what_is_kept_is_what_the_text_says(scanned, do, host, dialect):
    host.publish_dialect = dialect
    host.save()
    do(request_plan, host=host, actor=Actor())
    revision = newest()
    assert revision.dialect == dialect
    expected = outline_of(dialect, revision.text, revision.summary["entries"])
    assert len(expected.models) == 3
    assert outline_from_json(revision.details.outline) == expected


def test_a_text_without_details_is_compared_by_itself(scanned, new_text):
    first, second = newest(), new_text(5)
    expected = compare_revisions(first, second).difference
    RevisionDetails.objects.all().delete()
    found = compare_revisions(first, second)
    assert found.difference == expected
    assert not found.causes.known


def test_only_the_newest_text_is_written(target, new_text, do, actor):
    first, second = newest(), new_text(5)
    with pytest.raises(EditConflict, match=f"revision {second.number} is newer"):
        start_write(revision=first, actor=actor)
    do(start_write, revision=second, message="  shorter\nidle time ", actor=actor)
    second.refresh_from_db()
    assert (second.state, second.message) == ("written", "shorter idle time")
    new_text(6)
    target.write_text("models: {}\n")
    do(start_write, revision=second, replace=True, actor=actor)
    assert target.read_text() == second.text, "what is live may be put back although a newer text waits"


def test_a_rollback_is_a_new_revision_with_the_old_body_and_pins_the_host(target, new_text, do, actor, host):
    first = newest()
    do(start_write, revision=first, actor=actor)
    second = new_text(5)
    do(start_write, revision=second, actor=actor)
    first.refresh_from_db()
    fresh, _ = do(roll_back, revision=first, actor=actor)
    fresh.refresh_from_db()
    assert (fresh.number, fresh.state, fresh.origin, fresh.restores) == (3, "written", "rollback", 1)
    assert target.read_text() == fresh.text
    stamp = read_stamp(fresh.text)
    assert (stamp.revision, stamp.intact, stamp.body_sha256) == (3, True, first.body_sha256)
    host.refresh_from_db()
    assert live_revision(host) == fresh
    assert publishing_of(host).pinned == fresh
    assert compare_revisions(first, fresh).difference.is_empty
    assert compare_revisions(second, fresh).causes.host[0].name == "ttlSec"

    planned = new_text(7)
    with pytest.raises(Refused, match="pinned to revision 3"):
        start_write(revision=planned, actor=actor)
    lift_pin(host=host, actor=actor)
    do(start_write, revision=planned, actor=actor)
    assert live_revision(type(host).objects.get(pk=host.pk)) == planned
    assert list(AuditEntry.objects.filter(action__in=["config.rollback", "config.unpin"])) != []


def test_an_old_text_is_judged_by_the_rules_of_today(target, new_text, do, actor):
    first = newest()
    do(start_write, revision=first, actor=actor)
    do(start_write, revision=new_text(5), actor=actor)
    twice = first.text.replace("models:\n", 'models:\n  "x":\n    cmd: a ${PORT}\n  "x":\n    cmd: b ${PORT}\n', 1)
    Revision.objects.filter(pk=first.pk).update(text=twice, inputs={"version": "0.0.1"}, body_sha256="other")
    first.refresh_from_db()
    with pytest.raises(Refused, match="findings that block"):
        roll_back(revision=first, actor=actor)


def test_writing_another_text_lifts_the_pin_once_it_is_there(target, new_text, do, actor, host):
    first = newest()
    do(start_write, revision=first, actor=actor)
    do(start_write, revision=new_text(5), actor=actor)
    first.refresh_from_db()
    do(roll_back, revision=first, actor=actor)
    planned = new_text(7)
    target.write_text(target.read_text() + "# mine\n")
    do(start_write, revision=planned, lift_pin=True, actor=actor)
    assert publishing_of(host).pinned.number == 3, "the write failed: nothing has changed"
    do(keep_ours, host=host, finding=watch_of(host).finding, actor=actor)
    assert publishing_of(host).pinned.number == 3, "the same text again is no other text"
    do(start_write, revision=planned, lift_pin=True, actor=actor)
    assert publishing_of(host).pinned is None


def test_there_is_no_way_back_to_what_never_was(target, new_text, do, actor):
    first, second = newest(), new_text(5)
    do(start_write, revision=second, actor=actor)
    with pytest.raises(Refused, match="never on the host"):
        roll_back(revision=first, actor=actor)
    second.refresh_from_db()
    with pytest.raises(Refused, match="Nothing to do"):
        roll_back(revision=second, actor=actor)
    assert Revision.objects.count() == 2


def drop_most(folder, scan):
    for name in ("alpha-1b-Q4_0.gguf", "alpha-1b-Q8_0.gguf", "beta-2b-Q4_0.gguf"):
        (folder / name).unlink()
    tiny_gguf(folder / "gamma-1b-Q4_0.gguf", name="Gamma 1B")  # an empty folder is taken for a drive that is away
    scan()
    return newest()


def test_a_text_that_drops_many_models_needs_the_slug_of_an_administrator(
    target, do, actor, person, folder, scan, host
):
    do(start_write, revision=newest(), actor=actor)
    empty = drop_most(folder, scan)
    with pytest.raises(Refused, match="Type local to confirm"):
        start_write(revision=empty, actor=actor)
    with pytest.raises(NotAllowed, match="drops many models"):
        start_write(revision=empty, typed_slug="local", actor=person("operator", "otto"))
    do(start_write, revision=empty, typed_slug="local", actor=actor)
    assert target.read_text() == empty.text


def test_a_folder_that_is_away_needs_it_too(target, actor, host):
    Root.objects.update(state=Root.State.MISSING)
    with pytest.raises(Refused, match="a folder is away"):
        start_write(revision=newest(), actor=actor)


def test_approval_takes_a_second_person(target, do, person, host, actor):
    do(save_policy, host=host, policy="approval", actor=actor)
    edda, otto = person("editor", "edda"), person("operator", "otto")
    with pytest.raises(Refused, match="submit it for approval"):
        start_write(revision=newest(), actor=edda)
    do(submit, revision=newest(), message="please", actor=edda)
    assert (newest().state, newest().submitted_by, newest().message) == ("awaiting", edda.user, "please")
    with pytest.raises(NotAllowed, match="somebody else"):
        start_write(revision=newest(), actor=edda)
    do(start_write, revision=newest(), actor=otto)
    assert (newest().state, newest().approved_by, newest().message) == ("written", otto.user, "please")


def test_a_submission_can_be_sent_back_and_ends_with_the_policy(target, do, person, host, actor):
    save_policy(host=host, policy="approval", actor=actor)
    edda = person("editor", "edda")
    submit(revision=newest(), actor=edda)
    send_back(revision=newest(), reason="too early", actor=person("operator", "otto"))
    assert (newest().state, newest().state_reason) == ("validated", "not approved by otto: too early")
    submit(revision=newest(), actor=edda)
    save_policy(host=host, policy="manual", actor=actor)
    assert (newest().state, newest().submitted_by) == ("validated", None)
    with pytest.raises(Refused, match="No approval is needed"):
        submit(revision=newest(), actor=edda)


def test_a_rollback_waits_for_approval_as_well(target, new_text, do, person, host, actor):
    first = newest()
    do(start_write, revision=first, actor=actor)
    do(start_write, revision=new_text(5), actor=actor)
    save_policy(host=host, policy="approval", actor=actor)
    first.refresh_from_db()
    fresh, started = roll_back(revision=first, actor=actor)
    assert (fresh.state, started) == ("awaiting", None)
    new_text(9)
    do(start_write, revision=fresh, actor=person("operator", "otto"))
    assert publishing_of(host).pinned == fresh


def test_only_administrators_set_the_policy(host, person):
    with pytest.raises(NotAllowed):
        save_policy(host=host, policy="auto", actor=person("editor", "edda"))


def test_of_two_who_set_the_policy_the_second_is_told(host, actor):
    save_policy(host=host, policy="approval", seen="manual", actor=actor)
    with pytest.raises(Refused, match="with approval"):
        save_policy(host=host, policy="auto", seen="manual", actor=actor)
    with pytest.raises(Refused, match="one of the three"):
        save_policy(host=host, policy="whenever", actor=actor)


def rested():
    from gpus_app.models import Host

    Host.objects.update(written_at=timezone.now() - timedelta(minutes=1))


def test_a_host_writes_by_itself_after_planning(target, new_text, do, host, actor):
    do(save_policy, host=host, policy="auto", actor=actor)
    assert target.read_text() == newest().text
    rested()
    second = new_text(5)
    assert target.read_text() == second.text
    assert AuditEntry.objects.filter(action="config.write", actor="system").count() == 2
    rested()
    do(write_due)
    assert Job.objects.filter(kind="publish").count() == 2, "the same text is nothing to do"


def test_quick_saves_are_one_write(target, new_text, do, host, actor):
    do(save_policy, host=host, policy="auto", actor=actor)
    for seconds in (5, 6, 7):
        new_text(seconds)
    assert Job.objects.filter(kind="publish").count() == 1, "the rest after the last write is not over"
    rested()
    do(write_due)
    assert Job.objects.filter(kind="publish").count() == 2
    assert "ttl: 7" in target.read_text()


def test_nothing_is_written_by_itself_while_a_plan_is_to_come(target, host, do, actor):
    Job.objects.create(kind="plan_host", host=host, token="t")
    do(save_policy, host=host, policy="auto", actor=actor)
    assert not target.exists()


def test_a_mass_change_is_never_written_by_itself(target, do, actor, folder, scan, host):
    do(save_policy, host=host, policy="auto", actor=actor)
    before = target.read_text()
    rested()
    drop_most(folder, scan)
    assert target.read_text() == before
    assert "would drop 3 of 3 models" in publishing_of(host).held


def test_findings_hold_it_back(target, do, actor, host):
    Revision.objects.update(findings=[{"rule": "V-15", "severity": "warn", "message": "a secret"}])
    do(save_policy, host=host, policy="auto", actor=actor)
    assert not target.exists()
    assert "1 finding(s)" in publishing_of(host).held


def test_a_pinned_host_writes_nothing_by_itself_until_the_pin_is_lifted(target, new_text, do, host, actor):
    first = newest()
    do(start_write, revision=first, actor=actor)
    do(start_write, revision=new_text(5), actor=actor)
    first.refresh_from_db()
    fresh, _ = do(roll_back, revision=first, actor=actor)
    do(save_policy, host=host, policy="auto", actor=actor)
    rested()
    planned = new_text(8)
    do(write_due)
    assert target.read_text() == fresh.text
    do(lift_pin, host=host, actor=actor)
    assert target.read_text() == planned.text


def test_after_an_adopted_text_the_newest_is_written_again_once_the_pin_is_lifted(target, new_text, do, host, actor):
    first = newest()
    do(start_write, revision=first, actor=actor)
    second = new_text(5)
    do(start_write, revision=second, actor=actor)
    target.write_text(first.text)
    do(start_look, host=host, actor=actor)
    adopt_seen(host=host, sha256=first.sha256, actor=actor)
    do(save_policy, host=host, policy="auto", actor=actor)
    rested()
    do(write_due)
    assert target.read_text() == first.text
    do(lift_pin, host=host, actor=actor)
    assert target.read_text() == second.text


def test_a_write_by_itself_stops_at_a_strangers_file(target, do, host, actor):
    target.write_text("models: {}\n")
    do(save_policy, host=host, policy="auto", actor=actor)
    assert target.read_text() == "models: {}\n"
    do(write_due)
    assert Job.objects.filter(kind="publish").count() == 1, "it is not tried again and again"


def test_planning_again_changes_nothing_of_this(target, do, host):
    do(request_plan, host=host, actor=Actor())
    assert not Publishing.objects.exists()
