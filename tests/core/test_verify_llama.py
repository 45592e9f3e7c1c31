"""Every model of the zoo against a real llama.cpp, in the folder that QM_LLAMA_BIN names (docs/memory-model.md)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from models_app.core.classes import classify
from models_app.core.planning.table import model_table
from models_app.core.plans.verification import find_fit_params, verify_plan
from models_app.core.units import MIB
from tests.fit_params import CASES, plan_of, real_run, stand_ins
from tests.zoo import zoo

pytestmark = [pytest.mark.llama, pytest.mark.xdist_group("llama")]

CHAT_MODELS = [name for name in zoo.MODELS if "embed" not in name]
LAUNCH = "-c 16384 -ctk f16 -ctv f16 -ub 512"


@pytest.fixture(scope="module")
def folder():
    """The programs of a llama.cpp build."""
    return Path(os.environ["QM_LLAMA_BIN"])


@pytest.fixture(scope="module")
def devices(folder):
    """One and two devices: the words that name them."""
    with stand_ins(folder, 1) as one, stand_ins(folder, 2) as two:
        yield [], one, two


def _seen(header, folder, devices, count, text, keep=lambda _text: None):
    fit_params = find_fit_params(str(folder / "llama-server"))
    return verify_plan(plan_of(header, count, text), model_table(header), fit_params, devices[count], real_run(keep))


@pytest.mark.parametrize("model", CHAT_MODELS)
def test_a_model_of_the_zoo(model, zoo_header, folder, devices):
    header = zoo_header(model)
    assert classify(model, header).model_class == "llm"
    comparison = _seen(header, folder, devices, 1, f"{LAUNCH} -ngl 99").comparison
    for use in (*comparison.difference.devices, comparison.difference.host):
        assert use.context_bytes == 0
        assert abs(use.model_bytes) <= MIB
    assert comparison.agreement_percent <= 1


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_recorded_answers_are_those_of_this_build(case, zoo_header, folder, devices):
    printed = []
    header = zoo_header(case.model)
    _seen(header, folder, devices, case.devices, case.text, printed.append)
    assert printed == [case.recorded]
