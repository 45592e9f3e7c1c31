"""Flags that have to be confirmed before a text is written: by a person, by scripts, by itself, once and not again."""

from __future__ import annotations

import json

import pytest
from django.utils import timezone

from gpus_app.services import request_plan
from models_app.models import Override, Publishing, Revision, Row
from models_app.selectors.comparing import publishing_of
from models_app.selectors.confirming import confirming_of
from models_app.selectors.host_findings import host_findings
from models_app.services import start_write
from models_app.services.publishing import roll_back, save_policy, submit
from quartermaster_site.access.audit import Actor
from quartermaster_site.access.models import AuditEntry
from quartermaster_site.errors import Refused

FLAGS = ["-m", "--model", "--port", "--host", "--threads"]


@pytest.fixture
def target(scanned, host, do, tmp_path):
    """With a program whose help was read."""
    program = tmp_path / "llama-server"
    program.touch(mode=0o755)
    probe = {"kind": "llama", "flags": FLAGS, "problem": ""}
    host.backends.create(slug="l", kind="llama", path=str(program), probe=probe, probed_at=timezone.now())
    do(request_plan, host=host, actor=Actor())
    host.publish_path = str(tmp_path / "router.yaml")
    host.save()
    return tmp_path / "router.yaml"


@pytest.fixture
def arguments(target, do, host):
    """Pin a launch text for the beta model; the newest text."""

    def make(text, name="beta-2b-Q4_0.gguf"):
        path = Row.objects.get(file_name=name).path
        Override.objects.update_or_create(
            host=host, match=path, defaults={"fields": {"customArgs": text}, "version": 1}
        )
        do(request_plan, host=host, actor=Actor())
        return Revision.objects.select_related("host").order_by("-number").first()

    return make


def findings(revision):
    return [(item.severity, item.message) for item in host_findings(revision.host, revision) if item.rule == "V-08"]


def test_a_person_confirms_once(arguments, target, do, actor, host):
    revision = arguments("--thraeds 3")
    [(severity, message)] = findings(revision)
    assert (severity, "beta-2b-q4_0 (--thraeds)" in message) == ("confirm", True)
    with pytest.raises(Refused, match="Confirm V-08 first: 1 model has flags") as refused:
        start_write(revision=revision, confirmed=["V-07"], actor=actor)
    assert refused.value.fields == {"confirm": "Tick V-08."}
    do(start_write, revision=revision, confirmed=["V-08"], actor=actor)
    assert "--thraeds 3" in target.read_text()
    revision.refresh_from_db()
    [kept] = revision.confirmed
    assert (kept["rule"], kept["by"], list(kept["models"]["beta-2b-q4_0"])) == ("V-08", "admin", ["--thraeds"])
    [entry] = AuditEntry.objects.filter(action="config.confirm")
    assert "--thraeds" in entry.reason
    revision.refresh_from_db()
    assert findings(revision)[0][0] == "note"
    do(start_write, revision=arguments("--thraeds 3 --threads 2"), actor=actor)
    with pytest.raises(Refused, match="V-08"):
        start_write(revision=arguments("--thraeds 4 --threads 2"), actor=actor)


def test_what_was_live_before_the_question_existed_is_not_asked_about(arguments, target, do, actor):
    first = arguments("--thraeds 3")
    for item in first.summary["entries"]:
        item.pop("doubtful", None)
    first.save()
    do(start_write, revision=first, actor=actor)
    second = arguments("--thraeds 3 --threads 2")
    assert [severity for severity, _ in findings(second)] == ["note"]
    do(start_write, revision=second, actor=actor)
    assert "--threads 2" in target.read_text()


def test_by_itself_nothing_is_written_that_has_to_be_confirmed(arguments, target, do, actor, host):
    revision = arguments("--thraeds 3")
    do(save_policy, host=host, policy="auto", actor=actor)
    assert not target.exists()
    assert publishing_of(host).held.startswith("V-08: 1 model has flags")
    do(start_write, revision=revision, confirmed=["V-08"], actor=actor)
    type(host).objects.update(written_at=None)
    do(arguments, "--thraeds 3 --threads 2")
    assert "--threads 2" in target.read_text(), "what was confirmed is written by itself from then on"


def test_warnings_about_memory_hold_nothing_back(target, do, actor, host):
    revision = Revision.objects.select_related("host").order_by("-number").first()
    for item in revision.summary["entries"]:
        item["concerns"] = ["over"]
    revision.save()
    assert ("V-10", "warn") in {(item.rule, item.severity) for item in host_findings(host, revision)}
    do(save_policy, host=host, policy="auto", actor=actor)
    assert target.exists()


def test_the_one_who_submits_confirms_and_the_second_is_not_asked(arguments, target, do, make_user, actor, host):
    Publishing.objects.create(host=host, policy="approval")
    revision = arguments("--host 0.0.0.0")
    edda = Actor(user=make_user("editor", "edda"), name="edda")
    with pytest.raises(Refused, match=r"V-08.*\(--host\)"):
        submit(revision=revision, actor=edda)
    submit(revision=revision, confirmed=["V-08"], actor=edda)
    revision.refresh_from_db()
    assert revision.confirmed[0]["by"] == "edda"
    do(start_write, revision=revision, actor=actor)
    assert "--host 0.0.0.0" in target.read_text()


def test_a_rollback_confirms_what_was_there(arguments, target, do, actor):
    first = arguments("--thraeds 3")
    do(start_write, revision=first, confirmed=["V-08"], actor=actor)
    do(start_write, revision=arguments("--threads 2"), actor=actor)
    Revision.objects.update(confirmed=[])
    first.refresh_from_db()
    fresh, _ = do(roll_back, revision=first, actor=actor)
    assert "--thraeds 3" in target.read_text()
    fresh.refresh_from_db()
    assert [item["rule"] for item in fresh.confirmed] == ["V-08"]


def test_generated_flags_are_never_doubtful(target, arguments):
    revision = arguments("--threads 2")
    assert confirming_of(revision).doubts == {}
    assert "doubtful" not in json.dumps(revision.summary)
    assert set(revision.summary["budget"]) == {"vram_gib", "ram_gib", "devices"}
