"""Messages of the control queue: those of our own processes are known by their seal, those of machines are opened."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from quartermaster_site import seals
from quartermaster_site.agent.envelope import TASK

ARGUMENTS, NAMED = [1, "zwei"], {"job": 7, "more": {"b": [None, 1.5], "a": True}}


def message(task="models_app.tasks.plan_host", number="id-1", named=NAMED, **headers):
    return SimpleNamespace(headers={"task": task, "id": number, **headers}, payload=[ARGUMENTS, named, {}])


@pytest.fixture
def sealed():
    headers = {"id": "id-1"}
    seals._seal(sender="models_app.tasks.plan_host", body=(ARGUMENTS, NAMED, {}), headers=headers)
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


def test_messages_of_machines_are_opened_and_looked_at():
    assert seals.is_ours(message(task=TASK))


@pytest.mark.parametrize(("name", "value"), [("QM_REDIS_URL", ""), ("QM_AGENT_INSTANCE", "one")])
def test_files_and_agents_need_none(monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    headers = {"id": "id-1"}
    seals._seal(sender="t", body=([], {}, {}), headers=headers)
    assert headers == {"id": "id-1"}
