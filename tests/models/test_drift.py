"""A router file that somebody else changes: found by its hash, told, and nothing is written until somebody decides."""

from __future__ import annotations

import os
import time
from datetime import timedelta

import pytest
from django.utils import timezone

from gpus_app.services import note_heartbeat, save_target
from models_app.core.export.stamp import stamped
from models_app.models import DiskVersion, Finding, Publishing, Revision, TargetWatch
from models_app.selectors.comparing import live_revision, watch_of
from models_app.selectors.drift import compare_with_disk, drift_of
from models_app.services import start_write
from models_app.services.drift import storable_text
from models_app.services.drift_choices import keep_ours, manage_by_hand, remind_later, resume, take_theirs
from models_app.services.publishing import save_policy, submit, write_due
from models_app.services.target_looks import adopt_seen
from models_app.tasks import target_looked_at, target_stirs
from quartermaster_site.access.audit import Actor
from quartermaster_site.access.models import AuditEntry
from quartermaster_site.errors import NotAllowed, Refused
from quartermaster_site.jobs.models import Job, State
from quartermaster_site.preparation import recover
from tests.models.test_watching import questions


@pytest.fixture
def do(django_capture_on_commit_callbacks):
    def run(call, **arguments):
        with django_capture_on_commit_callbacks(execute=True):
            return call(**arguments)

    return run


@pytest.fixture
def target(scanned, host, tmp_path, do, actor):
    """The file of a host, written by us."""
    host.publish_path = str(tmp_path / "router.yaml")
    host.probed_at = timezone.now()
    host.save()
    do(start_write, revision=Revision.objects.select_related("host").get(), actor=actor)
    host.refresh_from_db()
    assert host.written_sha256
    return tmp_path / "router.yaml"


@pytest.fixture
def beat(host, do):
    """A heartbeat so many seconds after the last one, with all that it sets off."""

    def run(after=60.0):
        for watch in TargetWatch.objects.all():
            gap = timedelta(seconds=after)
            TargetWatch.objects.update(
                looked_at=watch.looked_at and watch.looked_at - gap,
                asked_at=watch.asked_at and watch.asked_at - gap,
                missing_since=watch.missing_since and watch.missing_since - gap,
            )
        do(note_heartbeat, slug="local", worker="w", version="1", sent_at=time.time())
        return watch_of(host)

    return run


def edit(target, text="# mine\n"):
    target.write_text(target.read_text() + text)


def events():
    return list(AuditEntry.objects.filter(action__startswith="drift.").order_by("pk").values_list("action", flat=True))


def test_a_file_as_we_left_it_is_no_drift_and_costs_no_job(target, beat):
    before = Job.objects.count()
    watch = beat()
    assert (watch.case, watch.problem, watch.has_header) == ("", "", True)
    assert watch.size_bytes == target.stat().st_size
    assert Job.objects.count() == before
    assert not events()


def test_looks_keep_their_distance(target, beat, monkeypatch):
    asked = []

    def send(task, queue, **more):
        asked.extend([more] if "known" in more else [])

    monkeypatch.setattr("models_app.services.target_looks.dispatch.send", send)
    for seconds in (60, 5, 5):
        beat(seconds)
    assert len(asked) == 1, "an answer is waited for"
    beat(130)
    assert len(asked) == 2, "the host never answered"
    recover()
    TargetWatch.objects.update(looked_at=timezone.now())
    beat(30)
    assert len(asked) == 2
    beat(30)
    assert len(asked) == 3


def test_an_edit_is_found_within_a_minute_and_blocks_writing(target, beat, host, do, actor):
    edit(target)
    watch = beat()
    assert watch.case == "edited"
    assert events() == ["drift.found"]
    assert Finding.objects.get(kind="drift").path == str(target)
    with pytest.raises(Refused, match="edited by hand"):
        start_write(revision=live_revision(host), actor=actor)
    with pytest.raises(Refused, match="edited by hand"):
        start_write(revision=live_revision(host), replace=True, actor=actor)
    Publishing.objects.update(policy="approval")
    with pytest.raises(Refused, match="edited by hand"):
        submit(revision=live_revision(host), actor=actor)
    beat()
    assert events() == ["drift.found"], "the same drift is one event"
    edit(target, "# more\n")
    beat()
    assert events() == ["drift.found", "drift.found"]


def test_taking_the_edit_back_settles_it(target, beat, host, do, actor):
    whole = target.read_text()
    edit(target)
    beat()
    target.write_text(whole)
    assert beat().case == ""
    assert events() == ["drift.found", "drift.gone"]
    assert not Finding.objects.filter(kind="drift").exists()
    do(start_write, revision=live_revision(host), actor=actor)


def test_another_file_in_its_place(target, beat):
    target.write_text("models: {}\n")
    assert beat().case == "replaced"
    target.write_text(stamped("# a\n# b\n# c\nmodels: {}\n", host="elsewhere", revision=3))
    assert beat().case == "edited", "with a header of ours"


def test_a_removed_file_has_five_seconds_to_come_back(target, beat):
    text = target.read_text()
    target.unlink()
    assert beat().case == ""
    target.write_text(text)
    assert beat(5).case == ""
    target.unlink()
    beat()
    assert beat(2).case == "", "it is asked again no sooner than after five seconds"
    assert beat(5).case == "removed"
    assert beat(5).case == "removed"
    assert events() == ["drift.found"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_that_may_not_be_read(target, beat):
    target.chmod(0)
    watch = beat()
    assert watch.case == "unreadable"
    assert "Permission denied" in watch.problem


def test_something_else_than_a_file(target, beat, host, actor):
    target.unlink()
    target.mkdir()
    watch = beat()
    assert watch.case == "unreadable"
    assert "not a regular file" in watch.problem
    with pytest.raises(Refused, match="cannot be read"):
        keep_ours(host=host, finding=watch.finding, actor=actor)


def test_an_older_text_of_ours_is_offered_as_live(target, beat, host, do, actor):
    first = live_revision(host)
    old = first.text
    Revision.objects.filter(pk=first.pk).update(state="superseded")
    text = stamped("# a\n# b\n# c\nmodels: {}\n", host="local", revision=2)
    newer = Revision.objects.create(
        host=host, number=2, dialect="llama-swap", text=text, sha256="s", body_sha256="b", state="written"
    )
    type(host).objects.update(written_sha256=newer.sha256)
    assert target.read_text() == old
    watch = beat()
    assert watch.case == "restored"
    adopt_seen(host=host, sha256=watch.sha256, actor=actor)
    assert watch_of(host).case == ""
    assert not DiskVersion.objects.exists(), "it is a revision already"


def test_nothing_of_ours_is_no_drift(scanned, host, beat, tmp_path):
    host.publish_path = str(tmp_path / "router.yaml")
    host.save()
    (tmp_path / "router.yaml").write_text("models: {}\n")
    watch = beat()
    assert (watch.case, bool(watch.sha256)) == ("", True)


def test_a_text_of_others_is_kept_once_and_without_secrets(target, beat):
    edit(target, 'apiKeys:\n  - "verysecretvalue"\n')
    beat()
    beat()
    version = DiskVersion.objects.get()
    assert "verysecretvalue" not in version.text
    assert 'apiKeys:\n  - "very…"' in version.text
    assert version.sha256 == TargetWatch.objects.get().sha256
    edit(target, "# more\n")
    beat()
    assert DiskVersion.objects.count() == 2


@pytest.mark.parametrize(
    "text",
    [
        'apiKeys: ["alpha-secret", bravo-secret]\nmodels: {}\n',
        'apiKeyModels:\n  "alpha-secret": [a]\n  bravo-secret:\n    - b\n',
        'apiKeys:\n- alpha-secret\n- "bravo-secret"\nmodels: {\n',
        'apiKeys: [alpha-secret, "bravo-secret"\n x: - [\n',
    ],
)
def test_keys_are_masked_even_in_a_broken_file(host, text):
    stored = storable_text(host, text)
    assert "alpha-secret" not in stored
    assert "bravo-secret" not in stored


def test_what_stands_for_a_key_is_no_secret(host):
    text = 'apiKeys:\n  - "<key-12>"\n  - "${env.CLIENT_KEY}"\n'
    assert storable_text(host, text) == text


def test_what_lies_there_is_compared_by_model(target, beat, host):
    lines = target.read_text()
    target.write_text(lines.replace("ttl: 600", "ttl: 5", 1))
    beat()
    drifted = drift_of(host)
    found = compare_with_disk(drifted, storable_text(host, drifted.live.text))
    [change] = found.difference.models
    assert [(field.name, field.before, field.after) for field in change.fields] == [("ttl", "600", "5")]
    target.write_text(lines + "models: [\n")
    beat()
    drifted = drift_of(host)
    assert compare_with_disk(drifted, storable_text(host, drifted.live.text)) is None


def test_keeping_ours_writes_the_live_text_again(target, beat, host, do, make_user):
    otto = Actor(user=make_user("operator", "otto"), name="otto")
    ours = target.read_text()
    edit(target)
    theirs = target.read_text()
    watch = beat()
    started = do(keep_ours, host=host, finding=watch.finding, actor=otto)
    assert Job.objects.get(pk=started.job.pk).state == State.SUCCEEDED
    assert target.read_text() == ours
    assert (target.parent / "router.yaml.bak-1").read_text() == theirs
    assert watch_of(host).case == ""
    assert events() == ["drift.found", "drift.keep-ours", "drift.gone"]
    assert DiskVersion.objects.count() == 1


def test_keeping_ours_makes_a_removed_file_again(target, beat, host, do, actor):
    ours = target.read_text()
    target.unlink()
    beat()
    do(keep_ours, host=host, finding=beat(5).finding, actor=actor)
    assert target.read_text() == ours


def test_what_was_changed_since_it_was_seen_is_not_overwritten(target, beat, host, do, actor):
    edit(target)
    watch = beat()
    edit(target, "# meanwhile\n")
    started = do(keep_ours, host=host, finding=watch.finding, actor=actor)
    assert Job.objects.get(pk=started.job.pk).error_kind == "Drift"
    assert "# meanwhile" in target.read_text()
    with pytest.raises(Refused, match="another one by now"):
        keep_ours(host=host, finding=watch.finding, actor=actor)


def test_by_hand_nothing_is_written_until_somebody_resumes(target, beat, host, do, actor):
    do(manage_by_hand, host=host, actor=actor)
    edit(target)
    assert beat().case == "edited"
    assert not Finding.objects.filter(kind="drift").exists(), "nobody has to be told"
    with pytest.raises(Refused, match="managed by hand"):
        start_write(revision=live_revision(host), actor=actor)
    do(save_policy, host=host, policy="auto", actor=actor)
    do(write_due)
    assert "# mine" in target.read_text()
    do(resume, host=host, actor=actor)
    assert Finding.objects.filter(kind="drift").exists()
    with pytest.raises(Refused, match="edited by hand"):
        start_write(revision=live_revision(host), actor=actor)


def test_later_means_until_the_file_changes_again(target, beat, host, do, actor):
    edit(target)
    remind_later(host=host, finding=beat().finding, actor=actor)
    assert not watch_of(host).calls
    assert not Finding.objects.filter(kind="drift").exists()
    with pytest.raises(Refused, match="edited by hand"):
        start_write(revision=live_revision(host), actor=actor)
    edit(target, "# more\n")
    assert beat().calls


def test_writing_by_itself_stops_at_a_drift(target, beat, host, do, actor):
    edit(target)
    beat()
    Revision.objects.filter(state="written").update(body_sha256="other")
    type(host).objects.update(written_at=timezone.now() - timedelta(minutes=1))
    do(save_policy, host=host, policy="auto", actor=actor)
    assert Job.objects.filter(kind="publish").count() == 1


def test_a_look_from_before_a_write_is_not_believed(target, beat, host, do, actor, monkeypatch):
    with monkeypatch.context() as patch:
        asked = questions(patch)
        beat()
    answer = {"path": str(target), "sha256": "0" * 64, "size_bytes": 1, "has_header": True, "text": "x"}
    do(start_write, revision=live_revision(host), actor=actor)
    target_looked_at(slug="local", token=asked[0]["token"], answer=answer)
    assert watch_of(host).case == ""


def test_what_a_host_says_is_believed_only_when_asked_for(target, beat, host, monkeypatch):
    asked = questions(monkeypatch)
    beat()
    answer = {"path": str(target), "sha256": "0" * 64, "size_bytes": 1, "has_header": True, "text": "x"}
    target_looked_at(slug="local", token="guessed", answer=answer)
    target_looked_at(slug="other", token=asked[0]["token"], answer=answer)
    for broken in ({**answer, "size_bytes": -1}, {**answer, "has_header": 1}, {**answer, "modified_seconds": "x"}, []):
        target_looked_at(slug="local", token=asked[0]["token"], answer=broken)
    assert watch_of(host).case == ""
    target_looked_at(slug="local", token=asked[0]["token"], answer=answer)
    assert watch_of(host).case == "edited"


def test_word_from_the_system_makes_a_look_come_at_once(target, beat, host, do):
    edit(target)
    do(target_stirs, slug="local")
    assert watch_of(host).case == "edited"
    target_stirs(slug="nobody")
    target_stirs(slug=7)


def test_the_drift_of_another_path_is_forgotten(target, beat, host, actor, tmp_path):
    edit(target)
    beat()
    save_target(host=host, path=str(tmp_path / "other.yaml"), actor=actor)
    assert not Finding.objects.filter(kind="drift").exists()
    host.refresh_from_db()
    assert watch_of(host).case == ""
    assert beat().case == ""


def test_who_may_decide(target, beat, host, make_user):
    edit(target)
    vera = Actor(user=make_user("viewer"), name="vera")
    finding = beat().finding
    for call, more in ((keep_ours, {"finding": finding}), (manage_by_hand, {}), (remind_later, {"finding": finding})):
        with pytest.raises(NotAllowed):
            call(host=host, actor=vera, **more)


def test_taking_theirs_is_an_import_and_then_a_persons_write(target, beat, host, do, actor):
    text = target.read_text()
    edit(target.parent / "router.yaml", 'apiKeys:\n  - "verysecretvalue"\n')
    finding = beat().finding
    batch = do(take_theirs, host=host, finding=finding, actor=actor)
    batch.refresh_from_db()
    assert batch.state == "read", batch.problem
    assert "verysecret" not in str(batch.report)
    assert not watch_of(host).calls
    do(save_policy, host=host, policy="auto", actor=actor)
    do(write_due)
    assert target.read_text() != text, "nothing is written over it by itself"
    do(save_policy, host=host, policy="manual", actor=actor)
    started = do(start_write, revision=live_revision(host), actor=actor)
    assert Job.objects.get(pk=started.job.pk).state == State.SUCCEEDED
    assert target.read_text() == text
    assert watch_of(host).case == ""


def test_what_was_taken_holds_for_that_text_alone(target, beat, host, do, actor):
    edit(target)
    do(take_theirs, host=host, finding=beat().finding, actor=actor)
    edit(target, "# meanwhile\n")
    started = do(start_write, revision=live_revision(host), actor=actor)
    assert Job.objects.get(pk=started.job.pk).error_kind == "Drift"
    with pytest.raises(Refused, match="edited by hand"):
        start_write(revision=live_revision(host), actor=actor)
