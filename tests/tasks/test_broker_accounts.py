"""Access lists of a real Valkey and a real Redis: a host's account takes from its own queue and adds to control."""

from __future__ import annotations

import contextlib
import json
import os

import pytest
from kombu import Connection, Consumer, Exchange, Producer, Queue
from redis import Redis
from redis.exceptions import RedisError

from quartermaster_site import broker_accounts, redis_broker
from tests.tasks.brokers import Broker
from tests.tasks.test_up import free_port

pytestmark = pytest.mark.redis
PASSWORD = "of-gpu-a"


@pytest.fixture(scope="module", params=["valkey", "redis"])
def broker(request):
    found = Broker(request.param, free_port())
    yield found
    found.stop()


@pytest.fixture
def account(broker, monkeypatch):
    """A client under the account of host gpu-a, and its address."""
    monkeypatch.setenv("QM_REDIS_URL", broker.url)
    broker_accounts._why_shared.cache_clear()
    with broker.client() as client:
        client.flushall()
    broker_accounts.grant("gpu-a", broker_accounts.password_digest(PASSWORD))
    url = broker_accounts.address_for("gpu-a", PASSWORD)
    with Redis.from_url(url, decode_responses=True) as client:
        yield client, url


def connection(url):
    redis_broker.register()
    return Connection(url, transport_options=redis_broker.options("host.gpu-a"))


def queue(name):
    return Queue(name, Exchange(name, type="direct"), routing_key=name)


def test_everything_that_kombu_does_for_a_worker_is_allowed(broker, account):
    _, url = account
    got = []
    with connection(broker.url) as server:
        Producer(server).publish({"n": 1}, routing_key="host.gpu-a", declare=[queue("host.gpu-a")])
        Producer(server).publish({"n": 2}, routing_key="host.gpu-a")
    with connection(url) as agent:

        def take(body, message):
            got.append(body)
            message.ack() if body["n"] == 1 else message.reject(requeue=True)

        with Consumer(agent, queues=[queue("host.gpu-a")], callbacks=[take], accept=["json"]):
            while len(got) < 3:
                agent.drain_events(timeout=5)
        agent.default_channel.qos.restore_visible(num=10)
        Producer(agent).publish({"n": 3}, routing_key="control", declare=[queue("control")])
    with broker.client() as client:
        assert client.llen("control") == 1
        denied = client.execute_command("ACL", "LOG")
    assert got[:2] == [{"n": 1}, {"n": 2}]
    assert denied == []


@pytest.mark.parametrize(
    "command",
    [
        ("LRANGE", "control", 0, -1),
        ("RPOP", "control"),
        ("BRPOP", "control", 1),
        ("DEL", "control"),
        ("SET", "control", "x"),
        ("LPUSH", "host.gpu-b", "x"),
        ("BRPOP", "host.gpu-b", 1),
        ("HGET", "unacked.host.gpu-b", "x"),
        ("HGET", "unacked.control", "x"),
        ("SADD", "_kombu.binding.control", "x"),
        ("GET", "qm:1:session"),
        ("KEYS", "*"),
        ("FLUSHALL",),
        ("CONFIG", "GET", "*"),
        ("ACL", "USERS"),
        ("MONITOR",),
        ("SUBSCRIBE", "x"),
        ("CLIENT", "LIST"),
        ("EVAL", "return redis.call('rpop', 'control')", "0"),
    ],
    ids=lambda command: " ".join(map(str, command)),
)
def test_nothing_else_is(account, command):
    client, _ = account
    with pytest.raises(RedisError, match=r"(?i)permission|can't|ACL"):
        client.execute_command(*command)


def test_each_machine_gets_its_own(account):
    assert broker_accounts.why_shared() == ""


def test_a_restarted_broker_is_told_again(broker, account):
    client, _ = account
    broker.stop()
    broker.start()
    digests = {"gpu-a": broker_accounts.password_digest(PASSWORD)}
    assert broker_accounts.renew(digests) == ["gpu-a"]
    assert broker_accounts.renew(digests) == []
    assert client.ping()


def connections_of_host(server):
    return {found["id"] for found in server.client_list() if found["user"] == "qm-host-gpu-a"}


def test_an_account_of_an_older_version_gets_todays_access_list(broker, account):
    """And what is connected under it stays connected."""
    client, _ = account
    with broker.client() as server:
        server.execute_command("ACL", "SETUSER", "qm-host-gpu-a", "-zrange", "+get", "~qm:*")
        assert client.ping()
        connected = connections_of_host(server)
        with pytest.raises(RedisError):
            client.zrange("unacked-index.host.gpu-a", 0, -1)
        digests = {"gpu-a": broker_accounts.password_digest(PASSWORD)}
        assert broker_accounts.renew(digests) == []
        with pytest.raises(RedisError):
            client.zrange("unacked-index.host.gpu-a", 0, -1)
        assert broker_accounts.renew(digests, known_too=True) == []
        assert client.zrange("unacked-index.host.gpu-a", 0, -1) == []
        assert connections_of_host(server) == connected
    with pytest.raises(RedisError):
        client.get("qm:1:session")


def test_a_removed_account_is_cut_off_at_once(account):
    client, _ = account
    assert client.ping()
    broker_accounts.revoke("gpu-a")
    with pytest.raises(RedisError):
        client.ping()


def test_what_a_killed_worker_held_comes_back(broker, account):
    from quartermaster_site.redis_transport import restore

    _, url = account
    with connection(broker.url) as server:
        for number in (1, 2):
            Producer(server).publish({"n": number}, routing_key="host.gpu-a", declare=[queue("host.gpu-a")])
    killed = connection(url)
    taken = []
    consumer = Consumer(killed, queues=[queue("host.gpu-a")], callbacks=[lambda *both: taken.append(both)])
    consumer.consume()
    while len(taken) < 2:
        killed.drain_events(timeout=5)
    with broker.client() as client:
        assert client.llen("host.gpu-a") == 0
        with connection(url) as again:
            assert restore(again.default_channel) == 2
        assert client.llen("host.gpu-a") == 2
        assert client.exists("unacked.host.gpu-a") == 0
    consumer.channel.qos._delivered.clear()  # a killed process puts nothing back at its end


def test_what_is_no_message_costs_itself_alone(account, caplog):
    """A machine may add to the control queue whatever it likes; its worker goes on."""
    client, url = account
    delivery = {"exchange": "", "routing_key": "control"}
    shape = {"body": "", "headers": {}, "properties": {"delivery_tag": "t", "delivery_info": delivery}}
    junk = [
        *("", "junk", "[", "[" * 100_000, "5", "null", "[]", "{}", '"text"', "\ud800"),
        *(json.dumps(value) for value in ({**shape, "body": 5}, {**shape, "headers": []}, {**shape, "properties": {}})),
        json.dumps({**shape, "properties": {**shape["properties"], "delivery_tag": [1]}}),
    ]
    for text in junk:
        client.lpush("control", text.encode("utf-8", "surrogatepass"))
    got = []
    with connection(url) as agent:
        Producer(agent).publish({"n": 1}, routing_key="control")
    with (
        Connection(os.environ["QM_REDIS_URL"], transport_options=redis_broker.options("control")) as server,
        Consumer(server, queues=[queue("control")], callbacks=[lambda body, message: got.append(body)]),
    ):
        for _ in range(200):
            if got:
                break
            with contextlib.suppress(TimeoutError):
                server.drain_events(timeout=0.2)
    assert got == [{"n": 1}]
    assert caplog.text.count("dropped what is no message") == len(junk)
