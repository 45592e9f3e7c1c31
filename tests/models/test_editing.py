"""What people pin: sparse, under a version, with history; one path to preview, plan and text."""

from __future__ import annotations

import pytest

from gpus_app.models import Device, Host, HostSetting
from models_app import services
from models_app.core.launch.tokens import split_command
from models_app.models import Change, Override, Revision, Root, Row, StoredPlan, Variant
from quartermaster_site.access.audit import Actor
from quartermaster_site.access.models import Account, AuditEntry
from quartermaster_site.errors import EditConflict, NotAllowed, Refused
from quartermaster_site.jobs.models import Job
from tests.zoo import zoo


@pytest.fixture(scope="module")
def shelf(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shelf")
    for name in ("qwen3-8b-q4_k_m", "mixtral-8x7b-q4_0"):
        zoo.write_model(name, str(folder))
    return folder


@pytest.fixture
def row(host, shelf, django_capture_on_commit_callbacks):
    """A chat model on a host with one 24 GiB card, planned."""
    Device.objects.create(
        host=host, index=0, name="RTX 3090", vendor="nvidia", total_bytes=24 << 30, free_bytes=23 << 30
    )
    HostSetting.objects.create(host=host, section="memory", values={"targetVramGB": 22.5, "maxRamGB": 48.0}, version=1)
    Host.objects.filter(pk=host.pk).update(ram_total_bytes=64 << 30, ram_available_bytes=58 << 30)
    Root.objects.create(host=host, path=str(shelf))
    with django_capture_on_commit_callbacks(execute=True):
        services.start_scan(host=host, actor=Actor())
    return Row.objects.select_related("host").get(served_id__startswith="qwen3-8b")


@pytest.fixture
def editor(make_user):
    user = make_user("editor")
    return Actor(user=user, name=user.username)


@pytest.fixture
def save(row, editor, django_capture_on_commit_callbacks):
    """`save(ctx=8192)` as an editor, from the newest version, with the plan that follows."""

    def run(actor=editor, version=None, **values):
        version = services.pinned(row).version if version is None else version
        with django_capture_on_commit_callbacks(execute=True):
            return services.save_override(row=row, values=values, version=version, actor=actor)

    return run


def _counts():
    return Override.objects.count(), Change.objects.count(), AuditEntry.objects.count(), Job.objects.count()


def _text():
    text = Revision.objects.order_by("-number").first().text
    return "\n".join(line for line in text.splitlines() if not line.startswith("#"))


def _command(row):
    """The words of the model's command in the newest text."""
    import yaml

    entry = yaml.safe_load(Revision.objects.order_by("-number").first().text)["models"][row.served_id]
    return split_command(entry["cmd"])


def test_preview_save_and_text_are_the_same_words(row, save):
    values = {"ctx": 8192, "parallel": 2, "kvK": "q8_0", "threads": 5, "temp": 0.0, "customArgs": "--prio 2\n-t 12"}
    override = services.edited(row, services.pinned(row).override, values, is_moe=False)
    preview = services.preview_plan(row=row, override=override).base
    Account.objects.filter(user__username="editor").update(custom_args=True)
    save(actor=_fresh_editor(), **values)
    saved = services.preview_plan(row=row).base
    assert preview.argv == saved.argv
    assert _command(row) == list(saved.argv)
    assert StoredPlan.objects.get(row=row, profile="base").ctx_tokens == 8192


def _fresh_editor():
    from django.contrib.auth import get_user_model

    user = get_user_model().objects.get(username="editor")
    return Actor(user=user, name=user.username)


def test_a_save_that_changes_nothing_leaves_no_trace(row, save):
    before = _counts()
    save(ctx=0, kvK="", temp=None, dry=None, ctxVariants=())
    assert _counts() == before
    save(ctx=8192)
    stored = _counts()
    save(ctx=8192)
    assert _counts() == stored


def test_setting_then_clearing_a_field_restores_the_text(row, save):
    before = _text()
    save(threads=3)
    assert _text() != before
    save(threads=0)
    assert _text() == before
    assert Override.objects.get().fields == {}


def test_what_the_planner_chooses_anyway_is_not_pinned(row, save):
    chosen = services.preview_plan(row=row).base.placement
    save(ctx=chosen.ctx_tokens, threads=7, parallel=2, topP=0.9)
    assert Override.objects.get().fields == {"parallel": 2, "topP": 0.9}
    base = services.preview_plan(row=row).base
    assert base.placement.ctx_tokens == chosen.ctx_tokens


def test_zero_and_false_are_values(row, save):
    save(temp=0.0, ctxCheckpoints=0, preserveThinking=False)
    assert Override.objects.get().fields == {"temp": 0.0, "ctxCheckpoints": 0, "preserveThinking": False}
    assert "--reasoning-preserve" not in services.preview_plan(row=row).base.argv


def test_the_second_of_two_is_told_what_the_first_saved(row, save):
    save(ctx=8192, version=0)
    with pytest.raises(EditConflict) as caught:
        save(ctx=0, threads=4, version=0)
    assert (caught.value.saved, caught.value.version, caught.value.by) == ({"ctx": 8192}, 1, "editor")
    assert Override.objects.get().fields == {"ctx": 8192}


def test_the_same_form_sent_twice_is_no_conflict(save):
    save(ctx=8192, version=0)
    assert save(ctx=8192, version=0).version == 1


def test_forms_of_other_fields_do_not_stand_in_each_others_way(row, save):
    save(ctx=8192, version=0)
    save(threads=4, version=0)
    save(ctx=16384, temp=0.5, version=2)
    assert Override.objects.get().fields == {"ctx": 16384, "threads": 4, "temp": 0.5}
    with pytest.raises(EditConflict):
        save(ctx=4096, version=1)
    with pytest.raises(EditConflict):
        save(threads=2, version=-1)


def test_the_state_at_a_version_is_what_its_form_showed(row, save, host):
    Override.objects.create(host=host, match="*qwen3*", fields={"ctx": 4096})
    save(ctx=8192, threads=3)
    save(ctx=0, temp=0.5)
    now = services.pinned(row).fields
    assert services.state_at(row, now, 2) == {"threads": 3, "temp": 0.5}
    assert services.state_at(row, now, 1) == {"ctx": 8192, "threads": 3}
    assert services.state_at(row, now, 0) == {"ctx": 4096}, "the pattern"


def test_a_pattern_applies_until_the_model_has_settings_of_its_own(row, save, host):
    Override.objects.create(host=host, match="*mixtral*", fields={"ctx": 4096})
    pattern = Override.objects.create(host=host, match="*qwen3*", fields={"ctx": 8192, "threads": 3})
    Variant.objects.create(override=pattern, name="short", fields={"ctx": 4096})
    held = services.pinned(row)
    assert (held.pattern, held.version, held.fields) == ("*qwen3*", 0, {"ctx": 8192, "threads": 3})
    save(threads=5)
    own = Override.objects.get(match=row.path)
    assert own.fields == {"ctx": 8192, "threads": 5}
    assert [variant.name for variant in own.variants.all()] == ["short"]
    save(ctx=0)
    assert services.pinned(row).fields == {"threads": 5}, "the pattern does not shine through"


def test_the_first_pattern_wins_and_quants_narrow(row, host):
    Override.objects.create(host=host, match="*qwen3*", quant="Q8_0", fields={"ctx": 4096}, position=0)
    Override.objects.create(host=host, match="*8b*", quant="q4_k_m", fields={"ctx": 8192}, position=1)
    Override.objects.create(host=host, match="*", fields={"ctx": 12288}, position=2)
    assert services.pinned(row).override.ctx == 8192


def test_a_text_owns_its_fields_and_needs_the_grant(row, save, make_user):
    save(threads=3)
    with pytest.raises(NotAllowed):
        save(customArgs="-t 12")
    Account.objects.filter(user__username="editor").update(custom_args=True)
    save(actor=_fresh_editor(), customArgs="-t  12\n\t--prio 2 # both\n")
    assert Override.objects.get().fields == {"customArgs": "-t  12\n\t--prio 2 # both\n"}
    viewer = make_user("viewer")
    with pytest.raises(NotAllowed):
        save(actor=Actor(user=viewer, name="viewer"), ctx=8192)


@pytest.mark.parametrize(
    ("values", "key"), [({"temp": 9.0}, "temp"), ({"flashAttn": "maybe"}, "flashAttn"), ({"ub": 7}, "ub")]
)
def test_values_out_of_range_are_refused_by_name(row, save, values, key):
    with pytest.raises(Refused) as caught:
        save(**values)
    assert list(caught.value.fields) == [key]
    assert not Override.objects.exists()


def test_history_tells_every_change_and_restores(row, save, editor, django_capture_on_commit_callbacks):
    save(ctx=8192, threads=3)
    first = Change.objects.get()
    assert (first.changes, first.actor) == ({"ctx": [None, 8192], "threads": [None, 3]}, "editor")
    save(ctx=16384, threads=0)
    assert Change.objects.first().changes == {"ctx": [8192, 16384], "threads": [3, None]}
    services.restore_override(row=row, change=first, version=2, actor=editor)
    assert Override.objects.get().fields == {"ctx": 8192, "threads": 3}
    assert Change.objects.count() == 3
    services.reset_override(row=row, version=3, actor=editor)
    assert Override.objects.get().fields == {}
    assert [change.action for change in Change.objects.all()] == ["reset", "restore", "save", "save"]
    assert AuditEntry.objects.filter(action="override.restore").count() == 1
