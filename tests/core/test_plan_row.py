"""Plans of a row: profiles, pins, companions, terms that add up, reasons, and what is not planned."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpus_app.core.budget import Budget, budget_for_set, budget_of
from gpus_app.core.gpu_set import GpuDevice, GpuSet
from models_app.core.catalog import Header, Plan, Row
from models_app.core.plans import plan_row
from models_app.core.settings import BackendEntry, Override, Settings, Variant
from models_app.core.units import GIB, MIB, from_gib
from tests.core.search_cases import MODELS

ALL_MODELS = (*MODELS, "qwen25-0.5b-f16", "lfm2-1.2b-q8_0", "deepseek-r1-671b-ud_iq3", "mixtral-8x7b-q4_0")
PROJECTOR = Header(
    file_size_bytes=from_gib(0.8),
    vision_image_size=768,
    vision_patch_size=16,
    vision_embd=1152,
    vision_ffn=4304,
    vision_heads=16,
)


def row_of(header: Header, **more: object) -> Row:
    given: dict[str, object] = {
        "id": "m",
        "full_path": header.path or "/models/m.gguf",
        "model_class": "llm",
        "size_bytes": header.file_size_bytes,
    }
    return Row(**(given | more))  # type: ignore[arg-type]


def plans(
    header: Header, budget: Budget, override: Override | None = None, fleet: Settings | None = None, **more: object
) -> tuple[Plan, ...]:
    return plan_row(
        row_of(header, **more),
        header,
        settings=fleet or Settings(),
        override=override,
        budget=budget,
        headers=lambda path: PROJECTOR if "mmproj" in path else None,
    )


def plan(header: Header, budget: Budget, override: Override | None = None, fleet: Settings | None = None) -> Plan:
    return plans(header, budget, override, fleet)[0]


def kinds(found: Plan) -> set[str]:
    return {reason.kind for reason in found.reasons}


def flag(found: Plan, name: str) -> str:
    """The value that a server would read for a flag."""
    argv = found.argv
    return argv[len(argv) - argv[::-1].index(name)]


class TestTerms:
    @settings(
        max_examples=30,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )
    @given(
        model=st.sampled_from(ALL_MODELS),
        sizes=st.lists(st.floats(2, 60).map(lambda value: round(value, 1)), max_size=3),
        ram=st.sampled_from((0.0, 16.0, 512.0)),
        slots=st.sampled_from((0, 3)),
    )
    def test_they_add_up_and_stay_below_every_target(self, zoo_header, model, sizes, ram, slots):
        budget = budget_of(sizes, ram)
        found = plan(zoo_header(model), budget, Override(parallel=slots))
        per_device = [sum(column) for column in zip(*(term.device_bytes for term in found.terms), strict=True)]
        assert sum(per_device) == found.est_vram_bytes
        assert sum(term.ram_bytes for term in found.terms) == found.est_ram_bytes
        assert len({term.key for term in found.terms}) == len(found.terms)
        if found.verdict != "over":
            assert all(held <= most for held, most in zip(per_device, budget.device_bytes, strict=False))
            assert not ram or found.est_ram_bytes <= budget.ram_bytes
        assert found.reasons
        assert all(term.how.endswith(".") for term in found.terms)
        assert found == plan(zoo_header(model), budget, Override(parallel=slots))

    def test_every_device_pays_runtime_and_headroom(self, zoo_header):
        found = plan(zoo_header("llama31-8b-q4_k_m"), budget_of([12, 12]))
        terms = {term.key: term for term in found.terms}
        assert terms["runtime"].device_bytes == (from_gib(0.3),) * 2
        assert terms["headroom"].device_bytes == (from_gib(0.5),) * 2

    def test_checkpoints_lie_in_ram(self, zoo_header):
        found = plan(zoo_header("qwen35-9b-q4_k_m"), budget_of([24]), Override(parallel=2))
        (term,) = (term for term in found.terms if term.key == "checkpoints")
        one = 24 * 4 * (3 * (4096 + 2 * 16 * 128) + 128 * 4096)
        assert term.device_bytes == (0,)
        assert term.ram_bytes == 2 * 2 * one

    def test_a_safety_factor_makes_room(self, zoo_header):
        header = zoo_header("llama31-8b-q4_k_m")
        careful = plan(header, budget_of([8]), fleet=Settings(compute_buf_factor=4.0))
        assert careful.placement.ctx_tokens < plan(header, budget_of([8])).placement.ctx_tokens


class TestReasons:
    def test_trained_length(self, zoo_header):
        found = plan(zoo_header("llama31-8b-q4_k_m"), budget_of([24]))
        assert found.verdict == "fits"
        assert "the trained length" in found.reasons[0].text
        assert kinds(found) == {"ctx-trained", "kv-full", "placed-on-gpu"}

    def test_vram_target(self, zoo_header):
        found = plan(zoo_header("llama31-8b-q4_k_m"), budget_of([8]))
        assert "context limited by VRAM target 8.0 GiB" in found.reasons[0].text
        assert "kv-stepped-down" in kinds(found)

    def test_ladder(self, zoo_header):
        found = plan(zoo_header("llama31-8b-q4_k_m"), budget_of([24]), fleet=Settings(dense_ctx_ladder=(65536, 32768)))
        assert found.placement.ctx_tokens == 65536
        assert "top of the context ladder" in found.reasons[0].text

    def test_pins(self, zoo_header):
        found = plan(zoo_header("llama31-8b-q4_k_m"), budget_of([24]), Override(ctx=8192, kv_k="q8_0", cpu_offload=4))
        assert {"ctx-pinned", "kv-pinned"} <= kinds(found)
        assert any("pinned by you" in reason.text for reason in found.reasons)

    def test_too_large_for_ram(self, zoo_header):
        found = plan(zoo_header("deepseek-r1-671b-ud_iq3"), budget_of([24], 64))
        assert found.verdict == "over"
        assert "ram-exceeded" in kinds(found)
        assert found.reasons[0].text == "Window of 65,536 tokens, what planning aims for; it does not fit."
        assert found.suggestions[0].startswith("Fits at 65,536 tokens with ")
        assert " GiB more RAM or " in found.suggestions[0]

    def test_sentences_hold_for_what_they_are_said_of(self, zoo_header):
        stepped = plan(zoo_header("lfm2-1.2b-q8_0"), budget_of([24]))
        assert stepped.reasons[0].text == "Window of 126,976 tokens, the trained length of 128,000 in steps of 4,096."
        silent = plan(replace(zoo_header("llama31-8b-q4_k_m"), context_length=0), budget_of([24]))
        assert silent.reasons[0].text.startswith("Window of 32,768 tokens: the header names no trained length")
        one = plan(zoo_header("llama31-8b-q4_k_m"), budget_of([24]), Override(custom_args="-c 1"))
        assert one.reasons[0].text == "Window of 1 token, pinned by you."
        quantised = plan(zoo_header("llama31-8b-q4_k_m"), budget_of([8]))
        expected = "Cache in q8_0: in f16 less of the model would fit on the GPU or the window would be shorter."
        assert quantised.reasons[1].text == expected
        in_ram = plan(zoo_header("granite33-8b-q5_k_m"), budget_of([], 9))
        assert in_ram.reasons[1].text == "Cache in q8_0: in f16 the window would be shorter."
        only = plan(zoo_header("codestral-mamba-7b-q8_0"), budget_of([24]))
        assert only.reasons[1].text == "Cache in f16: a smaller type does not work here or would save nothing."
        split = plan(zoo_header("glm45-air-ud_q2"), budget_of([8], 64))
        assert "layers on the GPU" in split.reasons[2].text
        assert "attention stays on the GPU" not in split.reasons[2].text

    def test_nothing_fits_on_the_card(self, zoo_header):
        found = plan(zoo_header("qwen25-32b-q4_k_m"), budget_of([0.9], 64))
        assert found.verdict == "spills"
        assert "not one layer fits" in found.reasons[2].text
        assert found.est_vram_bytes == 0
        assert flag(found, "--device") == "none"

    def test_a_short_window_says_what_a_long_one_costs(self, zoo_header):
        found = plan(zoo_header("llama31-8b-q4_k_m"), budget_of([6]), Override(kv_k="f16", kv_v="f16"))
        assert found.placement.ctx_tokens < 32768
        assert any("32,768 tokens would fit with" in text for text in found.suggestions)

    def test_a_smaller_cache_is_proposed(self, zoo_header):
        found = plan(zoo_header("granite33-8b-q5_k_m"), budget_of([16]))
        assert any(text.startswith("A q8_0 KV cache would fit") for text in found.suggestions)

    def test_more_memory_is_proposed(self, zoo_header):
        found = plan(zoo_header("gpt-oss-20b-mxfp4"), budget_of([12]))
        assert any("more VRAM everything would be on the GPU" in text for text in found.suggestions)
        assert any("less of context" in text for text in found.suggestions)

    def test_a_pin_that_holds_it_back_is_named(self, zoo_header):
        found = plan(zoo_header("llama31-8b-q4_k_m"), budget_of([24]), Override(custom_args="-ngl 10"))
        assert found.suggestions[0] == "Without the pinned placement everything would be on the GPU."


class TestDrafting:
    def test_every_drafted_token_asks_for_a_row_of_logits(self, zoo_header):
        """Measured with llama-server 11434 on a CPU: gemma3 1B at 32,768 tokens reserves 109.28 MiB with ngram-mod."""
        header = zoo_header("gemma3-1b-q8_0")
        found = plan(header, budget_of([], 64))
        (compute,) = (term for term in found.terms if term.key == "compute")
        assert 109.27 < compute.ram_bytes / MIB < 112
        quiet = plan(header, budget_of([], 64), Override(spec="none"))
        (compute,) = (term for term in quiet.terms if term.key == "compute")
        assert abs(compute.ram_bytes / MIB - 84.77) < 0.02

    def test_the_projection_is_that_of_project_all_the_same(self, zoo_header):
        header = zoo_header("gemma3-1b-q8_0")
        drafting, quiet = (plan(header, budget_of([24]), Override(spec=spec)) for spec in ("ngram-mod", "none"))
        assert drafting.projection == quiet.projection
        assert drafting.est_vram_bytes > quiet.est_vram_bytes


class TestPins:
    @pytest.mark.parametrize(
        ("text", "pair"),
        [
            ("-ctk q4_0 -ctv q8_0", ("q4_0", "q8_0")),
            ("-ctk iq4_nl", ("iq4_nl", "iq4_nl")),
            ("-ctv q8_0", ("q8_0", "q8_0")),
            ("-ctk q9", ("f16", "f16")),
        ],
    )
    def test_the_cache_types_of_a_text_are_those_that_run(self, zoo_header, text, pair):
        found = plan(zoo_header("llama31-8b-q4_k_m"), budget_of([40]), Override(custom_args=text))
        assert (found.placement.type_k, found.placement.type_v) == pair
        if pair[0] != "f16":
            assert (flag(found, "-ctk"), flag(found, "-ctv")) == pair
        assert any("fast attention kernel" in warning for warning in found.warnings) == (pair[0] != pair[1])

    def test_a_pair_that_the_model_cannot_run_is_said(self, zoo_header):
        header = zoo_header("deepseek-v2-lite-q4_k_m")
        found = plan(header, budget_of([24]), Override(custom_args="-ctk q8_0 -ctv f16"))
        assert any(warning.startswith("llama-server will refuse this launch") for warning in found.warnings)
        assert not plan(header, budget_of([24])).warnings

    @pytest.mark.parametrize(
        "override",
        [Override(flash_attn="off", kv_k="q8_0", kv_v="q8_0"), Override(custom_args="-fa off -ctv q4_0")],
    )
    def test_a_quantised_v_cache_without_flash_attention_is_refused(self, zoo_header, override):
        found = plan(zoo_header("qwen3-8b-q4_k_m"), budget_of([24]), override)
        assert any("V cache needs flash attention" in warning for warning in found.warnings)
        assert not plan(zoo_header("qwen3-8b-q4_k_m"), budget_of([24]), Override(flash_attn="off")).warnings

    def test_a_field_is_rounded_and_text_is_exact(self, zoo_header):
        header, budget = zoo_header("llama31-8b-q4_k_m"), budget_of([40])
        assert plan(header, budget, Override(ctx=5000)).placement.ctx_tokens == 4096
        exact = plan(header, budget, Override(custom_args="-c 5000 -ctk q8_0 -ctv q8_0"))
        assert exact.placement.ctx_tokens == 5000
        assert (exact.placement.type_k, flag(exact, "-c")) == ("q8_0", "5000")

    def test_the_pool_of_a_text_is_shared_by_its_slots(self, zoo_header):
        found = plan(zoo_header("llama31-8b-q4_k_m"), budget_of([40]), Override(custom_args="-c 8192 --parallel 2"))
        assert (found.placement.ctx_tokens, found.placement.slots) == (4096, 2)

    def test_slots_of_a_field_multiply_the_pool(self, zoo_header):
        found = plan(zoo_header("llama31-8b-q4_k_m"), budget_of([40]), Override(ctx=16384, parallel=4))
        assert (found.placement.ctx_tokens, flag(found, "-c")) == (16384, "65536")

    def test_a_field_keeps_to_the_trained_length(self, zoo_header):
        found = plan(zoo_header("qwen25-0.5b-f16"), budget_of([24]), Override(ctx=65536))
        assert found.placement.ctx_tokens == 32768
        assert any("RoPE scaling would lift" in text for text in found.warnings)
        scaled = plan(zoo_header("qwen25-0.5b-f16"), budget_of([24]), Override(ctx=65536, rope_scaling="yarn"))
        assert scaled.placement.ctx_tokens == 65536
        assert scaled.est_vram_bytes > found.est_vram_bytes
        assert flag(scaled, "--rope-scale") == "2"

    def test_a_text_beyond_the_trained_length_is_planned_as_it_is(self, zoo_header):
        found = plan(zoo_header("qwen25-0.5b-f16"), budget_of([24]), Override(custom_args="-c 65536"))
        assert found.placement.ctx_tokens == 65536
        assert any("more than the model's 32,768" in text for text in found.warnings)

    @pytest.mark.parametrize(("offload", "layers"), [(1, 32), (4, 29), (60, 1)])
    def test_layers_on_the_cpu(self, zoo_header, offload, layers):
        found = plan(zoo_header("llama31-8b-q4_k_m"), budget_of([40]), Override(cpu_offload=offload, ctx=8192))
        assert found.placement.gpu_layers == layers

    def test_experts_on_the_cpu(self, zoo_header):
        found = plan(zoo_header("gpt-oss-20b-mxfp4"), budget_of([24]), Override(cpu_offload=5, ctx=8192))
        assert (found.placement.gpu_layers, found.placement.cpu_moe_layers) == (99, 5)

    def test_a_pinned_layer_count_is_the_launch_that_runs(self, zoo_header):
        found = plan(zoo_header("llama31-8b-q4_k_m"), budget_of([24]), Override(custom_args="-ngl 32"))
        assert found.placement.gpu_layers == 32
        assert found.verdict == "spills"

    def test_the_fleets_cache_type(self, zoo_header):
        found = plan(zoo_header("llama31-8b-q4_k_m"), budget_of([24]), fleet=Settings(kv_quant="q5_1"))
        assert found.placement.type_k == "q5_1"

    def test_flash_attention_off_keeps_the_cache_whole(self, zoo_header):
        found = plan(zoo_header("llama31-8b-q4_k_m"), budget_of([8]), Override(flash_attn="off"))
        assert found.placement.type_k == "f16"

    def test_a_hand_written_split(self, zoo_header):
        found = plan(zoo_header("llama31-8b-q4_k_m"), budget_of([12, 12]), Override(tensor_split="3,1"))
        assert found.placement.tensor_split == (3.0, 1.0)
        held = [device.model_bytes for device in found.projection.devices]
        assert held[0] > 2 * held[1]

    @pytest.mark.parametrize("text", ["1,2,3", "x,y", "0,0", "-1,2", "nan,1", "inf,1"])
    def test_a_split_that_cannot_be_one_is_left_out(self, zoo_header, text):
        found = plan(zoo_header("llama31-8b-q4_k_m"), budget_of([12, 12]), Override(tensor_split=text))
        assert sum(found.placement.tensor_split) == pytest.approx(1)

    def test_a_models_own_target(self, zoo_header):
        found = plan(zoo_header("llama31-8b-q4_k_m"), budget_of([24]), Override(vram_target_gb=8))
        assert found.target_bytes == 8 * GIB
        assert found.est_vram_bytes <= 8 * GIB

    def test_kept_off_the_gpu(self, zoo_header):
        found = plan(zoo_header("llama31-8b-q4_k_m"), budget_of([24], 32), Override(device="cpu"))
        assert (found.est_vram_bytes, found.placement.gpu_layers, found.verdict) == (0, 0, "fits")
        assert flag(found, "--device") == "none"
        assert found.est_ram_bytes <= 32 * GIB

    def test_a_long_window_on_a_small_card_takes_small_steps(self, zoo_header):
        header = zoo_header("gpt-oss-20b-mxfp4")
        small = plan(header, budget_of([10]))
        assert small.placement.ctx_tokens >= 65536
        assert (small.placement.ubatch, flag(small, "-ub")) == (512, "512")
        assert plan(header, budget_of([16])).placement.ubatch == 1024

    def test_a_broken_text_is_said(self, zoo_header):
        found = plan(zoo_header("llama31-8b-q4_k_m"), budget_of([24]), Override(custom_args='--foo "bar'))
        assert any("can't be taken apart" in text for text in found.warnings)


class TestProfiles:
    def test_order_and_kinds(self, zoo_header):
        own = Override(ctx_variants=(4096, 131072), variants=(Variant(name="Judge", ctx=16384),))
        fleet = Settings(default_variants=(Variant(name="game", ctx=8192),))
        found = plans(zoo_header("llama31-8b-q4_k_m"), budget_of([24]), own, fleet, mmproj_path="/m/mmproj.gguf")
        assert [item.profile_id for item in found] == ["m", "m-4k", "m-128k", "m-judge", "m-game", "m-vision"]
        assert [item.profile for item in found] == ["base", "tier", "tier", "variant", "variant", "vision"]
        assert [item.placement.ctx_tokens for item in found[1:5]] == [4096, 131072, 16384, 8192]

    def test_only_the_twin_pays_vram_for_a_projector(self, zoo_header):
        header = zoo_header("gemma3-4b-q4_k_m")
        base, twin = plans(header, budget_of([24]), mmproj_path="/m/mmproj.gguf")
        charged = {item.profile: {term.key: term for term in item.terms}["projector"] for item in (base, twin)}
        assert (charged["base"].device_bytes, charged["vision"].ram_bytes) == ((0,), 0)
        assert charged["base"].ram_bytes == charged["vision"].device_bytes[0] > from_gib(0.8)
        assert "--no-mmproj-offload" in base.argv
        assert "--no-mmproj-offload" not in twin.argv

    def test_a_projector_stays_off_a_gpu_that_is_hidden(self, zoo_header):
        _base, twin = plans(zoo_header("qwen25-32b-q4_k_m"), budget_of([0.9], 64), mmproj_path="/m/mmproj.gguf")
        assert twin.est_vram_bytes == 0
        assert "--no-mmproj-offload" in twin.argv

    def test_a_projector_named_by_hand_is_priced_at_its_own_size(self, zoo_header):
        found = plans(zoo_header("gemma3-4b-q4_k_m"), budget_of([24]), Override(mmproj_file="/x/mmproj-big.gguf"))
        assert [item.profile_id for item in found] == ["m", "m-vision"]

    def test_a_paired_draft_model(self, zoo_header):
        header = zoo_header("llama31-8b-q4_k_m")
        more = {"draft_path": "/m/draft.gguf", "draft_kind": "mtp", "draft_size_bytes": GIB}
        (found,) = plans(header, budget_of([24]), **more)
        term = {term.key: term for term in found.terms}["drafter"]
        assert term.device_bytes == (GIB + from_gib(0.1),)
        assert flag(found, "-md") == "/m/draft.gguf"
        (unused,) = plans(header, budget_of([24]), Override(spec="ngram-mod"), **more)
        assert "drafter" not in {term.key for term in unused.terms}

    def test_a_baked_in_head_has_a_context_of_its_own(self, zoo_header):
        header = zoo_header("glm45-air-ud_q2")
        found, plain = (plan(header, budget_of([80]), Override(ctx=32768, spec=spec)) for spec in ("", "ngram-mod"))
        assert "drafts-with-own-head" in kinds(found)
        assert found.est_vram_bytes > plain.est_vram_bytes

    def test_an_enhancer_has_one_profile(self, zoo_header):
        fleet = Settings(default_variants=(Variant(name="game", ctx=16384),))
        more = {"id": "qwen-image-2.1-pe-i2i-q5_k_m", "mmproj_path": "/m/mmproj.gguf"}
        (found,) = plans(zoo_header("llama31-8b-q4_k_m"), budget_of([24]), None, fleet, **more)
        assert found.placement.ctx_tokens == 32768
        assert found.terms[3].key == "projector"
        assert found.terms[3].device_bytes[0] > 0


class TestDevices:
    def test_the_main_device_is_last_where_it_can_be(self, zoo_header):
        cards = GpuSet(
            (
                GpuDevice(0, "RTX 3090", False, False, 24 * GIB, 23 * GIB),
                GpuDevice(1, "RTX 3060", False, False, 12 * GIB, 11 * GIB),
            )
        )
        header = zoo_header("llama33-70b-q4_k_m")
        found = plan(header, budget_for_set(cards, 34, 64, backend_ids=("CUDA0", "CUDA1")))
        assert (flag(found, "--device"), flag(found, "--main-gpu")) == ("CUDA1,CUDA0", "1")
        assert found.placement.tensor_split[0] < found.placement.tensor_split[1]
        plain = plan(header, budget_for_set(cards, 34, 64))
        assert flag(plain, "--main-gpu") == "0"
        assert plain.placement.tensor_split[0] > plain.placement.tensor_split[1]

    def test_a_rocm_build_costs_more(self, zoo_header):
        header = zoo_header("llama31-8b-q4_k_m")
        found = plan(header, budget_of([24]), fleet=Settings(server_exe="/opt/llama-rocm/llama-server"))
        assert {term.key: term for term in found.terms}["runtime"].device_bytes == (from_gib(0.8),)


class TestNotPlanned:
    def test_a_class_that_nobody_knows(self, zoo_header):
        (found,) = plans(zoo_header("llama31-8b-q4_k_m"), budget_of([24]), model_class="smell")
        assert (found.verdict, found.skip_reason) == ("unplanned", "nothing here serves the class smell")
        assert (found.placement, found.lines, found.argv) == (None, (), ())

    def test_missing_parts(self, zoo_header):
        (found,) = plans(zoo_header("llama31-8b-q4_k_m"), budget_of([24]), missing_shards=(2, 3), shard_count=3)
        assert found.skip_reason == "incomplete: part 2, 3 of 3 is not on disk"

    def test_no_header(self):
        row = Row(id="m", full_path="/m.gguf", model_class="llm")
        (found,) = plan_row(row, None, settings=Settings(), budget=budget_of([24]))
        assert found.skip_reason == "its header can't be read"

    def test_another_engine(self, zoo_header):
        header = zoo_header("llama31-8b-q4_k_m")
        (found,) = plan_row(
            row_of(header),
            header,
            settings=Settings(backends=(BackendEntry(id="v", kind="vllm", path="/opt/vllm"),)),
            budget=budget_of([24]),
        )
        assert found.engine == "vllm"
        assert "--quantization" in found.argv


class TestBrokenHeaders:
    @pytest.mark.parametrize(
        "facts",
        [
            {},
            {"block_count": 0, "file_size_bytes": GIB},
            {"block_count": 32, "file_size_bytes": 0},
            {"block_count": 1 << 40, "file_size_bytes": GIB},
            {"block_count": 32, "head_count": 0, "file_size_bytes": GIB},
            {"block_count": 32, "context_length": 1 << 60, "file_size_bytes": GIB},
            {"block_count": 32, "nextn_layers": 99, "file_size_bytes": GIB},
            {"block_count": 32, "expert_count": 8, "is_moe": True, "file_size_bytes": GIB},
        ],
    )
    @pytest.mark.parametrize("budget", [budget_of([]), budget_of([8]), budget_of([1e12]), budget_of([8, 8], 16)])
    def test_a_plan_or_unknown_and_never_an_exception(self, facts, budget):
        header = Header(**({"architecture": "llama", "embedding_length": 4096} | facts))
        (found,) = plans(header, budget)
        assert found.verdict in ("fits", "spills", "over", "unknown")
        assert found.placement is not None

    def test_nothing_to_judge(self):
        (found,) = plans(Header(architecture="llama"), budget_of([8]))
        assert found.verdict == "unknown"
        assert found.reasons[0].text.startswith("Cannot judge")
        assert (found.terms, found.est_vram_bytes, found.est_ram_bytes, found.suggestions) == ((), 0, 0, ())

    def test_an_unknown_architecture_is_approximate(self, zoo_header):
        header = replace(zoo_header("llama31-8b-q4_k_m"), architecture="brand-new")
        found = plan(header, budget_of([24]))
        assert found.projection.engine == "approximate"
        assert any(text.startswith("approximate") for text in found.warnings)
