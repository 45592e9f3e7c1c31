"""`./quartermaster agent`: enrols this machine with a code, then runs its host worker. No Django, no database."""

from __future__ import annotations

import argparse
import contextlib
import os
import secrets
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any
from urllib.parse import urlsplit

from gpus_app.core.errors import QuartermasterError, UsageError
from quartermaster_site import env, preparation, processes, workers
from quartermaster_site.agent import client, identity
from quartermaster_site.agent.client import Rejected, Unreachable
from quartermaster_site.agent.identity import Identity
from quartermaster_site.processes import Child
from quartermaster_site.stop_request import StopRequest

DONE, FAILED, UNUSABLE, NOT_WANTED = 0, 1, 2, 3
"""Exit codes. With the last it makes no sense to start it again as it is."""
CHECK_SECONDS = 30.0
_TAKE_OVER_SECONDS = 40.0
"""How long an agent waits for its predecessor, which may have been killed a moment ago, to be silent."""
_LONGEST_PAUSE_SECONDS = 30.0
_MOST_SKEW_SECONDS = 5.0
_stopping = StopRequest()


class NotWanted(QuartermasterError):
    """The server says that this agent must not run."""


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="quartermaster agent", description="look after the models and GPUs of this machine for a server elsewhere"
    )
    parser.add_argument("--server", metavar="URL", default="", help="where the pages are (with --code)")
    parser.add_argument("--code", default="", help="made on the Hosts page; works once, for half an hour")
    parser.add_argument("--ca", metavar="FILE", default="", help="certificates that the server is checked against")
    parser.add_argument("--enrol-only", action="store_true", help="keep what the code gives, and stop")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """0 stopped by request; 2 wrong usage or an unusable environment; 3 the server does not want this agent."""
    options = parse(sys.argv[1:] if arguments is None else arguments)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _stop)
    agent = None
    try:
        with preparation.only_one(env.prepared_data_dir(), "agent"):
            me = _enrolled(options)
            if options.enrol_only:
                return DONE
            agent = Agent(me)
            agent.run()
            _say("stopping")
            agent.leave()
            return DONE
    except (NotWanted, Rejected) as error:
        _say(str(error))
        return NOT_WANTED
    except QuartermasterError as error:
        _say(str(error))
        return UNUSABLE if isinstance(error, env.ConfigurationError | UsageError) else FAILED
    except OSError as error:
        _say(f"{error.filename or env.data_dir()} cannot be used: {error.strerror or error}.")
        return FAILED
    finally:
        if agent is not None:
            agent.stop_worker()


def _enrolled(options: argparse.Namespace) -> Identity:
    if bool(options.code) != bool(options.server):
        raise UsageError("--server and --code belong together: the Hosts page shows the whole command.")
    if not options.code:
        me = identity.load()
        if me is None:
            raise UsageError("this machine is not enrolled: an administrator makes a code for it on the Hosts page.")
        return me
    server = client.checked_server(options.server)
    if server.startswith("http://") and urlsplit(server).hostname not in ("localhost", "127.0.0.1", "::1"):
        _say("the server is not reached over HTTPS: whoever listens on the way learns this machine's secrets")
    private, public = identity.new_key()
    ca = os.path.abspath(options.ca) if options.ca else ""
    given = client.enrol(server, options.code, public, ca)
    facts = {name: str(given.get(name, "")) for name in ("slug", "enrolment", "broker_url", "broker_ca")}
    if not env.SLUG.fullmatch(facts["slug"]) or not facts["enrolment"] or not facts["broker_url"]:
        raise Unreachable(f"{server} gives an answer that lacks something: is it a Quartermaster of this version?")
    me = Identity(server=server, private_key=private, server_ca=ca, **facts)
    path = _kept(me)
    _say(f"enrolled as host {me.slug}; what identifies this machine is in {path} (for its owner alone)")
    if not given.get("own_account"):
        _say("the broker has one account for all machines: whoever has it can read and send everything there")
    return me


def _kept(me: Identity) -> Path:
    try:
        return identity.store(me)
    except OSError as error:
        raise env.ConfigurationError(
            f"{env.data_dir() / identity.FOLDER} cannot be written: {error.strerror}. The code is used up: make room "
            "there, then ask an administrator for a new one."
        ) from error


class Agent:
    """The worker of this machine and what the server says about it."""

    def __init__(self, me: Identity) -> None:
        self.me = me
        self.instance = secrets.token_hex(8)
        self.worker: Child | None = None
        self._deaths = 0
        self._said = ""

    def run(self) -> None:
        """Until somebody stops us. Raises NotWanted, Rejected."""
        self._wait_for_predecessor()
        while not _stopping.is_set():
            if self._may_run():
                self._start_or_revive()
            else:
                self.stop_worker()
            self._watch()

    def _may_run(self) -> bool:
        """Whether the worker should run by what the server says; as before where it says nothing."""
        asked = time.time()
        try:
            answer = client.check(self.me, self.instance)
        except Unreachable as problem:
            self._say_once(f"{problem} The worker goes on with the broker alone.")
            return True
        if answer.get("state") == "second":
            raise NotWanted(str(answer.get("message")))
        self._tell(answer, asked)
        return answer.get("state") == "ok"

    def _tell(self, answer: dict[str, Any], asked: float) -> None:
        """What an operator should know, once each time it changes. `asked`: our time when the question was sent."""
        words = [str(answer.get("message") or "")]
        now = time.time()
        # The server looked at its clock at some moment between; a slow answer is no wrong clock.
        theirs = float(answer.get("server_time") or now)
        skew = theirs - min(max(theirs, asked), now)
        if abs(skew) > _MOST_SKEW_SECONDS:
            words.append(f"the clock of the server is {skew:+.0f} s from ours: set both by NTP")
        if answer.get("paused"):
            words.append("the host is paused: the server sends no work")
        self._say_once("; ".join(word for word in words if word) or f"connected as host {self.me.slug}")

    def _wait_for_predecessor(self) -> None:
        """An agent that was killed a moment ago still counts as running; another machine's goes on counting."""
        end = time.monotonic() + _TAKE_OVER_SECONDS
        while not _stopping.is_set():
            try:
                answer = client.check(self.me, self.instance)
            except Unreachable:
                return
            if answer.get("state") != "second":
                return
            if time.monotonic() > end:
                raise NotWanted(str(answer.get("message")))
            self._say_once("an agent with these credentials was heard a moment ago; waiting whether it is still there")
            _stopping.wait(5)

    def _start_or_revive(self) -> None:
        if self.worker is None:
            self.worker = self._new_worker()
            _say(f"the worker of host {self.me.slug} runs; its log is {self.worker.log}")

    def _new_worker(self) -> Child:
        settings = {
            "QM_HOST_SLUG": self.me.slug,
            "QM_REDIS_URL": self.me.broker_url,
            "QM_AGENT_INSTANCE": self.instance,
            "QM_REDIS_CA": str(identity.ca_path()) if self.me.broker_ca else "",
        }
        queue, slots = f"host.{self.me.slug}", workers.HOST_SLOTS
        return workers.worker("host", role="host", queue=queue, slots=slots, settings=settings)

    def _watch(self) -> None:
        """Until it is time to ask the server again; a worker that dies is started again after a growing pause."""
        end = time.monotonic() + CHECK_SECONDS
        while time.monotonic() < end and not _stopping.wait(0.5):
            worker = self.worker
            if worker is None or worker.is_running:
                continue
            self._deaths += 1
            pause = min(2.0 ** min(self._deaths, 5), _LONGEST_PAUSE_SECONDS)
            _say(
                f"the worker ended with code {worker.process.returncode}; it is started again. Its log is {worker.log}."
            )
            if not _stopping.wait(pause):
                worker.restart()
            return
        self._deaths = 0

    def leave(self) -> None:
        """Stop the worker, and say so: the next start need not wait for our silence."""
        self.stop_worker()
        with contextlib.suppress(QuartermasterError):
            client.check(self.me, self.instance, leaving=True)

    def stop_worker(self) -> None:
        if self.worker is not None:
            processes.stop_all([self.worker])
            self.worker = None

    def _say_once(self, text: str) -> None:
        if text != self._said:
            _say(text)
        self._said = text


def _stop(number: int, frame: FrameType | None) -> None:
    _stopping.set()


def _say(text: str) -> None:
    print(f"quartermaster agent: {text}", file=sys.stderr, flush=True)  # noqa: T201


if __name__ == "__main__":
    raise SystemExit(main())
