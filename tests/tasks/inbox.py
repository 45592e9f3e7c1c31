"""The control side of a test that runs a real host worker: takes its messages off the broker and stores them here."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from celery import Celery
from kombu import Connection, Consumer, Exchange, Queue

HANDLED = {
    "quartermaster_site.jobs.tasks.job_event": lambda arguments: _receive(arguments["event"]),
    "gpus_app.tasks.host_heartbeat": lambda arguments: _heartbeat(arguments),
    "gpus_app.tasks.agent_message": lambda arguments: _agent_message(arguments),
}


def _receive(event: Any) -> None:
    from quartermaster_site.jobs.receiving import receive

    receive(event)


def _heartbeat(arguments: dict[str, Any]) -> None:
    from gpus_app.tasks import host_heartbeat

    host_heartbeat(**arguments)


def _agent_message(arguments: dict[str, Any]) -> None:
    from gpus_app.tasks import agent_message

    agent_message(**arguments)


def drain(app: Celery, until: Callable[[], bool], seconds: float, seen: list[Any] | None = None) -> None:
    """Handle control messages in this process, in its database, until the condition holds."""
    end = time.monotonic() + seconds
    queue = Queue("control", Exchange("control", type="direct"), routing_key="control")

    def handle(body: Any, message: Any) -> None:
        message.ack()
        _, arguments, _ = body
        if seen is not None:
            seen.append((message.headers["task"], arguments))
        if message.headers["task"] in HANDLED:
            HANDLED[message.headers["task"]](arguments)

    options = app.conf.broker_transport_options
    with (
        Connection(app.conf.broker_url, transport_options=options) as connection,
        Consumer(connection, queues=[queue], callbacks=[handle], accept=["json"]),
    ):
        while not until():
            assert time.monotonic() < end, f"nothing happened within {seconds} s; seen: {(seen or [])[-3:]}"
            try:
                connection.drain_events(timeout=0.3)
            except TimeoutError:
                continue
