"""Pages of machines: adding, the code that is shown once, what is said about them, and the endpoints they ask."""

from __future__ import annotations

import json
import re
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from gpus_app.models import Agent, Host
from models_app.api import agents as endpoints
from models_app.models import Root
from quartermaster_site import broker_accounts
from quartermaster_site.access.models import AuditEntry
from quartermaster_site.agent import identity
from quartermaster_site.errors import Unavailable
from quartermaster_site.jobs.models import ControlRound
from quartermaster_site.jobs.tasks import sweep_lost_jobs
from quartermaster_site.rate import RateLimit
from quartermaster_site.version import PROTOCOL

API = "/api/v1/agents"


@pytest.fixture(autouse=True)
def _redis(monkeypatch):
    monkeypatch.setenv("QM_REDIS_URL", "redis://:shared@broker.example:6379/0")
    monkeypatch.setattr("models_app.pages.host_page.broker_problem", lambda: "")
    monkeypatch.setattr(broker_accounts, "why_shared", lambda: "")
    monkeypatch.setattr(broker_accounts, "grant", lambda *arguments: None)
    monkeypatch.setattr(broker_accounts, "revoke", lambda *arguments: None)
    monkeypatch.setattr(endpoints, "ENROLMENTS", RateLimit(per_second=1, burst=50))


def code_on(response):
    return response.context["command"].rpartition(" ")[2]


def ask(path, body):
    return Client().post(f"{API}/{path}/", body, content_type="application/json")


def enrol(code, **more):
    key = identity.new_key()
    facts = {"code": code, "public_key": key[1], "worker": "box", "version": "0.1.0", "protocol": PROTOCOL, **more}
    return ask("enrol", facts), key[0]


def check(private, enrolment, **more):
    facts = {"enrolment": enrolment, "instance": "one", "worker": "box", "version": "0.1.0", "protocol": PROTOCOL}
    body = json.dumps({**facts, **more})
    me = identity.Identity(server="", slug="", enrolment=enrolment, private_key=private, broker_url="")
    return ask("check", {"body": body, "signature": me.sign(body.encode())})


@pytest.mark.django_db
class TestAdding:
    def test_the_whole_command_is_shown_once(self, admin):
        Host.objects.create(slug="a-box", name="Another")
        response = admin.post("/machines/add/", {"slug": "gpu-a", "name": "Big one"})
        command = response.context["command"]
        assert command.startswith("./quartermaster agent --server http://testserver --code qme-")
        assert command.encode() in response.content
        assert response["Cache-Control"] == "no-store, private"
        assert response.context["shell"].host.slug == "gpu-a", "the strip is about this host"
        page = admin.get("/hosts/gpu-a/machine/").content.decode()
        assert "for its agent" in page
        assert code_on(response) not in page
        assert b"for its agent" in admin.get("/hosts/").content

    def test_a_machine_arrives(self, admin):
        code = code_on(admin.post("/machines/add/", {"slug": "gpu-a"}))
        response, private = enrol(code)
        given = response.json()
        assert response.status_code == 200
        assert given["broker_url"].startswith("redis://qm-host-gpu-a:")
        assert given["broker_url"].endswith("@broker.example:6379/0")
        assert given["own_account"] is True
        answer = check(private, given["enrolment"]).json()
        assert (answer["state"], answer["paused"]) == ("ok", False)
        page = admin.get("/hosts/gpu-a/machine/").content.decode()
        assert "an account of its own" in page
        secret = given["broker_url"].split(":")[2].split("@")[0]
        stored = json.dumps([list(model.objects.values()) for model in (Agent, AuditEntry)], default=str)
        assert secret not in stored

    def test_a_used_code_is_refused_and_the_page_says_so(self, admin):
        code = code_on(admin.post("/machines/add/", {"slug": "gpu-a"}))
        enrol(code)
        response, _ = enrol(code, worker="another")
        assert response.status_code == 403
        assert "each works once" in response.json()["error"]["message"]
        assert "another (127.0.0.1): This code was used" in admin.get("/hosts/gpu-a/machine/").content.decode()

    def test_a_code_that_is_over_is_refused_and_a_new_one_offered(self, admin):
        code = code_on(admin.post("/machines/add/", {"slug": "gpu-a"}))
        assert "The code is good until" in admin.get("/hosts/gpu-a/machine/").content.decode()
        Agent.objects.update(code_expires_at=timezone.now() - timedelta(minutes=1))
        page = admin.get("/hosts/gpu-a/machine/").content.decode()
        assert "The code is over." in page
        assert "waiting" not in page
        response, _ = enrol(code, worker="late")
        assert response.status_code == 403
        message = response.json()["error"]["message"]
        assert re.match(r"This code was good until [-0-9]+ [0-9:]+ UTC\. Ask an administrator for a new one", message)
        page = admin.get("/hosts/gpu-a/machine/").content.decode()
        assert f"Last attempt: late (127.0.0.1): {message}" in page
        assert ">New code</button>" in page
        assert enrol(code_on(admin.post("/hosts/gpu-a/machine/code/")))[0].status_code == 200
        assert "The code is over." not in admin.get("/hosts/gpu-a/machine/").content.decode()

    @pytest.mark.parametrize("slug", ["", "A B", "local", "x" * 60])
    def test_a_wrong_name_is_said_beside_its_field(self, admin, host, slug):
        response = admin.post("/machines/add/", {"slug": slug})
        assert response.status_code == 422
        assert response.context["form"].errors["slug"]

    def test_without_a_redis_it_says_why_not(self, admin, monkeypatch):
        monkeypatch.delenv("QM_REDIS_URL")
        assert b"where no other machine can reach it" in admin.get("/machines/add/").content
        assert admin.post("/machines/add/", {"slug": "gpu-a"}).status_code == 422
        assert not Host.objects.filter(slug="gpu-a").exists()

    def test_without_a_redis_it_says_how_to_get_one(self, admin, monkeypatch):
        monkeypatch.delenv("QM_REDIS_URL")
        monkeypatch.setattr("socket.gethostname", lambda: "desk")
        page = admin.get("/machines/add/", headers={"host": "127.0.0.1:8000"}).content.decode()
        assert "apt install redis-server" in page
        assert "QM_AGENT_REDIS_URL=redis://desk:6380/0 ./quartermaster up --host 0.0.0.0" in page

    @pytest.mark.parametrize(("name", "warned"), [("127.0.0.1:8000", True), ("localhost", True), ("testserver", False)])
    def test_a_command_that_leads_nowhere_from_elsewhere_is_said(self, admin, name, warned):
        response = admin.post("/machines/add/", {"slug": "gpu-a"}, headers={"host": name})
        assert ("the server's own machine only" in response.content.decode()) is warned

    def test_one_account_for_all_is_said_plainly(self, admin, monkeypatch):
        monkeypatch.setattr(broker_accounts, "why_shared", lambda: "This broker (version 6.2) is old.")
        page = admin.get("/machines/add/").content.decode()
        assert "This broker (version 6.2) is old. Every enrolled machine is trusted with all queues" in page
        given = enrol(code_on(admin.post("/machines/add/", {"slug": "gpu-a"})))[0].json()
        assert (given["own_account"], given["broker_url"]) == (False, "redis://:shared@broker.example:6379/0")
        assert b"one account for all" in admin.get("/hosts/gpu-a/machine/").content

    def test_a_broker_that_is_away_costs_no_code(self, admin, monkeypatch):
        code = code_on(admin.post("/machines/add/", {"slug": "gpu-a"}))

        def away(*_):
            raise Unavailable("Redis does not answer (QM_REDIS_URL).")

        with monkeypatch.context() as patch:
            patch.setattr(broker_accounts, "grant", away)
            assert enrol(code)[0].status_code == 503
        assert enrol(code)[0].status_code == 200


@pytest.mark.django_db
class TestEndpoints:
    def test_junk(self, host):
        for path in ("enrol", "check"):
            for body in ({}, {"body": "x", "signature": "y"}, {"code": "x" * 500}, [], "x"):
                assert ask(path, json.dumps(body)).status_code in (400, 403, 422)
            assert Client().get(f"{API}/{path}/").status_code == 405

    @pytest.mark.parametrize("key", ["", "AAAA", "no base64!", "A" * 64])
    def test_a_key_that_is_none(self, admin, key):
        code = code_on(admin.post("/machines/add/", {"slug": "gpu-a"}))
        assert enrol(code, public_key=key)[0].status_code == 422
        assert enrol(code)[0].status_code == 200

    def test_a_forged_check_learns_nothing(self, admin):
        given = enrol(code_on(admin.post("/machines/add/", {"slug": "gpu-a"})))[0].json()
        response = check(identity.new_key()[0], given["enrolment"])
        assert response.status_code == 410
        assert "not valid any more" in response.json()["error"]["message"]

    def test_one_that_was_cut_off_is_told(self, admin):
        response, private = enrol(code_on(admin.post("/machines/add/", {"slug": "gpu-a"})))
        admin.post("/hosts/gpu-a/machine/code/")
        answer = check(private, response.json()["enrolment"])
        assert "removed or enrolled anew" in answer.json()["error"]["message"]

    def test_too_many_attempts_wait(self, host, monkeypatch):
        monkeypatch.setattr(endpoints, "ENROLMENTS", RateLimit(per_second=0.01, burst=3))
        codes = [enrol("qme-guess")[0] for _ in range(4)]
        assert [response.status_code for response in codes] == [403, 403, 403, 429]
        assert int(codes[-1]["Retry-After"]) > 0


@pytest.mark.django_db
class TestTruth:
    @pytest.fixture
    def agent(self, host):
        return Agent.objects.create(host=host, enrolment="e", public_key="k")

    @pytest.mark.parametrize("path", ["/hosts/local/", "/hosts/local/machine/"])
    def test_a_second_agent_a_clock_and_another_version_are_said(self, admin, agent, host, path):
        Agent.objects.update(other_instance="two", other_worker="copy", other_seen_at=timezone.now())
        Host.objects.update(clock_skew_seconds=-90, worker_protocol=PROTOCOL + 1, worker_version="9.9", worker_id="box")
        page = admin.get(path).content.decode().replace("&#x27;", "'")
        assert "A second agent with this machine's credentials was heard" in page
        assert "on copy. It was told to stop; box goes on." in page
        assert "Its clock is 1 min 30 s ahead of the server's" in page or "ahead of the server's" in page
        assert "This agent (9.9) is newer than the server" in page
        assert "other version" in page

    def test_an_old_second_agent_is_forgotten(self, admin, agent):
        Agent.objects.update(other_seen_at=timezone.now() - timedelta(hours=2))
        assert b"second agent" not in admin.get("/hosts/local/").content

    def test_a_machine_that_was_never_measured_has_no_system_and_no_budget(self, admin, agent):
        Host.objects.update(probed_at=None, last_seen_at=None)
        page = admin.get("/hosts/local/machine/").content.decode()
        assert "Not measured yet" in page
        assert "plans run on the CPU" not in page

    def test_what_to_do_next_with_one_that_has_arrived(self, admin, agent):
        assert b"has arrived" in admin.get("/hosts/local/machine/").content
        Root.objects.create(host=agent.host, path="/models")
        assert b"has arrived" not in admin.get("/hosts/local/machine/").content

    def test_an_open_page_follows_the_machine(self, admin, agent):
        poll = {"HX-Request": "true", "HX-Target": "machine"}
        seen = re.search(r"machine/(\?seen=[^\"]+)", admin.get("/hosts/local/machine/").content.decode())[1]
        assert "HX-Refresh" not in admin.get(f"/hosts/local/machine/{seen}", headers=poll)
        Host.objects.update(last_seen_at=timezone.now() - timedelta(minutes=5))
        assert admin.get(f"/hosts/local/machine/{seen}", headers=poll)["HX-Refresh"] == "true"
        assert "offline" in admin.get("/hosts/local/strip/", headers=poll).content.decode()
        rows = admin.get("/hosts/", headers=poll | {"HX-Target": "hosts"}).content.decode()
        assert rows.lstrip().startswith("<table")
        assert "offline" in rows
        assert "was last heard 5 min ago. Its models, plans" in admin.get("/").content.decode()

    def test_a_queue_that_takes_nothing_is_said_first(self, admin, agent, monkeypatch):
        monkeypatch.setattr("models_app.views.overview.broker_problem", lambda: "Redis does not answer (QM_REDIS_URL).")
        assert "does not answer (QM_REDIS_URL). No job starts until" in admin.get("/").content.decode()

    def test_a_control_worker_that_stands_still_is_said(self, admin, agent, monkeypatch):
        monkeypatch.setattr("models_app.views.overview.broker_problem", lambda: "")
        assert "Control worker" not in admin.get("/").content.decode(), "there was no round yet"
        sweep_lost_jobs()
        assert "Control worker" not in admin.get("/").content.decode()
        ControlRound.objects.update(at=timezone.now() - timedelta(minutes=5))
        page = admin.get("/").content.decode()
        assert "Control worker" in page
        assert "was last heard 5 min ago. Until it goes on nothing is planned" in page
        sweep_lost_jobs()
        assert "Control worker" not in admin.get("/").content.decode()

    def test_renaming_keeps_the_short_name(self, admin, agent):
        assert b"/hosts/local/machine/name/" in admin.get("/hosts/local/machine/").content
        refused = admin.post("/hosts/local/machine/name/", {"name": "  "})
        assert (refused.status_code, b"Between 1 and 100 characters" in refused.content) == (422, True)
        long = admin.post("/hosts/local/machine/name/", {"name": "<b>" * 40})
        assert long.status_code == 422
        assert b"&lt;b&gt;&lt;b&gt;" in long.content, "what was typed is still there"
        answer = admin.post("/hosts/local/machine/name/", {"name": "The big one"}, follow=True)
        assert "The big one has its new name" in answer.content.decode()
        assert list(Host.objects.values_list("slug", "name")) == [("local", "The big one")]
        assert AuditEntry.objects.filter(action="host.rename").count() == 1

    def test_pausing(self, admin, agent):
        admin.post("/hosts/local/machine/pause/", {"paused": "1"})
        Host.objects.update(last_seen_at=timezone.now() - timedelta(seconds=20))
        page = admin.get("/hosts/local/machine/").content.decode()
        assert "the host is paused: a new job waits" in page
        assert "heard 20 s ago" in page, "a moment alone would be read as that of the pause"
        admin.post("/hosts/local/machine/pause/", {"paused": "0"})
        assert Host.objects.get().state == "online"

    def test_enrolling_anew_asks_first(self, admin, agent):
        assert b"Enrol anew" in admin.get("/hosts/local/machine/").content
        assert b"is cut off at once" in admin.get("/hosts/local/machine/code/").content
        assert Agent.objects.get().enrolment == "e"

    def test_a_machine_that_was_cut_off_was_heard_before(self, admin, agent):
        Host.objects.update(last_seen_at=timezone.now() - timedelta(minutes=5))
        admin.post("/hosts/local/machine/code/")
        page = admin.get("/hosts/local/machine/").content.decode()
        assert "5 min ago, before it was cut off" in page
        assert "no worker has answered yet" not in page
        assert (
            "Its machine was cut off; it was last heard 5 min ago" in admin.get("/hosts/local/live/").content.decode()
        )
        Host.objects.update(last_seen_at=timezone.now())
        assert "before it was cut off" not in admin.get("/hosts/local/machine/").content.decode()

    def test_removing_asks_for_the_name(self, admin, agent, monkeypatch):
        monkeypatch.setattr(broker_accounts, "forget_queue", lambda slug: None)
        assert b"Type local" in admin.get("/hosts/local/machine/remove/").content
        assert admin.post("/hosts/local/machine/remove/", {"slug": "other"}).status_code == 422
        assert admin.post("/hosts/local/machine/remove/", {"slug": "local"}).status_code == 302
        assert not Host.objects.exists()
