"""A broker without room: said on the pages, no worker ends, nothing is lost, and work goes on once there is room."""

from __future__ import annotations

import pytest
from celery import Celery
from kombu import Exchange, Queue
from redis.exceptions import OutOfMemoryError

from quartermaster_site import redis_broker
from quartermaster_site.errors import Unavailable
from quartermaster_site.jobs import connection, dispatch
from quartermaster_site.jobs.models import Job
from quartermaster_site.jobs.reporting import Reporter
from quartermaster_site.jobs.services import start_job
from tests.tasks.brokers import Broker
from tests.tasks.test_up import free_port

pytestmark = pytest.mark.redis
FULL = "Redis is full (its maxmemory): it takes no message until there is room."


@pytest.fixture(scope="module")
def server():
    found = Broker("valkey", free_port(), "--maxmemory-policy", "noeviction")
    yield found
    found.stop()


@pytest.fixture
def broker(server, monkeypatch):
    monkeypatch.setenv("QM_REDIS_URL", server.url)
    connection._redis_problem.cache_clear()
    with server.client() as client:
        client.config_set("maxmemory", 0)
        client.flushall()
        yield client
        client.config_set("maxmemory", 0)
    connection._redis_problem.cache_clear()


def fill(broker):
    """No command that needs memory is taken any more."""
    broker.config_set("maxmemory", 1)
    connection._redis_problem.cache_clear()


@pytest.fixture
def app(server, monkeypatch):
    """What processes of ours send with."""
    redis_broker.register()
    found = Celery("server", set_as_current=False)
    options = redis_broker.options("control")
    found.conf.update(broker_url=server.url, broker_transport_options=options, task_ignore_result=True)
    monkeypatch.setattr("quartermaster_site.jobs.dispatch.app", found)
    yield found
    found.close()


def test_it_is_said_and_no_job_is_made(broker, host, actor, client):
    fill(broker)
    assert connection.broker_problem() == FULL
    with pytest.raises(Unavailable, match="Redis is full"):
        start_job(kind="probe_devices", host=host, actor=actor)
    assert not Job.objects.exists()
    client.force_login(actor.user)
    assert FULL in client.get(f"/hosts/{host.slug}/").content.decode()
    broker.config_set("maxmemory", 0)
    connection._redis_problem.cache_clear()
    assert connection.broker_problem() == ""


def test_what_is_taken_from_it_is_not_lost(broker, app):
    """It hands a message out and has no room to note that: the worker goes on, with the message."""
    dispatch.send("some.task", "control", n=1)
    fill(broker)
    with pytest.raises(OutOfMemoryError):
        broker.set("anything", "x")
    taken = []

    def take(body, message):
        taken.append(body[1])
        message.ack()

    queue = Queue("control", Exchange("control", type="direct"), routing_key="control")
    with app.connection() as link, link.Consumer([queue], callbacks=[take], accept=["json"]):
        link.drain_events(timeout=5)
    assert taken == [{"n": 1}]
    assert connection.is_empty("control")


def test_a_host_keeps_what_it_has_to_say_until_there_is_room(broker, app, monkeypatch):
    waited = []

    def room(seconds):
        waited.append(seconds)
        broker.config_set("maxmemory", 0)

    monkeypatch.setattr("quartermaster_site.jobs.reporting.time.sleep", room)
    fill(broker)
    report = Reporter(1, "token")
    assert not report._send("progress", {})
    assert broker.llen("control") == 0
    report.batch({"headers": []})
    assert len(waited) == 1
    assert broker.llen("control") == 1
