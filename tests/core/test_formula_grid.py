"""The formulas of plans against llama.cpp's work done again, where no measured launch reaches.

Three devices, devices that hold a block or two, several sequences of a hybrid: the tables of measured launches have
hardly any of these. What is played is equal to what was measured wherever both are known, so it stands in for that.
"""

from __future__ import annotations

import pytest

from models_app.core.catalog import Launch
from models_app.core.planning.table import model_table
from tests.formula_grid import USUAL_UBATCH, figures, grid

pytestmark = pytest.mark.xdist_group("truth")  # in one process: headers are shared

GRID_MODELS = (
    "llama31-8b-q4_k_m", "gemma3-12b-q4_k_m", "gpt-oss-20b-mxfp4", "qwen3-30b-a3b-q4_k_m", "glm45-air-ud_q2",
    "deepseek-v2-lite-q4_k_m", "qwen3-next-80b-a3b-q4_k_m", "qwen35-9b-q4_k_m", "lfm2-1.2b-q8_0",
    "nemotron-nano-9b-v2-q4_k_m", "granite4-h-small-q4_k_m", "codestral-mamba-7b-q8_0", "falcon-h1-1", "jamba-3",
)  # fmt: skip


@pytest.mark.parametrize(
    ("model", "launch"),
    [
        # The last block runs its feed-forward for the wanted rows alone, and nothing else crosses to the output.
        ("llama31-8b-q4_k_m", Launch(32768, ubatch=2048, gpu_layers=2)),
        ("llama31-8b-q4_k_m", Launch(32768, ubatch=2048, gpu_layers=1)),
        ("qwen3-30b-a3b-q4_k_m", Launch(4096, ubatch=2048, gpu_layers=2)),
        # Devices in the middle keep copies of what a mixer projects, both incoming and outgoing.
        ("codestral-mamba-7b-q8_0", Launch(8192, ubatch=1024, devices=3)),
        ("nemotron-nano-9b-v2-q4_k_m", Launch(8192, ubatch=1024, devices=3)),
        # Of attention there is nothing to keep.
        ("nemotron-nano-9b-v2-q4_k_m", Launch(8192, ubatch=512, devices=2, tensor_split=(15.0, 42.0))),
        # The device attends for the last block of the host.
        ("nemotron-nano-9b-v2-q4_k_m", Launch(131072, ubatch=2048, gpu_layers=17)),
        ("lfm2-4", Launch(131072, slots=4, gpu_layers=16)),
        # States of all sequences are copied.
        ("qwen35-9b-q4_k_m", Launch(65536, slots=8, kv_unified=True)),
        ("nemotron-nano-9b-v2-q4_k_m", Launch(8192, slots=8, kv_unified=True)),
        # Results of experts on the host go to the second device.
        ("qwen3-30b-a3b-q4_k_m", Launch(32768, ubatch=2048, devices=2, cpu_moe_layers=48)),
        ("minimax-m2-q4_k_m", Launch(32768, ubatch=512, devices=2, cpu_moe_layers=46)),
    ],
)
def test_a_device_is_in_aim(header_of, model, launch):
    *devices, _ = figures(model, model_table(header_of(model)), launch)
    assert all(figure.in_aim for figure in devices), devices


def test_a_device_that_attends_for_the_host_is_equal_to_the_byte(header_of):
    device, _ = figures("lfm2-4", model_table(header_of("lfm2-4")), Launch(131072, slots=4, gpu_layers=16))
    assert abs(device.error) < 0.001


def test_nothing_is_far_below_on_a_grid_of_usual_launches(header_of):
    found = []
    for model in GRID_MODELS:
        table = model_table(header_of(model))
        for launch in grid(model, table, 10):
            if launch.ubatch <= USUAL_UBATCH:
                found += figures(model, table, launch)
    low = min(found, key=lambda figure: figure.error)
    assert low.error > -64, low
    in_aim = sum(figure.in_aim for figure in found)
    assert in_aim >= 0.97 * len(found), f"{in_aim} of {len(found)}"
