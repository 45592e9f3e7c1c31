"""The search: nothing that fits is better, no device is ever over its room, more room never makes a plan worse."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from models_app.core.planning.cache_choice import usable_pairs
from models_app.core.planning.fitting import Fitter, last_holding
from models_app.core.planning.kv_types import KvPair
from models_app.core.planning.projection import load_of_units, project
from models_app.core.planning.question import WINDOW_STEP, Room
from models_app.core.planning.search import search
from models_app.core.planning.weight_placement import split_units
from models_app.core.units import GIB
from tests.core.search_cases import (
    CHAT_MODELS,
    F16,
    MIXTURES,
    MODELS,
    better_launches,
    every_step,
    question,
    room,
    table_of,
)

Q8 = KvPair("q8_0", "q8_0")
relaxed = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
sizes = st.floats(0.5, 60, allow_nan=False).map(lambda value: round(value, 2))


class TestPolicy:
    def test_a_model_that_fits_gets_its_trained_window(self, zoo_header):
        header, table = table_of(zoo_header, "llama31-8b-q4_k_m")
        answer = search(table, question(header, table), room(30))
        assert (answer.placement.ctx_tokens, answer.placement.gpu_layers, answer.pair) == (131072, 99, F16)
        assert answer.limit == "trained"

    def test_the_ladder_is_a_ceiling(self, zoo_header):
        header, table = table_of(zoo_header, "llama31-8b-q4_k_m")
        answer = search(table, question(header, table, ladder_top=65536), room(30))
        assert (answer.placement.ctx_tokens, answer.limit) == (65536, "ladder")

    def test_the_cache_steps_down_before_layers_leave(self, zoo_header):
        header, table = table_of(zoo_header, "llama31-8b-q4_k_m")
        answer = search(table, question(header, table), room(7.2))
        assert answer.pair == Q8
        assert answer.stepped_down
        assert answer.placement.gpu_layers == 99
        assert answer.placement.ctx_tokens >= 32768

    def test_layers_leave_for_the_wanted_window(self, zoo_header):
        header, table = table_of(zoo_header, "mistral-small-24b-iq4_xs")
        answer = search(table, question(header, table), room(7.2))
        assert 0 < answer.placement.gpu_layers <= table.blocks
        assert answer.placement.ctx_tokens >= 32768

    def test_experts_leave_before_layers(self, zoo_header):
        header, table = table_of(zoo_header, "qwen3-next-80b-a3b-q4_k_m")
        answer = search(table, question(header, table), room(7.2))
        assert answer.placement.gpu_layers == 99
        assert answer.placement.cpu_moe_layers > 0
        assert answer.placement.ctx_tokens >= 65536

    def test_a_leading_dense_block_is_no_expert(self, zoo_header):
        _header, table = table_of(zoo_header, "deepseek-v2-lite-q4_k_m")
        assert table.expert_blocks[0] == 1

    def test_a_small_model_gets_its_small_window(self, zoo_header):
        header, table = table_of(zoo_header, "llama31-8b-q4_k_m")
        asked = question(header, table, ceiling_tokens=512)
        answer = search(table, asked, room(30))
        assert (answer.placement.ctx_tokens, answer.placement.batch) == (512, 512)

    def test_a_state_does_not_ask_for_a_smaller_cache(self, zoo_header):
        _header, table = table_of(zoo_header, "codestral-mamba-7b-q8_0")
        assert usable_pairs(table, True) == (F16,)

    def test_without_flash_attention_there_is_no_smaller_cache(self, zoo_header):
        _header, table = table_of(zoo_header, "llama31-8b-q4_k_m")
        assert usable_pairs(table, False) == (F16,)

    def test_slots_share_one_pool(self, zoo_header):
        header, table = table_of(zoo_header, "llama31-8b-q4_k_m")
        one = search(table, question(header, table), room(12))
        four = search(table, question(header, table, slots=4), room(12))
        assert four.launch.ctx_tokens == 4 * four.placement.ctx_tokens
        assert four.placement.ctx_tokens <= one.placement.ctx_tokens

    def test_nothing_fits_into_nothing(self, zoo_header):
        header, table = table_of(zoo_header, "llama31-8b-q4_k_m")
        answer = search(table, question(header, table), room(0))
        assert answer.step.gpu_layers == 0


class TestPins:
    def test_a_window_is_kept_and_layers_give_way(self, zoo_header):
        header, table = table_of(zoo_header, "llama31-8b-q4_k_m")
        answer = search(table, question(header, table, ctx=5000), room(4))
        assert (answer.placement.ctx_tokens, answer.limit) == (5000, "pinned")
        assert answer.placement.gpu_layers <= table.blocks
        assert answer.fits

    def test_layers_are_kept_and_the_window_gives_way(self, zoo_header):
        header, table = table_of(zoo_header, "qwen25-32b-q4_k_m")
        answer = search(table, question(header, table, gpu_layers=20), room(8))
        assert answer.placement.gpu_layers == 20
        assert answer.fits

    def test_experts_are_kept(self, zoo_header):
        header, table = table_of(zoo_header, "gpt-oss-20b-mxfp4")
        answer = search(table, question(header, table, cpu_moe_layers=7), room(12))
        assert answer.placement.cpu_moe_layers == 7

    def test_a_pinned_launch_that_cannot_fit_says_so(self, zoo_header):
        header, table = table_of(zoo_header, "qwen25-32b-q4_k_m")
        answer = search(table, question(header, table, ctx=32768, gpu_layers=table.blocks + 1), room(8))
        assert not answer.fits
        assert answer.placement.gpu_layers == 99

    def test_a_split_is_kept(self, zoo_header):
        header, table = table_of(zoo_header, "llama31-8b-q4_k_m")
        answer = search(table, question(header, table, tensor_split=(3.0, 1.0)), room(12, 12))
        assert answer.placement.tensor_split == (3.0, 1.0)


class TestRam:
    def test_without_a_gpu_the_window_is_sized_by_ram(self, zoo_header):
        header, table = table_of(zoo_header, "llama31-8b-q4_k_m")
        small = search(table, question(header, table), room(ram_gib=8))
        large = search(table, question(header, table), room(ram_gib=64))
        assert small.projection.devices == ()
        assert small.limit == "ram"
        assert small.placement.ctx_tokens < large.placement.ctx_tokens == 131072
        assert small.host.total_bytes <= 8 * GIB

    def test_the_cache_in_ram_is_limited_by_ram(self, zoo_header):
        header, table = table_of(zoo_header, "llama31-8b-q4_k_m")
        answer = search(table, question(header, table, kv_in_ram=True), room(8, ram_gib=6))
        assert answer.placement.kv_in_ram
        assert not answer.launch.kv_offload
        assert answer.projection.devices[0].context_bytes == 0
        assert answer.host.total_bytes <= 6 * GIB


class TestProperties:
    @relaxed
    @given(
        model=st.sampled_from(MODELS),
        devices=st.lists(sizes, min_size=1, max_size=3),
        cuda=st.booleans(),
        data=st.data(),
    )
    def test_no_device_is_over_its_room(self, zoo_header, model, devices, cuda, data):
        header, table = table_of(zoo_header, model)
        asked = question(header, table, slots=data.draw(st.sampled_from((1, 4))))
        limits = room(*devices, ram_gib=64, cuda=cuda)
        answer = search(table, asked, limits)
        over = [use.total_bytes > most for use, most in zip(answer.loads, limits.device_bytes, strict=True)]
        assert not any(over) or not answer.fits
        assert answer.projection == project(table, answer.launch)
        assert answer == search(table, asked, limits)

    @relaxed
    @given(model=st.sampled_from(MODELS), one=sizes, other=sizes, pair=st.sampled_from((F16, Q8)))
    def test_more_room_never_makes_it_worse(self, zoo_header, model, one, other, pair):
        header, table = table_of(zoo_header, model)
        asked = question(header, table, kv_pairs=(pair,))
        less, more = (search(table, asked, room(size)) for size in sorted((one, other)))

        def score(answer):
            return answer.fits, answer.step.gpu_layers, -answer.step.cpu_moe_layers, answer.placement.ctx_tokens

        assert score(less) <= score(more)

    @relaxed
    @given(model=st.sampled_from(MODELS), devices=st.lists(sizes, min_size=2, max_size=3), moved=st.integers(0, 60))
    def test_the_load_of_a_range_is_that_of_the_projection(self, zoo_header, model, devices, moved):
        header, table = table_of(zoo_header, model)
        fitter = Fitter(table, question(header, table), room(*devices))
        answer = search(table, fitter.question, fitter.room)
        launch = replace(answer.launch, cpu_moe_layers=moved, tensor_split=tuple(devices))
        load = load_of_units(table, launch, cuda=True)
        ranges = split_units(table.blocks, launch.gpu_layers, launch.tensor_split).ranges
        found = [load(start, end, number == 0) for number, (start, end) in enumerate(ranges)]
        assert found == [use.total_bytes for use in project(table, launch, cuda=True).devices]


def optimal(zoo_header, seed: int) -> list[str]:
    """What a brute force finds that fits and is better, with the type of the cache fixed."""
    chance = random.Random(seed)
    header, table = table_of(zoo_header, chance.choice(CHAT_MODELS))
    most = min(90.0, header.file_size_bytes / GIB * 1.3)
    devices = [chance.uniform(1, max(2, most))]
    if chance.random() < 0.2:
        devices = [devices[0] * 0.4, devices[0] * 0.6]
    asked = question(header, table, kv_pairs=(chance.choice(usable_pairs(table, True)),))
    limits = room(*devices, cuda=chance.random() < 0.6)
    answer = search(table, asked, limits)
    fitter = Fitter(table, asked, limits)
    if not answer.fits:
        least = min(WINDOW_STEP, asked.top_tokens)
        return [
            f"{header.path}: {devices} holds {least} with {step}, but the answer does not fit"
            for step in every_step(table)
            if fitter.trial(least, answer.pair, step).fits
        ]
    return [
        f"{header.path}: {devices} {answer.placement.ctx_tokens} {answer.step} < {ctx} {step}"
        for ctx, step in better_launches(fitter, answer)
        if fitter.trial(ctx, answer.pair, step).fits
    ]


@pytest.mark.parametrize("seed", range(30))
def test_nothing_that_fits_is_better(zoo_header, seed):
    assert optimal(zoo_header, seed) == []


@pytest.mark.once
@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 1300, 30))
def test_nothing_that_fits_is_better_in_300_cases(zoo_header, first):
    assert [found for seed in range(first, first + 30) for found in optimal(zoo_header, seed)] == []


@pytest.mark.parametrize("model", MIXTURES)
def test_windows_are_multiples_of_the_step(zoo_header, model):
    header, table = table_of(zoo_header, model)
    answer = search(table, question(header, table), room(10))
    assert answer.placement.ctx_tokens % WINDOW_STEP == 0


@given(st.integers(0, 500), st.integers(2, 400), st.data())
def test_the_last_that_holds_is_found(low, width, data):
    high = low + width
    edge = data.draw(st.integers(low, high - 1))
    asked = []

    def spare(value: int) -> int:
        asked.append(value)
        return (edge - value) ** 3 if value != edge else 0

    assert last_holding(low, spare(low), high, spare(high), spare) == edge
    assert len(asked) < 40


def test_a_room_without_devices_has_no_limit_on_them():
    assert Room().device_bytes == ()
