"""Memory beside the projection: draft contexts, checkpoints, shares of devices."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models_app.core.planning.checkpoints import Checkpoints
from models_app.core.planning.device_split import counts_of, filled_in_order, proportional, shares_of
from models_app.core.planning.kv_types import KvPair
from models_app.core.planning.side_memory import BakedHead, checkpoint_bytes, keeps_checkpoints, one_checkpoint_bytes
from models_app.core.planning.table import model_table
from models_app.core.units import MIB
from tests.core.search_cases import F16, question


class TestCheckpoints:
    def test_a_plain_model_takes_none(self, zoo_header):
        table = model_table(zoo_header("llama31-8b-q4_k_m"))
        assert not keeps_checkpoints(table)
        assert checkpoint_bytes(table, Checkpoints(32, 256), 131072, 8, F16) == 0

    def test_a_sliding_model_keeps_its_window(self, zoo_header):
        header = zoo_header("gemma3-12b-q4_k_m")
        table = model_table(header)
        sliding = sum(1 for cache in table.caches if cache.sliding)
        one = 1024 * sliding * 8 * (256 + 256) * 2
        assert one_checkpoint_bytes(table, 131072, F16) == one
        assert checkpoint_bytes(table, Checkpoints(3, 1024), 131072, 2, F16) == 6 * one

    def test_a_hybrid_keeps_its_state(self, zoo_header):
        table = model_table(zoo_header("qwen35-9b-q4_k_m"))
        assert one_checkpoint_bytes(table, 131072, F16) / MIB == pytest.approx(50.25)

    def test_a_short_window_has_no_room_for_many(self, zoo_header):
        table = model_table(zoo_header("qwen35-9b-q4_k_m"))
        assert checkpoint_bytes(table, Checkpoints(32, 8192), 4096, 1, F16) == 0


class TestBakedHead:
    def test_one_layer_of_4096(self, zoo_header):
        """sizing.md 18.8: -c 8192 takes 32 MiB of cache, 17 at q8_0, and 96 MiB of compute buffer."""
        header = replace(
            zoo_header("llama31-8b-q4_k_m"), nextn_layers=1, block_count=33, head_count_kv=8, key_length=128
        )
        table = replace(model_table(zoo_header("llama31-8b-q4_k_m")), nextn_bytes=0)
        widest = tuple(item._replace(feed_forward=3 * 12288) for item in table.working_sets)
        head = BakedHead(replace(table, working_sets=widest), header, question(header, table))
        compute = 4 * 512 * (3 * 12288 + 3 * 4096)
        assert compute == 96 * MIB
        assert head.bytes_at(8192, F16) == 32 * MIB + compute
        assert head.bytes_at(8192, KvPair("q8_0", "q8_0")) == 17 * MIB + compute
        assert head.bytes_at(32768, F16) == 128 * MIB + compute

    def test_it_grows_with_the_window(self, zoo_header):
        header = zoo_header("glm45-air-ud_q2")
        table = model_table(header)
        head = BakedHead(table, header, question(header, table))
        sizes = [head.bytes_at(ctx, F16) for ctx in (4096, 65536, 131072)]
        assert table.nextn_bytes < sizes[0] < sizes[1] < sizes[2]


class TestShares:
    @given(st.lists(st.integers(0, 130), min_size=2, max_size=5).filter(lambda counts: sum(counts) > 0))
    def test_the_ratio_gives_exactly_these_layers(self, counts):
        assert counts_of(shares_of(counts), sum(counts)) == tuple(counts)

    def test_two_decimals_where_they_are_enough(self):
        assert shares_of((20, 29)) == (0.4, 0.6)
        assert shares_of((0, 0)) == (1.0, 1.0)

    @given(st.lists(st.integers(0, 100), min_size=1, max_size=5), st.integers(0, 200))
    def test_nothing_is_lost(self, weights, units):
        counts = proportional(weights, units)
        assert sum(counts) == units
        assert all(count >= 0 for count in counts)

    @given(
        st.lists(st.integers(0, 40), min_size=1, max_size=4),
        st.lists(st.integers(1, 9), max_size=40),
        st.lists(st.integers(0, 40), max_size=4),
    )
    def test_a_distribution_is_found_whenever_there_is_one(self, limits, layers, guess):
        def fits(counts: tuple[int, ...], device: int) -> bool:
            start = sum(counts[:device])
            return sum(layers[start : start + counts[device]]) <= limits[device]

        found = filled_in_order(len(limits), len(layers), fits, tuple(guess))
        assert (found is not None) == possible(limits, layers)
        if found is not None:
            assert sum(found) == len(layers)
            assert all(fits(found, device) for device in range(len(limits)))


def possible(limits: list[int], layers: list[int]) -> bool:
    """In order, each device takes what it can: nothing else can take more."""
    left = list(layers)
    for limit in limits:
        held = 0
        while left and held + left[0] <= limit:
            held += left.pop(0)
    return not left
