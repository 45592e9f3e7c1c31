"""The Celery application. A host worker (`QM_ROLE=host`) starts here without Django and without a database."""

from __future__ import annotations

import os
from typing import Any

from celery import Celery
from kombu.entity import Exchange, Queue

from quartermaster_site import broker, env, priority, redis_broker, seals
from quartermaster_site.jobs.kinds import CONTROL_QUEUE

HOST_MODULES = (
    "models_app.host_tasks",
    "models_app.import_file",
    "models_app.target_look",
    "models_app.speech",
    "models_app.program_search",
    "gpus_app.host_tasks",
    "quartermaster_site.jobs.host_tasks",
)
CONTROL_MODULES = ("quartermaster_site.jobs.tasks", "gpus_app.tasks", "models_app.tasks")
SWEEP_SECONDS = 15.0
RENEW_SECONDS = 30.0
WRITE_SECONDS = 10.0
PERIODIC = {
    "quartermaster_site.jobs.tasks.sweep_lost_jobs": SWEEP_SECONDS,
    "gpus_app.tasks.renew_broker_accounts": RENEW_SECONDS,
    "models_app.tasks.publish_due_keys": RENEW_SECONDS,
    "models_app.tasks.write_due_texts": WRITE_SECONDS,
}
"""Tasks of the control queue and how often they come."""
LATE_SECONDS = 120.0
"""One that comes so late is dropped. A queue full of reports holds each up for a while: dropped as soon as the next one
is due, none would ever come."""


def host_queue(slug: str) -> str:
    return f"host.{slug}"


def _own_queue() -> str:
    """The queue that this process takes messages from."""
    return host_queue(env.host_slug()) if env.role() == "host" else CONTROL_QUEUE


def _queue(name: str) -> Queue:
    """A queue with an exchange and a key of its own; Celery would otherwise bind it to the default queue's."""
    exchange = Exchange(name, type="direct")  # type: ignore[no-untyped-call]
    return Queue(name, exchange, routing_key=name)  # type: ignore[no-untyped-call]


def _broker() -> dict[str, Any]:
    url = env.redis_url()
    if url:
        # Celery names a socket in its own way.
        url = url.replace("unix://", "redis+socket://", 1) if url.startswith("unix://") else url
        return {"broker_url": url, "broker_transport_options": redis_broker.options(_own_queue())}
    return {
        "broker_url": "filesystem://localhost//",
        "broker_transport_options": broker.prepare(env.prepared_data_dir()),
    }


def configuration() -> dict[str, Any]:
    """All of Celery's settings. JSON only; results are not kept, since the job row is the truth."""
    host_only = env.role() == "host"
    return {
        **_broker(),
        "task_queues": [_queue(_own_queue())],
        "task_default_queue": CONTROL_QUEUE,
        "task_create_missing_queues": True,
        "task_serializer": "json",
        "accept_content": ["json"],
        "result_serializer": "json",
        "task_ignore_result": True,
        "task_store_errors_even_if_ignored": False,
        "worker_consumer": "quartermaster_site.consumer:Consumer",
        "worker_prefetch_multiplier": 1,
        "worker_hijack_root_logger": False,
        "worker_send_task_events": False,
        "worker_enable_remote_control": False,
        "worker_cancel_long_running_tasks_on_connection_loss": False,
        "broker_connection_retry_on_startup": True,
        "enable_utc": True,
        "imports": HOST_MODULES if host_only else (*HOST_MODULES, *CONTROL_MODULES),
        "beat_schedule_filename": str(env.data_dir() / "beat-schedule"),
        "beat_schedule": {
            task.rpartition(".")[2]: {
                "task": task,
                "schedule": seconds,
                "options": {"queue": CONTROL_QUEUE, "expires": LATE_SECONDS},
            }
            for task, seconds in PERIODIC.items()
        },
    }


# Always and before any connection: kombu keeps the transport that an address meant at its first use.
redis_broker.register()
broker.register()
seals.connect()
priority.connect()
if env.role() != "host":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "quartermaster_site.settings")

app = Celery("quartermaster", set_as_current=True)
app.config_from_object(configuration())
