"""NVIDIA devices through NVML's C interface: our binding loads a library that speaks the real symbols."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gpus_app.core.units import GIB

HERE = Path(__file__).parent
SCENARIOS = {
    "one": "devices=1",
    "none": "devices=0",
    "three": "devices=3 lost=1",
    "unseen": "devices=2 unseen=0",
    "figures": "figures=3",
    "unified": "memory=3",
    "broken": "memory=999",
    "mig": "mig=2",
    "mig off": "mig=0",
    "wddm": "wddm=1",
    "hidden": "processes=4",
    "idle": "computing=0 drawing=0",
    "count": "count=15",
    "mismatch": "init=18",
    "unloaded": "init=9",
    "forbidden": "init=4",
    "nonsense": "nonsense=1",
    "shutdown": "shutdown=999",
}
PROGRAM = """
import dataclasses, json, os, sys
from gpus_app.core.probes import nvidia
answers = {}
for name, words in json.loads(sys.argv[1]).items():
    os.environ["QM_NVML"] = words
    with nvidia.kept_open():
        nvidia.read()
    answers[name] = dataclasses.asdict(nvidia.read())
print(json.dumps(answers))
"""


def ask(folder: Path, *flags: str) -> dict[str, Any]:
    """What our probe says in each scenario, asked by one process that finds the library through the loader's path."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler here: the stand-in for NVML cannot be built")
    library = folder / "libnvidia-ml.so.1"
    command = [compiler, "-shared", "-fPIC", "-O0", "-w", *flags, str(HERE / "nvml_stub.c"), "-o", str(library)]
    subprocess.run(command, check=True)
    answer = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(SCENARIOS)],
        env=os.environ | {"LD_LIBRARY_PATH": str(folder)},
        cwd=HERE.parent.parent,
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(answer.stdout)


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    return ask(tmp_path_factory.mktemp("nvml"))


def test_a_card_with_all_its_figures(said):
    (card,) = said["one"]["devices"]
    assert (card["name"], card["uuid"], card["pci_address"]) == (
        "NVIDIA GeForce RTX 3090",
        "GPU-0",
        "00000000:01:00.0",
    )
    assert (card["total_bytes"], card["used_bytes"], card["reserved_bytes"]) == (24 * GIB, 8 * GIB, GIB // 2)
    assert (card["temperature_celsius"], card["utilisation_percent"], card["power_watts"]) == (61, 97, 287.5)
    assert not said["one"]["failed"]


def test_a_process_that_computes_and_draws_counts_once(said):
    (card,) = said["one"]["devices"]
    assert [(one["pid"], one["used_bytes"]) for one in card["processes"]] == [(4000, GIB), (4001, 2 * GIB)]


def test_no_process_is_an_answer_and_no_answer_is_none(said):
    """Windows tells no sizes; a driver may refuse: then nobody may be called the owner of what is in use."""
    processes = {name: said[name]["devices"][0]["processes"] for name in ("idle", "wddm", "hidden")}
    assert processes == {"idle": [], "wddm": None, "hidden": None}


def test_a_lost_card_hides_no_other(said):
    result = said["three"]
    assert [card["index"] for card in result["devices"]] == [0, 2]
    assert result["failed"]
    assert "GPU 1 does not answer: GPU is lost (the driver lost it" in result["note"]
    assert [card["index"] for card in said["unseen"]["devices"]] == [1]


def test_figures_that_a_card_does_not_report_are_unknown(said):
    (card,) = said["figures"]["devices"]
    assert (card["temperature_celsius"], card["utilisation_percent"], card["power_watts"]) == (None, None, None)
    assert card["total_bytes"] == 24 * GIB


def test_a_device_without_memory_of_its_own_is_said(said):
    (card,) = said["unified"]["devices"]
    assert (card["total_bytes"], said["unified"]["failed"]) == (0, False)
    assert "does not report its memory" in said["unified"]["note"]


def test_instances_stand_for_their_card(said):
    first, second = said["mig"]["devices"]
    assert (first["index"], second["index"]) == (64, 65)
    assert (first["name"], first["uuid"], first["total_bytes"]) == ("NVIDIA A100 MIG 3g.20gb", "MIG-0-0", 20 * GIB)
    assert (first["utilisation_percent"], first["temperature_celsius"]) == (None, 61)
    assert [card["uuid"] for card in said["mig off"]["devices"]] == ["GPU-0"]


@pytest.mark.parametrize(
    ("scenario", "failed", "words"),
    [
        ("none", False, "sees no device"),
        ("unloaded", False, "no NVIDIA driver (Driver Not Loaded)"),
        ("mismatch", True, "version mismatch (restart this machine"),
        ("forbidden", True, "Insufficient Permissions (the user of the worker"),
        ("count", True, "NVML failed: GPU is lost"),
        ("broken", True, "GPU 0 does not answer: Unknown Error"),
    ],
)
def test_why_there_is_nothing(said, scenario, failed, words):
    assert (said[scenario]["devices"], said[scenario]["failed"]) == ([], failed)
    assert words in said[scenario]["note"]


def test_nonsense_stays_within_bounds(said):
    (card,) = said["nonsense"]["devices"]
    assert (card["name"], card["used_bytes"]) == ("NVIDIA GPU", 0)


def test_a_library_that_cannot_be_closed_has_answered(said):
    assert len(said["shutdown"]["devices"]) == 1


def test_a_driver_of_old(tmp_path):
    said = ask(tmp_path, "-DOLD")
    (card,) = said["one"]["devices"]
    assert (card["used_bytes"], card["reserved_bytes"], card["processes"]) == (8 * GIB, 0, None)
    assert said["unified"]["devices"][0]["total_bytes"] == 0
