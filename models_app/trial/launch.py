"""Starting a composed command for once on this machine: does it come up, does it answer? No Django, no database.

The command is an argument list, on a free port of the loopback address, in a process group of its own that is gone
afterwards. What a router would add when it starts such a program (classes.md 4, 11.4) is added here too.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpus_app.core.errors import QuartermasterError
from gpus_app.core.probes.program import ORDER_VARIABLE
from models_app.backend_probing import is_permitted
from models_app.core.classes.spawn import config_file_name, config_json, spawn_arguments
from models_app.trial.conversation import Conversation, NotAnswered
from models_app.trial.memory import MemoryWatch
from models_app.trial.process import Log, NotStarted, ending, running
from models_app.trial.questions import QUESTIONS
from quartermaster_site.jobs.host_tasks import Cancelled
from quartermaster_site.jobs.reporting import Reporter

PORT = "${PORT}"
MAX_WORDS = 400
MOST_READY_SECONDS = 600.0
MOST_ANSWER_SECONDS = 600.0
HEALTH_SECONDS = 2.0
LOOK_SECONDS = 0.5
LOGGED_LINES = 40


class TrialFailed(QuartermasterError):
    """The launch did not come up, or did not answer; the log says why."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One launch under way."""

    report: Reporter
    inputs: Mapping[str, Any]
    folder: Path
    port: int
    log: Log

    def talk(self, seconds: float) -> Conversation:
        model = str(self.inputs["question"]["model"])
        return Conversation(self.port, model, self.folder, time.monotonic() + seconds)


def try_launch(
    report: Reporter, inputs: Mapping[str, Any], *, environment: Mapping[str, str], permitted: Iterable[str]
) -> dict[str, Any]:
    """Start `words`, wait for `health`, ask `question`, stop: {"words", "variables", "health", "seconds", "audiocpp",
    "question": {"name", "model", "seconds"}}. Raises TrialFailed with what it printed last.
    """
    log = Log()
    with tempfile.TemporaryDirectory(prefix="quartermaster-trial-") as folder:
        trial = Trial(report, inputs, Path(folder), _free_port(), log)
        try:
            words = _words(trial, permitted)
            own = dict([ORDER_VARIABLE, ("TMPDIR", folder)])
            return _tried(trial, words, {**environment, **own, **inputs.get("variables", {})})
        except (TrialFailed, NotStarted):
            for line in log.lines()[-LOGGED_LINES:]:
                report.log(line)
            raise


def _tried(trial: Trial, words: list[str], environment: Mapping[str, str]) -> dict[str, Any]:
    watch = MemoryWatch()
    started = time.monotonic()
    try:
        with running(words, environment, trial.log) as process, watch.following(process.pid):
            _wait_until_ready(trial, process)
            ready = time.monotonic()
            answer = _asked(trial, process)
            answered = time.monotonic()
    finally:
        watch.kill_left_over()
    return {
        "ready_seconds": round(ready - started, 2),
        "answer_seconds": round(answered - ready, 2),
        "answer": answer,
        "peak_bytes": watch.peak_bytes,
        "devices": watch.devices(),
        "lines": trial.log.lines(),
    }


def _words(trial: Trial, permitted: Iterable[str]) -> list[str]:
    """The command as it is started. Raises TrialFailed."""
    words = [str(word).replace(PORT, str(trial.port)) for word in trial.inputs["words"]]
    if len(words) > MAX_WORDS:
        raise TrialFailed(f"the command has more than {MAX_WORDS} words")
    words[0] = _program(words[0], permitted)
    block = trial.inputs.get("audiocpp")
    config = None
    if block:
        model = str(trial.inputs["question"]["model"])
        config = trial.folder / config_file_name(model)
        config.write_text(json.dumps(config_json(model, block), indent=2) + "\n", encoding="utf-8")
    return [*words, *spawn_arguments(words[1:], bool(block), str(config) if config else None)]


def _program(name: str, permitted: Iterable[str]) -> str:
    found = shutil.which(name)
    if found is None:
        raise TrialFailed(f"{name} is not there, or is no executable file")
    if not is_permitted(found, permitted):
        raise TrialFailed(f"{found} lies outside the folders from which this host runs backends (QM_BACKEND_ROOTS)")
    return found


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait_until_ready(trial: Trial, process: subprocess.Popen[bytes]) -> None:
    seconds, health = min(float(trial.inputs["seconds"]), MOST_READY_SECONDS), str(trial.inputs["health"])
    began = time.monotonic()
    while True:
        _still_runs(trial, process)
        with contextlib.suppress(NotAnswered):
            trial.talk(HEALTH_SECONDS).get(health)
            return
        spent = time.monotonic() - began
        if spent >= seconds:
            raise TrialFailed(f"{health} did not answer within {seconds:.0f} s{trial.log.said()}")
        trial.report.progress("Loading", round(spent), unit="seconds", current=(trial.log.lines() or [""])[-1])
        time.sleep(LOOK_SECONDS)


def _asked(trial: Trial, process: subprocess.Popen[bytes]) -> str:
    """What came back, in words. The request waits in a thread, so that nobody waits for a server that died."""
    question = trial.inputs["question"]
    name, seconds = str(question["name"]), min(float(question["seconds"]), MOST_ANSWER_SECONDS)
    ask = QUESTIONS.get(name)
    if ask is None:
        raise TrialFailed(f"this worker knows no question called {name[:40]}: give it the version of the pages")
    began = time.monotonic()
    answer = _in_background(lambda: ask(trial.talk(seconds)))
    while True:
        _still_runs(trial, process)
        trial.report.progress("Asking", round(time.monotonic() - began), unit="seconds", current=name)
        try:
            return answer.result(LOOK_SECONDS)
        except TimeoutError:
            continue
        except NotAnswered as error:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(LOOK_SECONDS)
            _still_runs(trial, process)
            raise TrialFailed(f"it came up, but the question ({name}) failed: {error}{trial.log.said()}") from error


def _in_background(work: Callable[[], str]) -> Future[str]:
    """Its result to be. It is not waited for: when its server is gone, so is its connection."""
    future: Future[str] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except Exception as error:  # whatever it is belongs to whoever asks for the result
            future.set_exception(error)

    threading.Thread(target=run, name="trial-question", daemon=True).start()
    return future


def _still_runs(trial: Trial, process: subprocess.Popen[bytes]) -> None:
    if trial.report.is_cancelled():
        raise Cancelled
    if process.poll() is not None:
        raise TrialFailed(f"it ended by itself with {ending(process.returncode)}{trial.log.said()}")
