"""`./quartermaster up`: checks, database, static files, web server and workers; stops all that it started."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Sequence
from types import FrameType
from typing import NoReturn

from gpus_app.core.errors import QuartermasterError, UsageError
from quartermaster_site import env, preparation, processes, serving, workers
from quartermaster_site.network import check_port, served_names, wait_until_up
from quartermaster_site.processes import Child
from quartermaster_site.serving import Serving
from quartermaster_site.stop_request import StopRequest

DEFAULT_PORT = 8420
_WEB_THREADS = 8
_READY_SECONDS = 60.0
_MOST_RESTARTS = 3
_RESTART_WINDOW_SECONDS = 300
_RESTART_PAUSE_SECONDS = 2.0
_stopping = StopRequest()


class Stopped(Exception):
    """SIGINT or SIGTERM came."""


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="quartermaster up", description="start the product; Ctrl-C stops all of it")
    parser.add_argument("--models", metavar="DIR", action="append", default=[], help="a folder of models (repeatable)")
    parser.add_argument("--port", type=int, default=DEFAULT_PORT, metavar="N", help=f"default {DEFAULT_PORT}")
    parser.add_argument("--host", default="127.0.0.1", metavar="ADDR", help="address to bind (default: this machine)")
    parser.add_argument("--no-worker", action="store_true", help="web pages alone; workers run elsewhere")
    parser.add_argument(
        "--serve",
        type=int,
        nargs="?",
        const=serving.DEFAULT_PORT,
        metavar="PORT",
        help=f"start llama-server beside it as a router over the written presets (default port {serving.DEFAULT_PORT})",
    )
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """0 stopped by request; 1 something that we started kept dying; 2 wrong usage or an unusable environment."""
    options = parse(sys.argv[1:] if arguments is None else arguments)
    children: list[Child] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _stop)
    try:
        with preparation.only_one(env.prepared_data_dir()):
            router = _start(options, children)
            _watch(children, router)
    except Stopped:
        _say("stopping")
        return 0
    except QuartermasterError as error:
        _say(str(error))
        return 2 if isinstance(error, env.ConfigurationError | UsageError) else 1
    except Exception as error:
        problem = preparation.problem_of(error)
        if not problem:
            raise
        _say(problem)
        return 2
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        processes.stop_all(children)


def _start(options: argparse.Namespace, children: list[Child]) -> Serving | None:
    """Start everything but the router, which waits for a file to read."""
    folders = [_model_folder(text) for text in options.models]
    check_port(options.host, options.port)
    _check_serve(options)
    names = served_names(options.host)
    os.environ.setdefault("QM_ALLOWED_HOSTS", ",".join(names))
    env.secret_key()  # made here, before two processes would
    if not options.no_worker:
        # It needs no database, so it may start while that is prepared.
        children.append(_host_worker())
    preparation.prepare()
    _check(children)
    children.append(_web(options.host, options.port))
    preparation.register_host()
    if not options.no_worker:
        preparation.recover()
        children.append(_control_worker())
    wait_until_up(options.host, options.port, env.allowed_hosts()[0], lambda: _check(children), _READY_SECONDS)
    address = f"http://{names[0]}:{options.port}"
    preparation.note_address(address)
    _say(f"running at {address}/ (Ctrl-C stops it)")
    if trouble := preparation.broker_trouble():
        _say(trouble)
    token = preparation.setup_token()
    if token:
        _say(f"first use, open this link once: {address}/setup/?token={token}")
    router = _router(options.serve)
    if folders:
        _say(preparation.queue_first_scan(folders))
    return router


def _check_serve(options: argparse.Namespace) -> None:
    if options.serve is None:
        return
    if options.no_worker:
        raise UsageError("--serve needs the worker of this machine, which writes the router's file: drop --no-worker.")
    if options.serve == options.port:
        raise UsageError(f"--serve {options.serve}: the pages have this port, the router needs another.")
    serving.checked_port(options.serve)


def _router(port: int | None) -> Serving | None:
    """The router that was asked for; says why there is none."""
    if port is None:
        return None
    found = serving.serving_of(port)
    if isinstance(found, str):
        _say(found)
        return None
    _say(f"{found.server} serves at {found.address}/ as soon as {found.presets} is written")
    return found


def _model_folder(text: str) -> str:
    path = os.path.abspath(os.path.expanduser(text))
    if not os.path.isdir(path):
        problem = "is not a folder" if os.path.exists(path) else "does not exist"
        raise UsageError(f"the models folder {path} {problem}.")
    if not os.access(path, os.R_OK | os.X_OK):
        raise UsageError(f"the models folder {path} cannot be read.")
    return path


def _web(host: str, port: int) -> Child:
    bind = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    options = ["--bind", bind, "--worker-class", "gthread", "--workers", "1", "--threads", str(_WEB_THREADS)]
    quiet = ["--no-control-socket", "--log-level", "warning", "--graceful-timeout", "3", "--timeout", "60"]
    command = ["gunicorn", "quartermaster_site.wsgi:application", *options, *quiet]
    return workers.child("web", command, role="web", quit_signal=signal.SIGQUIT)


def _control_worker() -> Child:
    schedule = str(env.data_dir() / "beat-schedule")
    return workers.worker("control", role="control", queue="control", slots=2, more=["-B", "--schedule", schedule])


def _host_worker() -> Child:
    return workers.worker("host", role="host", queue=f"host.{env.host_slug()}", slots=workers.HOST_SLOTS)


def _check(children: Sequence[Child]) -> None:
    if _stopping.is_set():
        raise Stopped
    for child in children:
        if not child.is_running:
            last = child.last_lines()
            raise QuartermasterError(
                f"the {child.name} process {_end(child.process.returncode)}. Its log is {child.log}"
                + (f" and ends with:\n{last}" if last else ".")
            )


def _revive(child: Child) -> bool:
    """Start a process that died again, after a growing pause; False when it has died too often of late.

    What it worked on is found by the sweep for lost jobs.
    """
    now = time.monotonic()
    child.deaths = [at for at in child.deaths if now - at < _RESTART_WINDOW_SECONDS] + [now]
    count = len(child.deaths)
    if count > _MOST_RESTARTS:
        return False
    often = f"{count} of at most {_MOST_RESTARTS} times in {_RESTART_WINDOW_SECONDS // 60} minutes"
    end = _end(child.process.returncode)
    _say(f"the {child.name} process {end}; it is started again ({often}). Its log is {child.log}.")
    if not _stopping.wait((count - 1) * _RESTART_PAUSE_SECONDS):
        child.restart()
    return True


def _end(code: int) -> str:
    """How a process ended, in words; minus a signal's number is Python's way to say that the signal did it."""
    if code == -signal.SIGKILL:
        return "was killed (by a person, or by the system when memory ran out)"
    if code < 0:
        return f"was ended by signal {-code} ({signal.strsignal(-code) or 'unknown'})"
    return f"ended with code {code}"


def _follow(children: list[Child], router: Serving | None) -> None:
    """Start the router again where its file asks for another number of models at a time."""
    child = next((child for child in children if child.name == serving.NAME), None)
    if router is None or child is None or not child.is_running or _stopping.is_set():
        return
    if (renewed := router.follow(child)) is not None:
        children[children.index(child)] = renewed
        _say(f"the router was started again, for {router.most} models at a time")


def _watch(children: list[Child], router: Serving | None = None) -> NoReturn:
    while True:
        if router is not None and (started := router.start_if_ready()) is not None:
            children.append(started)
            _say(f"the router runs at {router.address}/; its log is {started.log}")
        _follow(children, router)
        for child in list(children):
            if not child.is_running and not _stopping.is_set() and not _revive(child):
                _say(f"the {child.name} process keeps dying.")
                if child.optional:
                    children.remove(child)
                    _say(f"the rest goes on without it. Its log is {child.log}.")
                _check(children)
        if _stopping.wait(0.3):
            raise Stopped


def _stop(number: int, frame: FrameType | None) -> None:
    # A flag instead of an exception: nothing may come between starting a process and noting it down.
    _stopping.set()


def _say(text: str) -> None:
    print(f"quartermaster: {text}", file=sys.stderr, flush=True)  # noqa: T201


if __name__ == "__main__":
    raise SystemExit(main())
