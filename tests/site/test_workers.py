"""The environment in which processes of ours are started."""

from __future__ import annotations

import signal

import pytest

from quartermaster_site import processes, workers


@pytest.mark.parametrize(("role", "gives_back"), [("control", True), ("host", False), ("web", False)])
def test_the_worker_that_plans_gives_memory_back(role, gives_back, monkeypatch, tmp_path):
    monkeypatch.setenv("QM_DATA_DIR", str(tmp_path))
    for name in workers.ALLOCATOR:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(processes, "start", lambda *args, environment, **others: environment)
    environment = workers.child("x", ["module"], role=role, quit_signal=signal.SIGTERM)
    assert (workers.ALLOCATOR.items() <= environment.items()) is gives_back
    monkeypatch.setenv("MALLOC_ARENA_MAX", "4")
    assert workers.child("x", ["module"], role=role, quit_signal=signal.SIGTERM)["MALLOC_ARENA_MAX"] == "4"
