"""The exact memory model by hand: context, placement, compute, and what must hold for every launch."""

from __future__ import annotations

import functools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models_app.core.catalog import Header, Launch
from models_app.core.planning.context import context_bytes
from models_app.core.planning.geometry import geometry
from models_app.core.planning.launch_check import knob_problem, model_problem
from models_app.core.planning.projection import project
from models_app.core.planning.table import model_table
from models_app.core.planning.weight_placement import split_units
from models_app.core.units import MIB
from tests.gguf_memory import header_of


def keys(architecture, **facts):
    """Header keys; a double underscore stands for a dot."""
    named = {f"{architecture}.{key.replace('__', '.')}": value for key, value in facts.items()}
    return {"general.architecture": architecture, **named}


def model(architecture, tensors=(), **facts):
    defaults = {"embedding_length": 256, "attention__head_count": 8, "feed_forward_length": 1024, "vocab_size": 1000}
    return model_table(header_of(keys(architecture, **{**defaults, **facts}), tensors))


def context_mib(table, ctx, **launch):
    wanted = Launch(ctx_tokens=ctx, **launch)
    return context_bytes(table, wanted, geometry(wanted, table.window), 0, table.trunk).total / MIB


@pytest.fixture(scope="session")
def zoo_table(zoo_header):
    """`zoo_table("qwen3-8b-q4_k_m")`, each built once."""
    return functools.cache(lambda name: model_table(zoo_header(name)))


LLAMA = model("llama", block_count=8, attention__head_count_kv=4, attention__key_length=64, attention__value_length=64)
GEMMA3 = model(
    "gemma3",
    block_count=6,
    attention__head_count_kv=8,
    attention__key_length=256,
    attention__value_length=256,
    attention__sliding_window=1024,
)
GPT_OSS = model(
    "gpt-oss",
    block_count=4,
    attention__head_count_kv=8,
    attention__key_length=64,
    attention__value_length=64,
    attention__sliding_window=128,
)
LLAMA4 = model(
    "llama4", block_count=4, attention__head_count_kv=8, attention__key_length=128, attention__value_length=128
)
LATENT = model(
    "deepseek2",
    block_count=2,
    attention__head_count_kv=1,
    attention__key_length=576,
    attention__value_length=512,
    attention__key_length_mla=192,
    attention__value_length_mla=128,
    attention__kv_lora_rank=512,
    rope__dimension_count=64,
)


@pytest.mark.parametrize(
    ("table", "ctx", "ubatch", "mib"),
    [
        (LLAMA, 8192, 512, 64),
        (LLAMA, 5000, 512, 40),
        (GEMMA3, 8192, 512, 124),
        (GEMMA3, 8192, 1024, 144),
        (GPT_OSS, 8192, 512, 35),
        (LLAMA4, 32768, 512, 230),
        (LATENT, 8192, 512, 18),
    ],
    ids=["plain", "rounded", "window", "window, micro-batch", "short window", "chunked", "latent"],
)
def test_context_by_hand(table, ctx, ubatch, mib):
    assert context_mib(table, ctx, ubatch=ubatch) == mib


@pytest.mark.parametrize(
    ("name", "ctx", "launch", "mib"),
    [
        ("llama31-8b-q4_k_m", 10000, {"type_k": "q8_0"}, 980),
        ("gemma3-12b-q4_k_m", 32768, {"slots": 4}, 3488),
        ("gemma3-12b-q4_k_m", 32768, {"slots": 4, "kv_unified": False}, 3968),
        ("gpt-oss-20b-mxfp4", 32768, {"ubatch": 2048}, 822),
        ("gemma4-e4b-q4_k_m", 32768, {}, 552),
        ("gemma3n-e4b-q4_k_m", 32768, {}, 288),
        ("deepseek-v2-lite-q4_k_m", 32768, {"type_k": "q4_0", "type_v": "q4_0"}, 273.375),
        ("glm45-air-ud_q2", 32768, {}, 5888),
        ("qwen35-9b-q4_k_m", 32768, {"slots": 4}, 1225),
        ("lfm2-1.2b-q8_0", 32768, {}, 384.15625),
        ("nemotron-nano-9b-v2-q4_k_m", 4096, {}, 202.796875),
        ("nomic-embed-text-v1.5-f16", 2048, {}, 0),
    ],
)
def test_context_of_known_models(zoo_table, name, ctx, launch, mib):
    assert context_mib(zoo_table(name), ctx, **launch) == mib


def test_a_window_of_zero_switches_chunked_attention_off():
    table = model(
        "llama4",
        block_count=4,
        attention__head_count_kv=8,
        attention__key_length=128,
        attention__value_length=128,
        attention__sliding_window=0,
    )
    assert table.window == 0
    assert context_mib(table, 32768) == 4 * 32768 * 8 * 128 * 2 * 2 / MIB


@pytest.mark.parametrize("architecture", ["llama", "qwen2", "phi3", "never-heard-of"])
def test_most_architectures_ignore_the_window(architecture):
    table = model(
        architecture,
        block_count=8,
        attention__head_count_kv=4,
        attention__key_length=64,
        attention__value_length=64,
        attention__sliding_window=128,
    )
    assert context_mib(table, 8192) == 64


def test_whole_window_cache():
    assert context_mib(GEMMA3, 8192, swa_full=True) == 6 * 8192 * 8 * 256 * 2 * 2 / MIB


def test_without_flash_attention_every_v_is_as_wide_as_the_widest():
    table = model(
        "gemma4",
        block_count=2,
        attention__head_count_kv=1,
        attention__key_length=512,
        attention__value_length=512,
        attention__key_length_swa=256,
        attention__value_length_swa=256,
        attention__sliding_window=512,
        attention__sliding_window_pattern=[True, False],
    )
    assert context_mib(table, 1024) == 1024 * (512 + 256) * 2 * 2 / MIB
    assert context_mib(table, 1024, flash_attn=False) == 1024 * ((512 + 256) + (512 + 512)) * 2 / MIB


def test_state_does_not_grow_with_the_context_and_is_copied_for_rollback(zoo_table):
    table = zoo_table("qwen35-9b-q4_k_m")
    state = context_bytes(table, Launch(4096), geometry(Launch(4096), 0), 0, table.trunk)
    longer = context_bytes(table, Launch(65536), geometry(Launch(65536), 0), 0, table.trunk)
    assert (state.r + state.s) / MIB == 50.25
    assert (longer.r, longer.s) == (state.r, state.s)
    drafting = Launch(4096, slots=4, rollback_snapshots=2)
    copies = context_bytes(table, drafting, geometry(drafting, 0), 0, table.trunk)
    assert (copies.r + copies.s) / MIB == 603


@pytest.mark.parametrize(
    ("blocks", "layers", "shares", "first", "ranges"),
    [
        (8, None, (1, 1), 0, ((0, 5), (5, 9))),
        (8, 9, (1,), 0, ((0, 9),)),
        (8, 8, (1,), 1, ((1, 9),)),
        (8, 1, (1,), 8, ((8, 9),)),
        (8, 0, (1, 1), 9, ((9, 9), (9, 9))),
        (8, 99, (3, 1), 0, ((0, 7), (7, 9))),
        (8, None, (0, 1), 0, ((0, 0), (0, 9))),
        (8, None, (), 9, ()),
    ],
)
def test_units_fill_devices_from_the_last_one_backwards(blocks, layers, shares, first, ranges):
    split = split_units(blocks, layers, tuple(map(float, shares)))
    assert (split.first_unit, split.ranges) == (first, ranges)


@given(st.integers(1, 200), st.integers(0, 220), st.lists(st.floats(0.125, 80), min_size=1, max_size=8))
def test_every_unit_goes_somewhere(blocks, layers, shares):
    split = split_units(blocks, layers, tuple(shares))
    ends = [split.first_unit, *(end for _, end in split.ranges)]
    assert [start for start, _ in split.ranges] == ends[:-1]
    assert ends[-1] == blocks + 1


@pytest.mark.parametrize(
    ("name", "launch", "server", "everything"),
    [
        ("llama31-8b-q4_k_m", {}, 148.0, 314.5),
        ("qwen25-32b-q4_k_m", {"ubatch": 1024}, 468.0, 738.0),
        ("phi4-14b-q4_k_m", {"type_k": "q8_0", "type_v": "q8_0"}, 177.0, 268.0),
        ("gemma3-12b-q4_k_m", {"slots": 4}, 156.5, 578.5),
        ("gpt-oss-20b-mxfp4", {}, 122.8, 448.0),
        ("gemma3n-e4b-q4_k_m", {}, 182.5, 520.0),
        ("gemma4-e4b-q4_k_m", {}, 134.0, 586.0),
        ("glm45-air-ud_q2", {"ubatch": 2048}, 776.1, 1440.1),
        ("qwen3-next-80b-a3b-q4_k_m", {}, 118.0, 344.8),
        ("granite4-h-small-q4_k_m", {}, 189.0, 266.0),
        ("nemotron-nano-9b-v2-q4_k_m", {}, 184.4, 323.0),
        ("codestral-mamba-7b-q8_0", {}, 128.4, 128.4),
        ("llama31-8b-q4_k_m", {"gpu_layers": 17}, 132.0, 266.5),
        ("qwen3-30b-a3b-q4_k_m", {"cpu_moe_layers": 48}, 80.0, 344.8),
    ],
)
def test_compute_by_hand(zoo_table, name, launch, server, everything):
    for outputs, wanted in (("server", server), ("all", everything)):
        use = project(zoo_table(name), Launch(32768, outputs=outputs, **launch), replays=False)
        assert use.devices[0].compute_bytes / MIB == pytest.approx(wanted, abs=0.2)


def test_without_flash_attention_every_element_of_v_needs_an_index(zoo_table):
    use = project(zoo_table("gemma3-12b-q4_k_m"), Launch(8192, ubatch=1024, flash_attn=False))
    # llama.cpp 11434: two masks of floats, and two rows of 2048 indices of 8 bytes for each token of the micro-batch.
    assert use.host.compute_bytes / MIB == pytest.approx(132.04, abs=0.1)
    assert use.devices[0].compute_bytes / MIB == pytest.approx(676.03, rel=0.01)


@pytest.mark.parametrize(
    ("name", "launch", "mib"),
    [
        ("llama31-8b-q4_k_m", {"type_k": "q8_0", "type_v": "q8_0"}, 200),
        ("qwen3-30b-a3b-q4_k_m", {"cpu_moe_layers": 48}, 249.5),
        ("gpt-oss-20b-mxfp4", {"cpu_moe_layers": 24}, 234.7),
        ("glm45-air-ud_q2", {"cpu_moe_layers": 47}, 546.0),
        ("minimax-m2-q4_k_m", {"cpu_moe_layers": 62}, 1073.0),
        ("deepseek-v2-lite-q4_k_m", {"cpu_moe_layers": 27}, 275.5),
        ("glm45-air-ud_q2", {"cpu_moe_layers": 47, "ubatch": 2048, "type_k": "q8_0", "type_v": "q8_0"}, 996.1),
    ],
)
def test_what_cuda_adds(zoo_table, name, launch, mib):
    wanted = Launch(32768, **launch)
    assert project(zoo_table(name), wanted, cuda=True).devices[0].compute_bytes / MIB == pytest.approx(mib, rel=0.03)
    assert project(zoo_table(name), wanted).devices[0].compute_bytes / MIB < mib


def test_experts_move_to_the_host_before_their_layer_does(zoo_table):
    table = zoo_table("glm45-air-ud_q2")
    everything, moved = project(table, Launch(4096)), project(table, Launch(4096, cpu_moe_layers=10))
    experts = table.sums.expert_bytes[10]
    assert table.expert_blocks[0] == 1
    assert moved.devices[0].model_bytes == everything.devices[0].model_bytes - experts
    assert moved.host.model_bytes == everything.host.model_bytes + experts
    assert moved.devices[0].context_bytes == everything.devices[0].context_bytes
    assert project(table, Launch(4096, cpu_moe_layers=1)) == everything


def test_the_cache_can_stay_on_the_host():
    use = project(LLAMA, Launch(8192, kv_offload=False))
    assert use.devices[0].context_bytes == 0
    assert use.host.context_bytes == 64 * MIB


def test_without_devices_everything_is_on_the_host(zoo_table):
    table = zoo_table("qwen3-8b-q4_k_m")
    assert project(table, Launch(4096, devices=0)).host == project(table, Launch(4096, gpu_layers=0)).host


def test_shared_caches_cut_by_a_boundary_are_copied(zoo_table):
    table = zoo_table("gemma4-e4b-q4_k_m")
    whole = project(table, Launch(32768, gpu_layers=21)).devices[0]
    cut = project(table, Launch(32768, gpu_layers=18)).devices[0]
    assert whole.context_bytes > cut.context_bytes == 0
    assert cut.compute_bytes - whole.compute_bytes > 200 * MIB


def test_an_unknown_architecture_is_approximate_and_says_so():
    table = model("never-heard-of", block_count=8, attention__head_count_kv=4)
    use = project(table, Launch(8192))
    assert use.engine == "approximate"
    assert use.warnings[0].startswith("approximate: architecture never-heard-of")
    assert use.devices[0].context_bytes == 8 * 8192 * 4 * 32 * 2 * 2


@pytest.mark.parametrize(
    "facts",
    [
        {},
        {"block_count": 0},
        {"block_count": 2**31},
        {"block_count": 4, "nextn_predict_layers": 9},
        {"block_count": 8, "attention__head_count": 0},
        {"block_count": 8, "embedding_length": 0},
        {"block_count": 8, "embedding_length": 2**31},
        {"block_count": 8, "attention__key_length": 0},
    ],
    ids=str,
)
def test_a_header_without_dimensions_falls_back_to_classic(facts):
    table = model("llama", **facts)
    assert table.engine == "classic"
    for launch in (Launch(4096), Launch(4096, gpu_layers=3), Launch(4096, devices=3, cpu_moe_layers=2)):
        use = project(table, launch)
        assert use.warnings[0].startswith("classic: ")
        total = sum(device.model_bytes for device in use.devices) + use.host.model_bytes
        assert total == table.file_size_bytes
        assert len(use.devices) == launch.devices


def test_absurd_numbers_never_raise():
    header = Header(architecture="llama", block_count=10**18, head_count=10**18, embedding_length=10**18)
    assert project(model_table(header), Launch(4096)).engine == "classic"
    assert project(model_table(Header()), Launch(4096)).engine == "classic"


@pytest.mark.parametrize(
    ("launch", "words"),
    [
        (Launch(0), "ctx must be"),
        (Launch(4096, ubatch=0), "ub must be"),
        (Launch(4096, slots=0), "parallel must be"),
        (Launch(4096, gpu_layers=-1), "ngl must be"),
        (Launch(4096, cpu_moe_layers=-1), "n-cpu-moe must be"),
        (Launch(4096, type_k="q3_k"), "ctk must be one of"),
        (Launch(4096, type_v="q8_0", flash_attn=False), "needs flash attention"),
        (Launch(4096, devices=2, tensor_split=(1.0,)), "one share for each device (2), not 1"),
        (Launch(4096, devices=2, tensor_split=(0.0, 0.0)), "one share above 0"),
        (Launch(4096, devices=2, tensor_split=(1e-320, 1e-320)), "one share above 0"),
        (Launch(1 << 31), "ctx must be"),
        (Launch(4096, devices=2, tensor_split=(1.0, float("nan"))), "numbers from 0 up"),
        (Launch(4096, devices=2, tensor_split=(1.0, -1.0)), "numbers from 0 up"),
        (Launch(4096, outputs="none"), "outputs must be"),
    ],
)
def test_launches_that_nobody_could_start(launch, words):
    assert words in knob_problem(launch)


def test_launches_that_one_model_refuses():
    assert "must be equal" in model_problem(LATENT, Launch(4096, type_k="q8_0"))
    odd = model("phi2", block_count=2, attention__key_length=80, attention__value_length=80)
    assert "multiples of 32" in model_problem(odd, Launch(4096, type_k="q8_0"))
    assert model_problem(odd, Launch(4096)) == ""
    assert knob_problem(Launch(4096)) == ""


LAUNCHES = st.builds(
    Launch,
    ctx_tokens=st.integers(1, 300_000),
    ubatch=st.sampled_from([1, 64, 512, 2048]),
    type_k=st.sampled_from(["f16", "q8_0"]),
    slots=st.integers(1, 5),
    kv_unified=st.booleans(),
    gpu_layers=st.one_of(st.none(), st.integers(0, 90)),
    cpu_moe_layers=st.integers(0, 60),
    devices=st.integers(0, 3),
)
NAMES = st.sampled_from(
    ["gemma3-1b-q8_0", "gemma4-e4b-q4_k_m", "qwen3-next-80b-a3b-q4_k_m", "glm45-air-ud_q2", "mixtral-8x7b-q4_0"]
)


@settings(deadline=None)
@given(NAMES, LAUNCHES)
def test_what_holds_for_every_launch(zoo_table, name, launch):
    table = zoo_table(name)
    use = project(table, launch)
    assert use == project(table, launch)
    assert len(use.devices) == launch.devices
    parts = [
        size for one in (*use.devices, use.host) for size in (one.model_bytes, one.context_bytes, one.compute_bytes)
    ]
    assert min(parts) >= 0
    whole = context_bytes(table, launch, geometry(launch, table.window), 0, table.trunk).total
    assert sum(one.context_bytes for one in (*use.devices, use.host)) == whole
    weights = sum(one.model_bytes for one in (*use.devices, use.host))
    loaded = table.sums.other_bytes[-1] + table.sums.expert_bytes[-1] + sum(table.globals)
    copies = table.globals.rope * launch.devices
    assert loaded - table.globals.tied - table.globals.rope <= weights <= loaded + copies


@settings(deadline=None)
@given(NAMES, LAUNCHES, st.integers(1, 100_000))
def test_a_device_never_needs_less_for_more_context(zoo_table, name, launch, more):
    table = zoo_table(name)
    longer = Launch(
        **{**{field: getattr(launch, field) for field in launch.__slots__}, "ctx_tokens": launch.ctx_tokens + more}
    )
    for cuda in (False, True):
        before, after = project(table, launch, cuda=cuda), project(table, longer, cuda=cuda)
        for old, new in zip(before.devices, after.devices, strict=True):
            assert new.total_bytes >= old.total_bytes
            assert new.model_bytes == old.model_bytes
