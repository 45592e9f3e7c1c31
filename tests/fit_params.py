"""Launches that llama-fit-params was asked about, its recorded answers, and real programs where there are some.

python -m tests.fit_params FOLDER      records the answers anew, with the programs of a llama.cpp build in FOLDER
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from gpus_app.core.budget import budget_of
from gpus_app.core.probes.program import ProgramRun, run_program
from models_app.core.catalog import Header, Plan
from models_app.core.planning.table import model_table
from models_app.core.plans import plan_row
from models_app.core.plans.verification import Run, verify_plan
from models_app.core.readers import read_header
from models_app.core.settings import Override, Settings
from models_app.core.verbs.planning_run import row_of
from tests.zoo import zoo

FOLDER = Path(__file__).parent / "data" / "llama-fit-params"


class Case(NamedTuple):
    """A plan with everything pinned that decides over memory, so that it stays the launch that was recorded."""

    name: str
    model: str
    devices: int
    text: str

    @property
    def recorded(self) -> str:
        return (FOLDER / f"{self.name}.txt").read_text(encoding="utf-8")


CASES = (
    Case("one-device", "qwen3-8b-q4_k_m", 1, "-c 32768 -ngl 99 -ctk f16 -ctv f16 -ub 512"),
    Case("two-devices", "gemma3-12b-q4_k_m", 2, "-c 16384 -ngl 99 -ctk q8_0 -ctv q8_0 -ub 512 --tensor-split 3,2"),
    Case("half-offload", "llama31-8b-q4_k_m", 1, "-c 16384 -ngl 17 -ctk f16 -ctv f16 -ub 512"),
    Case("n-cpu-moe", "gpt-oss-20b-mxfp4", 1, "-c 16384 -ngl 99 -ctk f16 -ctv f16 -ub 512 --n-cpu-moe 12"),
    Case("slots", "qwen3-0.6b-q8_0", 1, "-c 32768 -ngl 99 -ctk f16 -ctv f16 -ub 512 --parallel 4"),
    Case("hybrid", "qwen35-9b-q4_k_m", 1, "-c 32768 -ngl 99 -ctk q8_0 -ctv q8_0 -ub 1024"),
    Case("no-device", "qwen3-8b-q4_k_m", 0, "-c 8192 -ctk f16 -ctv f16 -ub 512"),
)


def plan_of(header: Header, devices: int, text: str) -> Plan:
    """The plan of a launch text on devices of 80 GiB each."""
    return plan_row(
        row_of(header.path, header),
        header,
        settings=Settings(),
        override=Override(custom_args=text),
        budget=budget_of([80.0] * devices, 512.0),
    )[0]


@contextmanager
def stand_ins(folder: Path, count: int) -> Iterator[list[str]]:
    """The words that name so many devices, each an RPC server of ordinary memory."""
    ports = [free_port() for _ in range(count)]
    servers = [
        subprocess.Popen(
            ["nice", folder / "ggml-rpc-server", "-H", "127.0.0.1", "-p", str(port)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        for port in ports
    ]
    try:
        for port in ports:
            _wait_for(port)
        yield ["--rpc", ",".join(f"127.0.0.1:{port}" for port in ports)] if ports else []
    finally:
        for server in servers:
            os.killpg(server.pid, signal.SIGKILL)
            server.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait_for(port: int) -> None:
    for _ in range(100):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise TimeoutError(f"no RPC server on port {port}")


def real_run(keep: Callable[[str], None] = lambda _text: None) -> Run:
    """Runs a program for `verify_plan`; what llama-fit-params prints is handed to `keep`."""

    def run(words: Sequence[str], seconds: float) -> ProgramRun:
        answer = run_program(words, seconds, os.environ)
        if "--version" not in words:
            keep(answer.stdout)
        return answer

    return run


def record(programs: Path) -> None:
    """Write the answer to every case."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for case in CASES:
            header = read_header(min(zoo.write_model(case.model, folder)))
            keep = (FOLDER / f"{case.name}.txt").write_text
            with stand_ins(programs, case.devices) as words:
                plan = plan_of(header, case.devices, case.text)
                fit_params = str(programs / "llama-fit-params")
                seen = verify_plan(plan, model_table(header), fit_params, words, real_run(keep))
            print(case.name, seen.build, seen.comparison.agreement_percent, "%")


if __name__ == "__main__":
    record(Path(sys.argv[1]))
