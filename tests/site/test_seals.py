"""Messages of the control queue: those of our own processes are known by their seal, those of machines are opened."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from quartermaster_site import seals
from quartermaster_site.agent.envelope import TASK

ARGUMENTS, NAMED = [1, "zwei"], {"job": 7, "more": {"b": [None, 1.5], "a": True}}


def message(task="models_app.tasks.plan_host", number="id-1", named=NAMED, **headers):
    return SimpleNamespace(headers={"task": task, "id": number, **headers}, payload=[ARGUMENTS, named, {}])


def of_a_machine(arguments=(), named=None, more=None, **headers):
    plain = {"lang": "py", "timelimit": [None, None], "retries": 0, "eta": None, "stamps": {}}
    payload = [list(arguments), named or {"envelope": {}}, {"callbacks": None, "chain": None, **(more or {})}]
    return SimpleNamespace(headers={**plain, "task": TASK, "id": "id-1", **headers}, payload=payload)


@pytest.fixture
def sealed():
    return seal_for("control")


def seal_for(queue):
    headers = {"id": "id-1"}
    seals._seal(sender="models_app.tasks.plan_host", body=(ARGUMENTS, NAMED, {}), headers=headers, routing_key=queue)
    return headers.get("seal")


@pytest.fixture(autouse=True)
def _redis(monkeypatch):
    monkeypatch.setenv("QM_REDIS_URL", "redis://broker:6379/0")


def test_what_we_sent_is_ours(sealed):
    assert seals.is_ours(message(seal=sealed))
    assert seals.is_ours(message(seal=sealed, named=dict(reversed(NAMED.items()))))


@pytest.mark.parametrize("change", [{"task": "other"}, {"number": "id-2"}, {"named": {"job": 8}}, {"seal": "0" * 64}])
def test_what_was_changed_is_not(sealed, change):
    assert not seals.is_ours(message(**{"seal": sealed, **change}))


def test_without_a_seal_nothing_is(sealed):
    assert not seals.is_ours(message())
    assert not seals.is_ours(SimpleNamespace(headers=None, payload=[[], {}, {}]))


def test_another_key_gives_another_seal(sealed, monkeypatch):
    monkeypatch.setenv("QM_SECRET_KEY", "y" * 50)
    assert not seals.is_ours(message(seal=sealed))


def test_a_seal_for_the_queue_of_a_machine_does_not_hold_here():
    """The machine has read it there, and may add to this queue."""
    assert not seals.is_ours(message(seal=seal_for("host.gpu-a")))


def test_messages_of_machines_are_opened_and_looked_at():
    assert seals.is_ours(of_a_machine())


@pytest.mark.parametrize(
    "order",
    [
        {"more": {"callbacks": [{"task": "models_app.host_tasks.publish"}]}},
        {"more": {"chain": [{"task": "models_app.host_tasks.publish"}]}},
        {"errbacks": [{"task": "models_app.host_tasks.publish"}]},
        {"eta": "2999-01-01T00:00:00"},
        {"arguments": [1]},
        {"named": {"envelope": {}, "more": 1}},
    ],
)
def test_a_message_of_a_machine_orders_nothing_else(order):
    """Celery would send a callback in the name of the control worker, to any queue."""
    assert not seals.is_ours(of_a_machine(**order))


def test_the_body_of_a_machine_names_no_task():
    old = SimpleNamespace(headers={"task": TASK, "id": "1"}, payload={"task": "other", "args": [], "id": "1"})
    assert not seals.is_ours(old)


@pytest.mark.parametrize(("name", "value"), [("QM_REDIS_URL", ""), ("QM_AGENT_INSTANCE", "one")])
def test_files_and_agents_need_none(monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    headers = {"id": "id-1"}
    seals._seal(sender="t", body=([], {}, {}), headers=headers)
    assert headers == {"id": "id-1"}
