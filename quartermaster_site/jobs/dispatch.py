"""Sending a task by name. Imports no Django: host workers report through this too."""

from __future__ import annotations

from typing import Any

from quartermaster_site import env
from quartermaster_site.agent import envelope
from quartermaster_site.celery import app
from quartermaster_site.jobs.kinds import CONTROL_QUEUE

__all__ = ["CONTROL_QUEUE", "send"]


def send(task: str, queue: str, **arguments: Any) -> None:
    """Queue a task. With `task_always_eager` (tests) it runs here and now, and its errors propagate."""
    if app.conf.task_always_eager:
        if task not in app.tasks:
            app.loader.import_default_modules()  # runs Django's system checks as well: not for every task
        app.tasks[task].apply(kwargs=arguments, throw=True)
        return
    if env.agent_instance():
        task, arguments = envelope.TASK, envelope.sealed(task, arguments)
    app.send_task(task, kwargs=arguments, queue=queue)
