"""The server's side of a real agent process: this process answers HTTP and takes messages while a test waits."""

from __future__ import annotations

import os
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from wsgiref.simple_server import WSGIRequestHandler, make_server

import psutil
from celery import Celery
from django.core.wsgi import get_wsgi_application

from gpus_app import agents, enrolment
from gpus_app.models import Host
from models_app.pages.machine_page import machine_of
from quartermaster_site import broker_accounts, redis_broker
from quartermaster_site.celery import app
from quartermaster_site.jobs.models import Job
from tests.tasks import inbox
from tests.tasks.slow_reading import slow_mark
from tests.tasks.workers import ROOT
from tests.tiny_models import tiny_gguf

START = """
import functools
import sys
from quartermaster_site.agent import command
from quartermaster_site import workers
command.CHECK_SECONDS, command._TAKE_OVER_SECONDS = 1.0, 3.0
workers.worker = functools.partial(workers.worker, more=["--include", "tests.tasks.slow_reading"])
raise SystemExit(command.main(sys.argv[1:]))
"""
PLAN = "models_app.tasks.plan_host"


class Quiet(WSGIRequestHandler):
    def log_message(self, *args):
        pass


class Installation:
    """The server's side: it answers HTTP and takes messages only while a test waits for something."""

    def __init__(self, broker, tmp_path, *, tls_folder=None):
        self.broker, self.tmp_path, self.agents = broker, tmp_path, []
        self.app = Celery("server", set_as_current=False)
        self.app.conf.update(
            broker_url=broker.url, broker_transport_options=redis_broker.options("control"), task_ignore_result=True
        )
        self.http = make_server("127.0.0.1", 0, get_wsgi_application(), handler_class=Quiet)
        self.http.timeout = 0
        if tls_folder is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(tls_folder / "cert.pem", tls_folder / "key.pem")
            self.http.socket = context.wrap_socket(self.http.socket, server_side=True)
        self.url = f"http{'s' if tls_folder else ''}://127.0.0.1:{self.http.server_port}"

    def wait(self, until, seconds=90):
        def pumped():
            self.http.handle_request()
            return until()

        inbox.drain(self.app, pumped, seconds)

    def agent(self, *arguments, folder="agent"):
        """Start one; its data folder is kept between starts."""
        log = (self.tmp_path / f"{folder}.log").open("ab")
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("QM_", "DJANGO_", "PYTEST"))}
        process = subprocess.Popen(
            [sys.executable, "-c", START, *arguments],
            env={
                **clean,
                "QM_DATA_DIR": str(self.tmp_path / folder),
                "PYTHONPATH": str(ROOT),
                "QM_WORKER_NICE": "0",
            },
            cwd=self.tmp_path,
            stderr=log,
        )
        self.agents.append(process)
        return process

    def said(self, folder="agent"):
        return (self.tmp_path / f"{folder}.log").read_text()

    def stop(self):
        for process in self.agents:
            unplug(process)
        self.http.server_close()
        self.app.close()


def unplug(process):
    """Everything of it at once, as with a power cut."""
    if process.poll() is None:
        children = psutil.Process(process.pid).children(recursive=True)
        process.kill()
        for child in children:
            child.kill()
        psutil.wait_procs(children, timeout=5)
    process.wait()


@contextmanager
def installed(broker, tmp_path, monkeypatch, settings, **more) -> Iterator[Installation]:
    """With a broker whose memory is empty; an agent counts as silent after six seconds."""
    monkeypatch.setenv("QM_REDIS_URL", broker.url)
    settings.ALLOWED_HOSTS = ["127.0.0.1", "testserver"]
    monkeypatch.setattr(agents, "SILENT_AFTER", agents.timedelta(seconds=6))
    broker_accounts._why_shared.cache_clear()
    app.conf.task_always_eager = False
    app.loader.import_default_modules()
    with broker.client() as client:
        client.flushall()
    found = Installation(broker, tmp_path, **more)
    monkeypatch.setattr("quartermaster_site.jobs.dispatch.app", found.app)
    monkeypatch.setitem(inbox.HANDLED, PLAN, lambda arguments: app.tasks[PLAN](**arguments))
    try:
        yield found
    finally:
        found.stop()


def enrol(installation, actor, *arguments):
    """A host whose agent runs; gives the process."""
    _, code = enrolment.create_host(slug="gpu-a", name="GPU A", actor=actor)
    assert machine_of(the_host()).worker.note == "for its agent"
    process = installation.agent("--server", installation.url, "--code", code, *arguments)
    installation.wait(lambda: the_host().state == "online" and the_host().probed_at)
    return process


def the_host():
    return Host.objects.select_related("agent").get(slug="gpu-a")


def many_models(folder, name, count):
    """Read slowly until `at_full_speed`."""
    folder.mkdir()
    slow_mark(folder).touch()
    first = folder / f"{name}-a-Q4_0.gguf"
    tiny_gguf(first, name=name)
    for number in range(count - 1):
        (folder / f"{name}-b-{number:04d}-Q4_0.gguf").hardlink_to(first)
    return str(folder)


def at_full_speed(folder):
    slow_mark(folder).unlink()


def in_the_midst(job, known=0):
    """Whether it reads files that are new; `known` ones come first and take no time."""
    row = Job.objects.get(pk=job.pk)
    assert not row.is_finished, "too fast for this test"
    return row.phase == "Reading headers" and row.done > known + 20


def finished(job):
    return lambda: Job.objects.get(pk=job.pk).is_finished
