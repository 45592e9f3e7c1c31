from __future__ import annotations

import pytest

from quartermaster_site.jobs.models import Job


@pytest.fixture
def sent(monkeypatch):
    """Tasks that would have been sent: (name, queue, arguments)."""
    calls = []
    monkeypatch.setattr(
        "quartermaster_site.jobs.dispatch.send", lambda task, queue, **arguments: calls.append((task, queue, arguments))
    )
    return calls


@pytest.fixture
def make_job(host):
    def make(**fields):
        return Job.objects.create(**{"kind": "scan", "host": host, "token": "secret-token", **fields})

    return make
