"""Enrolled machines: codes, whose messages are believed, two of them with one identity, other versions, pausing."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from celery.signals import worker_ready
from django.utils import timezone

from gpus_app import agent_messages, agents, enrolment
from gpus_app.agents import takes_over
from gpus_app.models import Agent, Host
from gpus_app.tasks import agent_message
from quartermaster_site import broker_accounts
from quartermaster_site.access.audit import Actor
from quartermaster_site.access.models import AuditEntry
from quartermaster_site.agent import envelope, identity
from quartermaster_site.celery import app
from quartermaster_site.errors import NotAllowed, Refused
from quartermaster_site.jobs.models import Job, State
from quartermaster_site.jobs.services import start_job
from quartermaster_site.version import PROTOCOL

MACHINE = {"worker": "box", "version": "0.1.0", "protocol": PROTOCOL, "address": "10.0.0.7"}


@pytest.fixture(autouse=True)
def _broker(monkeypatch):
    """A Redis without accounts that nobody asks."""
    app.loader.import_default_modules()
    monkeypatch.setenv("QM_REDIS_URL", "redis://:shared@10.0.0.1:6379/0")
    monkeypatch.setattr("quartermaster_site.jobs.connection.broker_problem", lambda: "")
    monkeypatch.setattr(broker_accounts, "why_shared", lambda: "one account")
    for name in ("forget_queue", "revoke", "grant"):
        monkeypatch.setattr(broker_accounts, name, lambda *arguments: None)


@pytest.fixture
def sent(monkeypatch):
    calls = []
    monkeypatch.setattr("quartermaster_site.jobs.dispatch.send", lambda *args, **kwargs: calls.append(args))
    return calls


@pytest.fixture
def enrol(actor, sent):
    """`enrol("gpu-a")` is the identity of a machine that enrolled as a new host."""

    def enrolled(slug):
        _, code = enrolment.create_host(slug=slug, name="", actor=actor)
        return redeemed(code)

    return enrolled


def redeemed(code):
    private, public = identity.new_key()
    given = enrolment.redeem(code=code, public_key=public, **{**MACHINE, "protocol": PROTOCOL})
    return identity.Identity(
        server="http://s", private_key=private, **{name: given[name] for name in ("slug", "enrolment", "broker_url")}
    )


@pytest.fixture
def says(monkeypatch):
    """`says(me, task, **arguments)` is a message of that machine as the control worker gets it."""

    def message(me, task, instance="one", **arguments):
        monkeypatch.setenv("QM_AGENT_INSTANCE", instance)
        monkeypatch.setattr(identity, "current", lambda: me)
        packed = envelope.sealed(task, arguments)
        monkeypatch.delenv("QM_AGENT_INSTANCE")
        agent_message(**packed)
        return packed

    return message


def beat(says, me, instance="one", worker="box", **more):
    facts = {"slug": me.slug, "worker": worker, "version": "0.1.0", "sent_at": timezone.now().timestamp()}
    return says(me, agent_messages.HEARTBEAT, instance, **{**facts, "protocol": PROTOCOL, **more})


class TestCodes:
    def test_a_machine_enrols_once(self, actor, sent):
        host, code = enrolment.create_host(slug=" GPU-A ", name="", actor=actor)
        me = redeemed(code)
        assert (me.slug, me.broker_url) == ("gpu-a", "redis://:shared@10.0.0.1:6379/0")
        assert host.agent.code_digest not in code
        with pytest.raises(NotAllowed, match=r"was used at .* each works once. Ask an administrator"):
            redeemed(code)
        host.agent.refresh_from_db()
        assert "box (10.0.0.7): This code was used" in host.agent.attempt_problem
        log = list(AuditEntry.objects.order_by("id").values_list("action", "result", "actor"))
        assert log == [
            ("host.create", "ok", "admin"),
            ("host.code", "ok", "admin"),
            ("host.enrol", "ok", "worker of gpu-a"),
            ("host.enrol", "refused", "worker of gpu-a"),
        ]
        assert code not in json.dumps(list(AuditEntry.objects.values()), default=str)

    def test_a_code_ends(self, actor, sent):
        _, code = enrolment.create_host(slug="gpu-a", name="", actor=actor)
        Agent.objects.update(code_expires_at=timezone.now() - timedelta(seconds=1))
        with pytest.raises(NotAllowed, match="This code was good until"):
            redeemed(code)

    def test_a_foreign_code_is_not_known(self, db):
        with pytest.raises(NotAllowed, match="not known here"):
            redeemed("qme-of-another-server")
        assert AuditEntry.objects.get().result == "refused"

    def test_another_version_is_told_what_to_do_and_keeps_its_code(self, actor, sent):
        _, code = enrolment.create_host(slug="gpu-a", name="", actor=actor)
        key = identity.new_key()[1]
        for protocol, words in ((PROTOCOL - 1, "update it, then"), (PROTOCOL + 1, "update the server")):
            with pytest.raises(Refused, match=words):
                enrolment.redeem(code=code, public_key=key, **{**MACHINE, "protocol": protocol})
        redeemed(code)

    def test_a_new_code_cuts_off_what_enrolled_before(self, actor, enrol, says):
        me = enrol("gpu-a")
        beat(says, me)
        host = Host.objects.get(slug="gpu-a")
        assert host.state == "online"
        again = redeemed(enrolment.new_code(host=host, actor=actor))
        host.refresh_from_db()
        assert host.state == "never"
        beat(says, me)
        host.refresh_from_db()
        assert host.state == "never"
        beat(says, again)
        host.refresh_from_db()
        assert host.state == "online"

    @pytest.mark.parametrize("slug", ["", "-a", "a b", "ä", "x" * 41])
    def test_a_slug_is_checked(self, actor, slug):
        with pytest.raises(Refused) as refused:
            enrolment.create_host(slug=slug, name="", actor=actor)
        assert "slug" in refused.value.fields

    def test_a_worker_beside_the_server_needs_none(self, actor, host):
        with pytest.raises(Refused, match="runs beside the server"):
            enrolment.new_code(host=host, actor=actor)

    @pytest.mark.parametrize("role", ["viewer", "operator", "editor"])
    def test_only_administrators(self, make_user, host, role):
        someone = Actor(user=make_user(role), name=role)
        for act in (
            lambda: enrolment.create_host(slug="x", name="", actor=someone),
            lambda: enrolment.new_code(host=host, actor=someone),
            lambda: enrolment.pause_host(host=host, paused=True, actor=someone),
            lambda: enrolment.remove_host(host=host, typed_slug=host.slug, actor=someone),
        ):
            with pytest.raises(NotAllowed):
                act()


class TestBroker:
    @pytest.mark.parametrize(
        ("url", "others", "address", "words"),
        [
            ("", "", "", "no other machine can reach it"),
            ("unix:///run/r.sock", "", "", "a socket of this machine"),
            ("redis://127.0.0.1:6379", "", "10.0.0.7", "a loopback address"),
            ("redis://127.0.0.1:6379", "", "127.0.0.1", ""),
            ("redis://127.0.0.1:6379", "redis://10.0.0.1:6379", "10.0.0.7", ""),
            ("redis://broker:6379", "", "10.0.0.7", ""),
        ],
    )
    def test_why_a_machine_cannot_reach_it(self, monkeypatch, url, others, address, words):
        monkeypatch.setenv("QM_REDIS_URL", url)
        monkeypatch.setenv("QM_AGENT_REDIS_URL", others)
        assert words in enrolment.why_no_machines(address)
        assert bool(enrolment.why_no_machines(address)) == bool(words)

    def test_an_account_takes_the_place_of_ours(self, monkeypatch):
        monkeypatch.setenv("QM_REDIS_URL", "rediss://u:secret@broker:6380/3")
        url = broker_accounts.address_for("gpu-a", "p/w")
        assert url == "rediss://qm-host-gpu-a:p%2Fw@broker:6380/3"


class TestMessages:
    def test_a_heartbeat_is_noted(self, enrol, says):
        beat(says, enrol("gpu-a"))
        host = Host.objects.get(slug="gpu-a")
        assert (host.state, host.worker_id, host.worker_protocol) == ("online", "box", PROTOCOL)

    def test_each_delivery_counts_once(self, enrol, says):
        packed = beat(says, enrol("gpu-a"))
        Host.objects.update(last_seen_at=None)
        agent_message(**packed)
        assert Host.objects.get(slug="gpu-a").last_seen_at is None

    def test_a_machine_speaks_for_its_own_host_only(self, enrol, says):
        me, other = enrol("gpu-a"), enrol("gpu-b")
        beat(says, me, slug=other.slug)
        assert Host.objects.get(slug="gpu-b").state == "never"

    def test_and_reports_for_its_own_jobs_only(self, enrol, says, actor):
        me, other = enrol("gpu-a"), enrol("gpu-b")
        beat(says, other)
        job = start_job(kind="scan", host=Host.objects.get(slug="gpu-b"), actor=actor).job
        event = {"job": job.pk, "token": job.token, "kind": "failed", "data": {"error": "x"}}
        says(me, agent_messages.JOB_EVENT, event=event)
        job.refresh_from_db()
        assert job.state == State.QUEUED
        says(other, agent_messages.JOB_EVENT, event=event)
        job.refresh_from_db()
        assert job.state == State.FAILED

    def test_a_signature_of_another_is_refused(self, enrol, says):
        me, other = enrol("gpu-a"), enrol("gpu-b")
        beat(says, identity.Identity(**{**_facts(other), "enrolment": me.enrolment, "slug": me.slug}))
        assert Host.objects.get(slug="gpu-a").state == "never"

    @pytest.mark.parametrize("part", ["body", "task", "instance", "sequence", "signature", "enrolment"])
    def test_a_changed_message_is_refused(self, enrol, says, part):
        packed = beat(says, enrol("gpu-a"))["envelope"]
        Host.objects.update(last_seen_at=None)
        changed = packed["sequence"] + 1 if part == "sequence" else packed[part][:-2] + "zz"
        agent_message(envelope={**packed, part: changed})
        assert Host.objects.get(slug="gpu-a").last_seen_at is None

    @pytest.mark.parametrize("task", ["models_app.tasks.plan_host", "gpus_app.tasks.agent_message", "no.such", ""])
    def test_no_other_task_is_open_to_machines(self, enrol, says, caplog, task):
        says(enrol("gpu-a"), task, slug="gpu-a")
        assert "machines may not" in caplog.text

    @pytest.mark.parametrize("junk", [None, 5, {}, {"envelope": 1}, {"body": "x" * 10}])
    def test_junk_is_refused(self, db, caplog, junk):
        agent_message(envelope=junk)
        assert "refused" in caplog.text

    def test_arguments_that_do_not_fit_are_logged(self, enrol, says, caplog):
        says(enrol("gpu-a"), "models_app.tasks.folders_stir", slug="gpu-a", more=1)
        assert "wrong arguments" in caplog.text


def _facts(me):
    return {name: getattr(me, name) for name in identity.Identity.__dataclass_fields__}


class TestTwoOfThem:
    def at(self, seconds):
        return timezone.now() + timedelta(seconds=seconds)

    def test_the_first_stays_until_it_is_silent(self):
        row = Agent()
        assert takes_over(row, "one", self.at(0))
        assert not takes_over(row, "two", self.at(5))
        assert takes_over(row, "one", self.at(10))
        assert not takes_over(row, "two", self.at(25))
        assert takes_over(row, "two", self.at(31))
        assert (row.instance, row.other_instance) == ("two", "")

    def test_the_second_is_told_off_and_the_page_can_say_so(self, enrol, says):
        me = enrol("gpu-a")
        beat(says, me)
        beat(says, me, instance="two", worker="copy")
        agent = Agent.objects.select_related("host").get()
        assert agent.host.worker_id == "box"
        assert agents.second_agent(agent.host).other_worker == "copy"
        asked = {"worker": "copy", "version": "0.1.0", "protocol": PROTOCOL, "address": "10.0.0.8"}
        answer = agents.check_in(agent, instance="two", **asked)
        assert answer["state"] == "second"
        assert answer["message"] == "An agent with the credentials of gpu-a runs already, on box. Stop one of the two."
        assert agents.check_in(agent, instance="one", **asked)["state"] == "ok"

    def test_one_that_stops_by_request_leaves_its_place(self, enrol, says):
        me = enrol("gpu-a")
        beat(says, me)
        agent = Agent.objects.select_related("host").get()
        agents.leave(agent, "two")
        assert Agent.objects.get().instance == "one"
        agents.leave(agent, "one")
        beat(says, me, instance="two")
        assert (Agent.objects.get().instance, Agent.objects.get().other_instance) == ("two", "")

    def test_what_a_killed_agent_left_is_lost_when_it_is_back(
        self, enrol, says, sent, actor, django_capture_on_commit_callbacks
    ):
        """Not 90 s later; and it starts again."""
        me = enrol("gpu-a")
        beat(says, me)
        host = Host.objects.get(slug="gpu-a")
        job = start_job(kind="scan", host=host, actor=actor).job
        long_ago = timezone.now() - timedelta(seconds=25)
        Job.objects.filter(pk=job.pk).update(state=State.RUNNING, started_at=long_ago, heartbeat_at=long_ago)
        Agent.objects.update(instance_since=long_ago - timedelta(seconds=1))
        beat(says, me)
        job.refresh_from_db()
        assert job.state == State.RUNNING
        Agent.objects.update(instance_seen_at=long_ago)
        with django_capture_on_commit_callbacks(execute=True):
            beat(says, me, instance="two")
        job.refresh_from_db()
        assert (job.state, job.error) == (State.LOST, "The machine's agent was started anew while this ran.")
        assert job.retries.get().state == State.QUEUED

    def test_what_still_reports_is_not_lost(self, enrol, says, actor):
        me = enrol("gpu-a")
        beat(says, me)
        job = start_job(kind="scan", host=Host.objects.get(slug="gpu-a"), actor=actor).job
        Job.objects.filter(pk=job.pk).update(
            state=State.RUNNING, started_at=timezone.now(), heartbeat_at=timezone.now()
        )
        Agent.objects.update(instance_seen_at=timezone.now() - timedelta(seconds=25))
        beat(says, me, instance="two")
        job.refresh_from_db()
        assert job.state == State.RUNNING

    def test_one_that_only_asks_claims_nothing(self, enrol, says):
        me = enrol("gpu-a")
        beat(says, me)
        agent = Agent.objects.select_related("host").get()
        asked = {"worker": "box", "version": "0.1.0", "protocol": PROTOCOL, "address": ""}
        assert agents.check_in(agent, instance="", **asked)["state"] == "ok"
        agent.refresh_from_db()
        assert (agent.instance, agent.other_instance) == ("one", "")


class TestVersions:
    @pytest.fixture(autouse=True)
    def _later(self, monkeypatch):
        """There have been other versions before."""
        for module in ("gpus_app.models", "gpus_app.agents", __name__):
            monkeypatch.setattr(f"{module}.PROTOCOL", 7)

    @pytest.mark.parametrize(("off", "words"), [(-1, "update it"), (1, "update the server")])
    def test_a_mismatch_is_said_on_both_sides_and_jobs_wait(self, enrol, says, actor, off, words):
        me = enrol("gpu-a")
        asked = {"worker": "box", "version": "0.9", "protocol": PROTOCOL + off, "address": ""}
        answer = agents.check_in(Agent.objects.select_related("host").get(), instance="one", **asked)
        assert answer["state"] == "mismatch"
        assert words in answer["message"]
        host = Host.objects.get(slug="gpu-a")
        assert (host.state, host.is_reachable) == ("mismatch", False)
        job = start_job(kind="scan", host=host, actor=actor).job
        assert (job.state, job.state_reason) == (State.WAITING, "gpu-a runs another version")
        beat(says, me)
        assert Host.objects.get(slug="gpu-a").state == "online"

    def test_a_heartbeat_of_another_version_asks_for_nothing(self, enrol, says, sent):
        beat(says, enrol("gpu-a"), protocol=PROTOCOL + 1)
        assert Host.objects.get(slug="gpu-a").state == "mismatch"
        assert sent == []


class TestPausing:
    def test_jobs_are_kept_back_and_sent_when_it_goes_on(
        self, enrol, says, sent, actor, django_capture_on_commit_callbacks
    ):
        beat(says, enrol("gpu-a"))
        host = Host.objects.get(slug="gpu-a")
        with django_capture_on_commit_callbacks(execute=True):
            host = enrolment.pause_host(host=host, paused=True, actor=actor)
            job = start_job(kind="scan", host=host, actor=actor).job
        sent.clear()
        assert (host.state, job.state, job.state_reason) == ("paused", State.WAITING, "gpu-a is paused")
        with django_capture_on_commit_callbacks(execute=True):
            enrolment.pause_host(host=host, paused=False, actor=actor)
        job.refresh_from_db()
        assert job.state == State.QUEUED
        assert [(task, queue) for task, queue in sent] == [("models_app.host_tasks.scan_folders", "host.gpu-a")]
        assert list(AuditEntry.objects.values_list("action", flat=True)[:2]) == ["host.resume", "host.pause"]

    def test_what_was_sent_before_is_not_sent_twice(self, enrol, says, sent, actor, django_capture_on_commit_callbacks):
        beat(says, enrol("gpu-a"))
        host = Host.objects.get(slug="gpu-a")
        with django_capture_on_commit_callbacks(execute=True):
            start_job(kind="scan", host=host, actor=actor)
            enrolment.pause_host(host=host, paused=True, actor=actor)
        sent.clear()
        with django_capture_on_commit_callbacks(execute=True):
            enrolment.pause_host(host=host, paused=False, actor=actor)
        assert sent == []


class TestRemoving:
    def test_its_name_is_typed_and_the_audit_log_stays(self, enrol, says, actor):
        beat(says, enrol("gpu-a"))
        host = Host.objects.get(slug="gpu-a")
        with pytest.raises(Refused) as refused:
            enrolment.remove_host(host=host, typed_slug="gpu-b", actor=actor)
        assert refused.value.fields == {"slug": "Type gpu-a to confirm."}
        enrolment.remove_host(host=host, typed_slug="gpu-a", actor=actor)
        assert not Host.objects.filter(slug="gpu-a").exists()
        assert not Job.objects.filter(kind="probe_devices").exists()
        assert AuditEntry.objects.filter(host_slug="gpu-a", action="host.remove").count() == 1

    def test_the_machine_of_the_server_stays(self, host, actor):
        with pytest.raises(Refused, match="on which Quartermaster itself runs"):
            enrolment.remove_host(host=host, typed_slug="local", actor=actor)


def test_a_new_name_changes_nothing_for_the_machine(enrol, says, actor):
    from gpus_app.services import rename_host

    me = enrol("gpu-a")
    rename_host(host=Host.objects.get(slug="gpu-a"), name="The big one", actor=actor)
    beat(says, me, worker="new-hostname")
    host = Host.objects.get(slug="gpu-a")
    assert (host.state, host.name, host.worker_id) == ("online", "The big one", "new-hostname")


def test_a_clock_that_is_off_is_measured(enrol, says):
    beat(says, enrol("gpu-a"), sent_at=timezone.now().timestamp() - 600)
    host = Host.objects.get(slug="gpu-a")
    assert host.state == "online"
    assert 599 < host.clock_skew_seconds < 602
    asked = {"worker": "box", "version": "9", "protocol": PROTOCOL, "address": "127.0.0.1"}
    agents.check_in(host.agent, instance="", sent_at=timezone.now().timestamp() - 700, **asked)
    host.refresh_from_db()
    assert 699 < host.clock_skew_seconds < 702, "what is asked over HTTP waits in no queue"


def test_a_control_worker_renews_all_access_lists_at_its_start(enrol, monkeypatch):
    """A broker that ran through an upgrade has the accounts, with what the old version allowed."""
    from gpus_app.tasks import renew_broker_accounts

    for slug in ("gpu-a", "gpu-b"):
        enrol(slug)
    Agent.objects.filter(host__slug="gpu-a").update(account_sha256="a" * 64)
    granted = []
    monkeypatch.setenv("QM_ROLE", "control")
    monkeypatch.setattr(broker_accounts, "_ask", lambda *command: ["default", "qm-host-gpu-a"])
    monkeypatch.setattr(broker_accounts, "grant", lambda *account: granted.append(account))
    renew_broker_accounts()
    assert granted == []
    worker_ready.send(sender=None)
    assert granted == [("gpu-a", "a" * 64)]
