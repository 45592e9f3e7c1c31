"""The small rules that sizing and launch share."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models_app.core.planning.batch import effective_batch, effective_ubatch, is_long, slot_count
from models_app.core.planning.checkpoints import Checkpoints, checkpoint_defaults, resolve_checkpoints
from models_app.core.planning.drafters import (
    draft_file_attaches,
    draft_length,
    effective_spec,
    rollback_snapshots,
    uses_baked_head,
)
from models_app.core.planning.kv_types import KvPair, element_bytes, resolve_kv_pair, valid_kv_pair
from models_app.core.planning.rope import rope_ceiling, rope_factor, rope_scale


@pytest.mark.parametrize(
    ("k", "v", "pair"),
    [
        ("q8_0", "", ("q8_0", "q8_0")),
        ("", "q4_0", ("q4_0", "q4_0")),
        ("", "", ("f16", "f16")),
        ("q8_0", "f16", ("f16", "f16")),
        ("iq4_nl", "iq4_nl", ("f16", "f16")),
    ],
)
def test_pairs(k, v, pair):
    assert resolve_kv_pair(k, v, "f16") == KvPair(*pair)


def test_only_equal_types_are_valid():
    assert valid_kv_pair("q5_1", "q5_1")
    assert not valid_kv_pair("q8_0", "f16")
    assert not valid_kv_pair("q3_k", "q3_k")
    assert element_bytes("unheard-of") == element_bytes("q8_0") == 1.0625


def test_slots():
    assert [slot_count(wish) for wish in (None, 0, -3, 4, 400)] == [1, 1, 1, 4, 8]
    assert slot_count(0, 3) == 3
    assert slot_count(2, 3) == 2


@pytest.mark.parametrize(
    ("moe", "long", "target", "own", "profile", "ubatch"),
    [
        (False, False, 24, 0, 0, 512),
        (True, False, 24, 0, 0, 1024),
        (True, True, 8, 0, 0, 512),
        (True, True, 12, 0, 0, 1024),
        (True, True, 0, 0, 0, 1024),
        (True, True, 8, 2048, 0, 2048),
        (True, True, 8, 2048, 256, 256),
    ],
)
def test_ubatch(moe, long, target, own, profile, ubatch):
    assert effective_ubatch(moe, long, target, own, profile) == ubatch


def test_batch():
    assert [effective_batch(512, 32768), effective_batch(4096, 32768), effective_batch(512, 1024)] == [2048, 4096, 1024]
    assert [is_long(65535), is_long(65536), is_long(0, True)] == [False, True, True]


@pytest.mark.parametrize(
    ("scaling", "requested", "native", "ceiling"),
    [
        ("", 262144, 131072, 131072),
        ("yarn", 262144, 131072, 262144),
        ("linear", 262144, 131072, 262144),
        ("yarn", 65536, 131072, 131072),
        ("yarn", 16777216, 131072, 1048576),
        ("none", 65536, 0, 32768),
    ],
)
def test_rope_ceiling(scaling, requested, native, ceiling):
    assert rope_ceiling(scaling, requested, native) == ceiling


def test_rope_factor():
    factors = [rope_factor(ctx, 131072) for ctx in (65536, 131072, 140000, 163840, 262144, 1048576, 1 << 30)]
    assert factors == [0, 0, 1.5, 1.5, 2, 8, 8]
    assert rope_scale("", 262144, 131072) is None
    assert rope_scale("yarn", 262144, 131072) == 2
    assert rope_scale("", 1, 131072, 4) == 4


@given(st.integers(1, 1 << 24), st.integers(1, 1 << 20))
def test_rope_factor_covers_the_window(ctx, native):
    factor = rope_factor(ctx, native)
    assert factor == 0 or factor == 8 or ctx <= factor * native


def test_checkpoints():
    assert checkpoint_defaults(True, True) == Checkpoints(2, 256)
    assert checkpoint_defaults(False, True) == Checkpoints(3, 1024)
    assert resolve_checkpoints(False, False, 0, None, 512) == Checkpoints(0, 512)
    assert resolve_checkpoints(False, False, None, 0, 0) == Checkpoints(3, 256)


def test_drafting():
    assert effective_spec(True, "") == "draft-mtp+ngram-mod"
    assert effective_spec(False, "mtp") == "draft-mtp+ngram-mod"
    assert effective_spec(False, "dflash") == "ngram-mod"
    assert effective_spec(True, "mtp", "", "none") == "none"
    assert [draft_length("ngram-mod"), draft_length("draft-mtp"), draft_length("draft-dflash", 0)] == [0, 2, 5]
    assert draft_length("draft-mtp", 7) == 7
    assert draft_file_attaches("draft-mtp+ngram-mod", "mtp")
    assert not draft_file_attaches("draft-mtp", "dflash")
    assert uses_baked_head("draft-mtp", 1, False)
    assert not uses_baked_head("draft-mtp", 1, True)


def test_rollback_snapshots():
    assert rollback_snapshots("qwen35", "draft-mtp+ngram-mod", 2) == 2
    assert rollback_snapshots("jamba", "draft-mtp", 2) == 0
    assert rollback_snapshots("qwen35", "ngram-mod", 2) == 0
