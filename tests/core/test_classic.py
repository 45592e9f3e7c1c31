"""The classic engine against the figures of sizing.md: what the reference itself computes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from models_app.core.catalog import Header
from models_app.core.errors import PlanError
from models_app.core.planning.classic_kv import (
    KvLine,
    checkpoint_reserve_gib,
    default_kv_type,
    kv_line,
    round_ctx,
)
from models_app.core.planning.classic_overheads import (
    clip_gib,
    compute_gib,
    draft_overhead_gib,
    mtp_slope_bytes,
    profile_target_gib,
    projector_clip_gib,
)
from models_app.core.planning.classic_placement import (
    expert_share,
    force_low_active_moe,
    forced_offload,
    load_plan,
    reprice,
)
from models_app.core.planning.classic_window import ProfileNeeds, dense_window, size_profile
from models_app.core.units import GIB

LADDER = (1048576, 524288, 262144, 131072, 65536, 32768)


def header(size_gib: float, **facts: object) -> Header:
    return Header(file_size_bytes=round(size_gib * GIB), **facts)  # type: ignore[arg-type]


GEMMA4 = header(
    3.581,
    architecture="gemma4",
    block_count=35,
    head_count_kv=1,
    key_length=512,
    value_length=512,
    key_length_swa=256,
    value_length_swa=256,
    sliding_window=512,
)
LFM2 = header(
    4.801,
    architecture="lfm2moe",
    block_count=24,
    head_count_kv=8,
    head_count_kv_arr=(0, 0, 8, 0, 0, 8, 0, 0, 0, 8, 0, 0, 0, 8, 0, 0, 0, 8, 0, 0, 0, 8, 0, 0),
    key_length=64,
    value_length=64,
    expert_weight_share=0.9059,
    is_moe=True,
)
QWEN35 = header(
    5.243,
    architecture="qwen35",
    block_count=32,
    head_count_kv=4,
    key_length=256,
    value_length=256,
    full_attn_interval=4,
    ssm_inner_size=4096,
    ssm_conv_kernel=4,
    ssm_state_size=128,
)
MISTRAL = header(7.27, architecture="mistral3", block_count=40, head_count_kv=8, key_length=128, value_length=128)
QWEN3MOE = header(17.28, architecture="qwen3moe", block_count=48, is_moe=True, expert_weight_share=0.9)
LLAMA = header(
    8, architecture="llama", block_count=32, head_count_kv=8, key_length=128, value_length=128, context_length=131072
)


class TestCache:
    @pytest.mark.parametrize(
        ("model", "slope", "const", "full", "local", "recurrent"),
        [
            (GEMMA4, 5.07e-6, 0.007782, 5, 30, 0),
            (LFM2, 6.08e-6, 0, 6, 0, 0),
            (QWEN35, 1.621e-5, 0.047974, 8, 0, 24),
            (MISTRAL, 8.106e-5, 0, 40, 0, 0),
        ],
    )
    def test_goldens(self, model, slope, const, full, local, recurrent):
        line = kv_line(model, "q8_0", "q8_0")
        assert line.slope_gib == pytest.approx(slope, abs=1e-7)
        assert line.const_gib == pytest.approx(const, abs=1e-5)
        assert (line.global_layers, line.local_layers, line.recurrent_layers) == (full, local, recurrent)

    def test_a_header_without_lengths_has_no_line(self):
        assert kv_line(header(8, block_count=32), "f16", "f16") is None
        assert kv_line(replace(LLAMA, block_count=10**9), "f16", "f16") is None

    def test_no_room_no_window(self):
        assert KvLine(1e-5, 0.1).max_ctx(0.1) == 0
        assert KvLine(0, 0).max_ctx(1) == 0

    @pytest.mark.parametrize(("ctx", "rounded"), [(100, 4096), (5000, 4096), (32767, 28672), (65536, 65536)])
    def test_rounding(self, ctx, rounded):
        assert round_ctx(ctx) == rounded

    def test_slots_multiply_both_parts(self):
        line = KvLine(2e-5, 0.05).times(4)
        assert (line.slope_gib, line.const_gib) == (8e-5, 0.2)


class TestCacheType:
    def test_full_precision_while_the_least_window_fits(self):
        slope = kv_line(LLAMA, "f16", "f16").slope_gib
        assert default_kv_type(LLAMA, 9.5 + slope * 32768, 1, 32768, "") == "f16"
        assert default_kv_type(LLAMA, 9 + slope * 16384, 1, 32768, "") == "q8_0"

    def test_a_wish_wins_unless_no_server_runs_it(self):
        assert default_kv_type(LLAMA, 10, 1, 32768, "q5_1") == "q5_1"
        assert default_kv_type(LLAMA, 100, 1, 32768, "iq4_nl") == "f16"


class TestCheckpoints:
    @pytest.mark.parametrize(
        ("count", "ceiling", "reserve"),
        [(None, 131072, 0.21144), (8, 131072, 0.56384), (0, 131072, 0), (32, 4096, 0.28192), (32, 100, 0)],
    )
    def test_reserve(self, count, ceiling, reserve):
        line = KvLine(2e-5, 0.05)
        assert checkpoint_reserve_gib(line, False, count, ceiling) == pytest.approx(reserve, abs=1e-9)

    def test_many_checkpoints_shorten_the_window(self):
        model, line = header(4, architecture="llama", block_count=32), KvLine(2e-5, 0)
        needs = {"target_gib": 5, "max_ram_gib": 64, "overhead_gib": 0.5, "model_max": 131072, "min_ctx": 4096}
        none = size_profile(model, line, ProfileNeeds(**needs, ladder=LADDER, checkpoints=0))
        many = size_profile(model, line, ProfileNeeds(**needs, ladder=LADDER, checkpoints=32))
        assert many.ctx_tokens < none.ctx_tokens


class TestOverheads:
    def test_compute_buffer(self):
        assert compute_gib(151936, 4096, 1024, 1, "cuda") == pytest.approx(1.0046, abs=1e-4)
        assert compute_gib(151936, 4096, 1024, 2, "cuda") == pytest.approx(1.7092, abs=1e-4)
        assert compute_gib(151936, 4096, 512, 1, "cuda") == pytest.approx(0.6523, abs=1e-4)
        assert compute_gib(0, 4096, 512, 1, "rocm") == 0.17
        assert compute_gib(151936, 4096, 512, -1, "rocm") == pytest.approx(0.6523 + 0.5, abs=1e-4)

    def test_projector(self):
        assert clip_gib(768, 16, 1152, 4304, 16) == pytest.approx(0.4722, abs=1e-4)
        assert clip_gib(768, 8, 1152, 4304, 16) == pytest.approx(6.82, abs=0.01)
        assert projector_clip_gib(Header(), 1.0) == 1.0
        assert projector_clip_gib(None, 0.7) == 0.7

    @pytest.mark.parametrize(
        ("spec", "size", "kind", "overhead"),
        [
            ("draft-mtp+ngram-mod", 0.46, "mtp", 0.56),
            ("draft-mtp", 0, "", 0.15),
            ("draft-mtp", 0.46, "dflash", 0.15),
            ("draft-dflash", 0.46, "dflash", 0.56),
            ("draft-dflash", 0.46, "mtp", 0),
            ("draft-dflash", 0, "", 0),
            ("ngram-mod", 0.46, "mtp", 0),
        ],
    )
    def test_drafter(self, spec, size, kind, overhead):
        assert draft_overhead_gib(spec, size, kind) == pytest.approx(overhead)

    def test_baked_head(self):
        model = header(9.154, block_count=65, head_count_kv=4, key_length=256, value_length=256, nextn_layers=1)
        assert mtp_slope_bytes(model, "f16", "f16", "", 0) == 4096
        assert mtp_slope_bytes(model, "q8_0", "q8_0", "", 0) == 2176
        assert mtp_slope_bytes(model, "f16", "f16", "ngram-mod", 0) == 0
        assert mtp_slope_bytes(model, "f16", "f16", "draft-mtp", 0.46) == 0

    def test_long_profiles_keep_half_a_gib(self):
        assert profile_target_gib(8, 0.2, True) == pytest.approx(7.7)
        assert profile_target_gib(8, 0.2, False) == 8


class TestWindow:
    @pytest.mark.parametrize(
        ("model_max", "slope", "const", "file", "target", "overhead", "ladder", "offload", "ctx", "note"),
        [
            (262144, 0.6 / 131072, 0.1, 8, 40, 1.5, LADDER, False, 262144, "model-max"),
            (262144, 0.6 / 131072, 0.1, 8, 40, 1.5, (65536, 32768), False, 65536, "ladder-top (full gpu)"),
            (262144, 0.6 / 131072, 0.1, 8, 40, 1.5, (), False, 262144, "model-max"),
            (131072, 1e-4, 0, 8, 10, 0.5, (65536,), False, 12288, "max-ctx (full gpu, under min)"),
            (131072, 1e-4, 0, 8, 10, 0.5, (65536,), True, 32768, "vram-limited (offload for ctx)"),
            (131072, 1e-4, 0, 12, 10, 0.5, (65536,), False, 32768, "vram-limited (offload for ctx)"),
        ],
    )
    def test_dense(self, model_max, slope, const, file, target, overhead, ladder, offload, ctx, note):
        window = dense_window(model_max, KvLine(slope, const), file, target, overhead, ladder, 32768, offload)
        assert (window.ctx_tokens, window.note) == (ctx, note)

    def test_a_pinned_window_of_a_mixture_is_hard(self):
        model = header(20, architecture="qwen3moe", block_count=48, is_moe=True, expert_weight_share=0.9)
        needs = ProfileNeeds(8, 64, 0.5, 131072, pinned_ctx=100000, moe_ctx_target=65536)
        assert size_profile(model, KvLine(5e-5, 0), needs).ctx_tokens == 98304

    def test_a_window_of_the_launch_text_is_exact(self):
        needs = {"target_gib": 40, "max_ram_gib": 64, "overhead_gib": 1, "model_max": 32768, "pinned_ctx": 5000}
        line = kv_line(LLAMA, "f16", "f16")
        model = header(4, architecture="llama", block_count=32)
        assert size_profile(model, line, ProfileNeeds(**needs)).ctx_tokens == 4096
        assert size_profile(model, line, ProfileNeeds(**needs, exact_ctx=True)).ctx_tokens == 5000

    def test_checkpoints_are_no_part_of_the_reported_cache(self):
        model, line = header(20, architecture="llama", block_count=32), KvLine(1e-4, 0.2)
        needs = {"target_gib": 8, "max_ram_gib": 64, "overhead_gib": 0.5, "model_max": 131072, "ladder": LADDER}
        sized = size_profile(model, line, ProfileNeeds(**needs, checkpoints=32))
        assert sized.kv_gib == pytest.approx(line.reserve_gib(sized.ctx_tokens))
        everything = load_plan(model, 8, 64, sized.kv_gib, 0.5 + sized.checkpoint_gib)
        assert sized.plan.gpu_layers > everything.gpu_layers

    def test_the_cache_in_ram(self):
        needs = ProfileNeeds(12, 16, 0.5, 131072, kv_in_ram=True)
        sized = size_profile(LLAMA, kv_line(LLAMA, "f16", "f16"), needs)
        assert sized.plan.gpu_layers == 99
        assert sized.ctx_tokens == 131072

    def test_no_line_no_exact_window(self):
        sized = size_profile(header(8, block_count=32), None, ProfileNeeds(24, 64, 0.5, 131072))
        assert (sized.ctx_tokens, sized.kv_gib) == (32768, 0)


class TestPlacement:
    @pytest.mark.parametrize(
        ("model", "layers", "vram", "ram"),
        [(GEMMA4, 99, 5.58, 0), (LFM2, 99, 6.80, 0), (QWEN35, 30, 6.85, 0.39), (MISTRAL, 29, 7.0, 2.27)],
    )
    def test_goldens(self, model, layers, vram, ram):
        plan = load_plan(model, 7, 24, 1, 1)
        assert (plan.gpu_layers, plan.cpu_moe_layers, plan.ram_exceeded) == (layers, 0, False)
        assert (plan.vram_gib, plan.ram_gib) == (vram, ram)

    def test_a_mixture_by_target(self):
        whole, some, none = (load_plan(QWEN3MOE, target, 64, 3.1875, 0.5) for target in (24, 16, 12))
        assert (whole.gpu_layers, whole.cpu_moe_layers, whole.vram_gib) == (99, 0, 20.97)
        assert (some.gpu_layers, some.cpu_moe_layers, some.vram_gib, some.ram_gib) == (99, 16, 15.78, 5.18)
        assert (none.gpu_layers, none.cpu_moe_layers, none.vram_gib, none.ram_gib) == (26, 0, 11.59, 9.38)

    def test_a_layer_split_of_a_mixture_is_turned_back(self):
        assert force_low_active_moe(QWEN3MOE, 8, 3.1875, 0.5) == (99, 41)
        assert force_low_active_moe(QWEN3MOE, 4, 3.1875, 0.5) == (99, 48)

    def test_forced_offload(self):
        assert forced_offload(32, False, 4) == (28, 0)
        assert forced_offload(48, True, 60) == (99, 48)
        assert forced_offload(32, False, -3) == (32, 0)

    def test_a_moved_model_weighs_the_same(self):
        model = header(12, architecture="llama", block_count=32)
        whole = reprice(model, 99, 0, 24, 4, 0.5, 0.5)
        vram, ram = reprice(model, 28, 0, 24, 4, 0.5, 0.5)
        assert ram > 0
        assert vram + ram == pytest.approx(whole[0])

    def test_shares(self):
        assert expert_share("gemma4", 0) == 0.88
        assert expert_share("unheard-of", 0) == 0.85
        assert expert_share("gemma4", 0.5) == 0.5

    def test_too_much_ram_is_said(self):
        assert load_plan(MISTRAL, 7, 2, 1, 1).ram_exceeded
        assert not load_plan(MISTRAL, 7, 0, 1, 1).ram_exceeded

    def test_a_model_without_blocks_cannot_be_placed(self):
        with pytest.raises(PlanError):
            load_plan(header(8), 7, 24)
