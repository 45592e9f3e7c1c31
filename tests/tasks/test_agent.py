"""A real agent process on another data folder, a real Valkey between, this process as its server: web and control."""

from __future__ import annotations

import shutil
import signal
import time

import pytest
from django.utils import timezone

from gpus_app import agents, enrolment
from gpus_app.models import Agent
from gpus_app.services import save_target
from models_app.models import Row
from models_app.pages.machine_page import machine_of
from models_app.selectors.fleet import latest_candidate
from models_app.services import register_root, start_scan
from models_app.services.writing import start_write
from quartermaster_site.jobs.models import Job, State
from tests.tasks.brokers import Broker
from tests.tasks.installation import (
    at_full_speed,
    enrol,
    finished,
    in_the_midst,
    installed,
    many_models,
    the_host,
    unplug,
)
from tests.tasks.test_up import free_port
from tests.tiny_models import tiny_gguf

pytestmark = [pytest.mark.redis, pytest.mark.worker, pytest.mark.slow, pytest.mark.django_db(transaction=True)]
MANY = 1200


@pytest.fixture(scope="module")
def broker():
    found = Broker("valkey", free_port())
    yield found
    found.stop()


@pytest.fixture
def installation(broker, tmp_path, monkeypatch, settings):
    with installed(broker, tmp_path, monkeypatch, settings) as found:
        yield found


@pytest.fixture
def enrolled(installation, actor):
    return enrol(installation, actor)


def test_a_broker_that_hangs_or_forgets_and_a_machine_that_is_unplugged(
    installation, enrolled, broker, actor, tmp_path
):
    """Nothing is lost or done twice, and what the pages have at hand is true at each step."""
    register_root(host=the_host(), path=many_models(tmp_path / "one", "one", MANY), actor=actor)
    job = start_scan(host=the_host(), actor=actor).job
    installation.wait(lambda: in_the_midst(job))
    broker.process.send_signal(signal.SIGSTOP)
    time.sleep(3)
    broker.process.send_signal(signal.SIGCONT)
    at_full_speed(tmp_path / "one")
    installation.wait(finished(job))
    job.refresh_from_db()
    assert (job.state, job.result["models"], job.retries.count()) == (State.SUCCEEDED, MANY, 0)

    broker.stop()
    broker.start()
    assert enrolment.renew_accounts() == ["gpu-a"]
    before = timezone.now()
    installation.wait(lambda: the_host().last_seen_at > before)

    register_root(host=the_host(), path=many_models(tmp_path / "two", "two", MANY), actor=actor)
    job = start_scan(host=the_host(), actor=actor).job
    installation.wait(lambda: in_the_midst(job, known=MANY))
    assert enrolled.poll() is None
    unplug(enrolled)
    at_full_speed(tmp_path / "two")
    assert Job.objects.get(pk=job.pk).state == State.RUNNING
    installation.agent()
    installation.wait(lambda: Job.objects.get(pk=job.pk).state == State.LOST)
    lost = Job.objects.get(pk=job.pk)
    assert lost.error == "The machine's agent was started anew while this ran."
    assert lost.advice == "It was started again by itself."
    again = lost.retries.get()
    installation.wait(finished(again))
    again.refresh_from_db()
    assert (again.state, again.result["models"]) == (State.SUCCEEDED, 2 * MANY)
    assert Row.objects.filter(state=Row.State.PRESENT).count() == 2 * MANY
    assert the_host().state == "online"
    assert agents.second_agent(the_host()) is None


def test_scans_plans_writes_is_copied_cut_off_and_stopped(installation, enrolled, actor, tmp_path):
    for name in ("models", "router"):
        (tmp_path / name).mkdir()
    tiny_gguf(tmp_path / "models" / "alpha-1b-Q4_0.gguf", name="Alpha")
    register_root(host=the_host(), path=str(tmp_path / "models"), actor=actor)
    save_target(host=the_host(), path=str(tmp_path / "router" / "config.yaml"), dialect="llama-swap", actor=actor)
    start_scan(host=the_host(), actor=actor)
    installation.wait(lambda: (newest := latest_candidate(the_host())) and "alpha-1b" in newest.text)
    write = start_write(revision=latest_candidate(the_host()), actor=actor).job
    installation.wait(finished(write))
    write.refresh_from_db()
    assert write.state == State.SUCCEEDED, write.error
    assert "alpha-1b" in (tmp_path / "router" / "config.yaml").read_text()

    shutil.copytree(tmp_path / "agent" / "agent", tmp_path / "copy" / "agent")
    copy = installation.agent(folder="copy")
    installation.wait(lambda: copy.poll() is not None)
    assert copy.returncode == 3
    assert "An agent with the credentials of gpu-a runs already" in installation.said("copy")
    assert "A second agent with this machine's credentials" in machine_of(the_host()).notes[0]
    assert enrolled.poll() is None

    code = enrolment.new_code(host=the_host(), actor=actor)
    installation.wait(lambda: enrolled.poll() is not None)
    assert enrolled.returncode == 3
    assert "not valid any more" in installation.said()
    again = installation.agent("--server", installation.url, "--code", code)
    installation.wait(lambda: the_host().state == "online")

    again.send_signal(signal.SIGTERM)
    installation.wait(lambda: again.poll() is not None)
    assert again.returncode == 0
    assert Agent.objects.get().instance == ""
