"""A real agent process whose way to the broker is cut in either direction, and one whose ways are both behind TLS."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from models_app.models import Row
from models_app.services import register_root, start_scan
from quartermaster_site import redis_broker
from quartermaster_site.jobs import sweeping
from quartermaster_site.jobs.models import Job, State
from tests.tasks.brokers import PASSWORD, Broker
from tests.tasks.installation import at_full_speed, enrol, finished, in_the_midst, installed, many_models, the_host
from tests.tasks.proxy import DOWN, UP, Proxy
from tests.tasks.test_broker_tls import self_signed
from tests.tasks.test_up import free_port
from tests.tiny_models import tiny_gguf

pytestmark = [
    *(pytest.mark.redis, pytest.mark.worker, pytest.mark.slow, pytest.mark.once),
    pytest.mark.django_db(transaction=True),
]
MANY = 1500
_CUT_SECONDS = 1.5


@pytest.fixture
def network(monkeypatch):
    """A broker, and the network between it and machines."""
    broker = Broker("valkey", free_port())
    network = Proxy(broker.port)
    monkeypatch.setenv("QM_AGENT_REDIS_URL", f"redis://:{PASSWORD}@127.0.0.1:{network.port}/0")
    yield broker, network
    network.stop()
    broker.stop()


def test_a_network_that_is_cut_in_either_direction(network, tmp_path, monkeypatch, settings, actor):
    """Jobs go on, reports come once, and a job that got lost on its way is sent again."""
    broker, way = network
    with installed(broker, tmp_path, monkeypatch, settings) as installation:
        enrol(installation, actor)
        register_root(host=the_host(), path=many_models(tmp_path / "models", "m", MANY), actor=actor)
        job = start_scan(host=the_host(), actor=actor).job
        for direction in (UP, DOWN):
            heard = Job.objects.get(pk=job.pk).done or 0
            installation.wait(lambda heard=heard: in_the_midst(job, heard))
            way.cut(direction)
            until = timezone.now() + timedelta(seconds=_CUT_SECONDS)
            installation.wait(lambda until=until: timezone.now() > until)
            way.heal()
        at_full_speed(tmp_path / "models")
        installation.wait(finished(job), 30)
        job.refresh_from_db()
        assert (job.state, job.result["models"], job.retries.count()) == (State.SUCCEEDED, MANY, 0)

        way.cut(DOWN)
        job = start_scan(host=the_host(), actor=actor).job
        with broker.client() as client:
            installation.wait(lambda: not client.llen("host.gpu-a"), 10)
        way.cut(UP)
        assert Job.objects.get(pk=job.pk).state == State.QUEUED, "the broker has handed it out to nobody"
        way.heal()
        monkeypatch.setattr(sweeping, "SEND_AGAIN_AFTER", timedelta(seconds=1))
        installation.wait(lambda: sweeping.sweep() or finished(job)(), 30)
        job.refresh_from_db()
        assert (job.state, job.result["models"]) == (State.SUCCEEDED, MANY)
        assert Job.objects.filter(kind="scan").count() == 2
        assert Row.objects.filter(state=Row.State.PRESENT).count() == Row.objects.count() == MANY


def test_an_agent_whose_ways_are_both_behind_tls(tmp_path, monkeypatch, settings, actor):
    """With the certificates that it is given for the pages, and that it gets for the broker; and not without."""
    folder = self_signed(tmp_path / "pem")
    broker = Broker("redis", free_port(), tls_folder=folder)
    monkeypatch.setenv("QM_REDIS_CA", str(folder / "ca-cert.pem"))
    redis_broker.register()
    try:
        with installed(broker, tmp_path, monkeypatch, settings, tls_folder=folder) as installation:
            doubtful = installation.agent("--server", installation.url, "--code", "qme-x", folder="doubtful")
            installation.wait(lambda: doubtful.poll() is not None)
            assert doubtful.returncode == 1
            assert "certificate verify failed" in installation.said("doubtful")
            enrol(installation, actor, "--ca", str(folder / "ca-cert.pem"))
            (tmp_path / "models").mkdir()
            tiny_gguf(tmp_path / "models" / "alpha-1b-Q4_0.gguf", name="Alpha")
            register_root(host=the_host(), path=str(tmp_path / "models"), actor=actor)
            job = start_scan(host=the_host(), actor=actor).job
            installation.wait(finished(job))
            assert Job.objects.get(pk=job.pk).state == State.SUCCEEDED
            with broker.client() as client:
                assert "qm-host-gpu-a" in {row["user"] for row in client.client_list()}
    finally:
        broker.stop()
