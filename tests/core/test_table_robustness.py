"""Whatever a header claims, a table and a projection come out of it."""

from __future__ import annotations

from types import MappingProxyType

from hypothesis import given, settings
from hypothesis import strategies as st

from models_app.core.catalog import Header, Launch, LayerWeights, WeightTable
from models_app.core.planning.architectures import ARCHITECTURES
from models_app.core.planning.launch_check import model_problem
from models_app.core.planning.projection import project
from models_app.core.planning.table import model_table

NUMBERS = st.one_of(st.integers(0, 70), st.sampled_from([128, 4096, 2**31, 2**62]))
ARRAYS = st.lists(st.one_of(NUMBERS, st.booleans()), max_size=70).map(tuple)
EXTRA_KEYS = (
    "feed_forward_length",
    "attention.head_count",
    "attention.sliding_window",
    "attention.key_length_mla",
    "attention.value_length_mla",
    "attention.shared_kv_layers",
    "attention.recurrent_layers",
    "embedding_length_per_layer_input",
    "expert_feed_forward_length",
    "leading_dense_block_count",
    "interleave_moe_layer_step",
    "ssm.group_count",
    "ssm.time_step_rank",
    "wkv.head_size",
    "kda.head_dim",
    "shortconv.l_cache",
    "tokenizer.ggml.tokens",
)
LAYERS = st.lists(
    st.builds(
        LayerWeights,
        other_bytes=NUMBERS,
        expert_bytes=NUMBERS,
        feed_forward_width=NUMBERS,
        down_width=NUMBERS,
        expert_width=NUMBERS,
        shared_expert_width=NUMBERS,
        gated=st.booleans(),
        expert_gated=st.booleans(),
    ),
    max_size=70,
).map(tuple)
HEADERS = st.builds(
    Header,
    architecture=st.one_of(st.sampled_from(sorted(ARCHITECTURES)), st.text(max_size=8)),
    file_size_bytes=NUMBERS,
    block_count=NUMBERS,
    expert_count=NUMBERS,
    expert_used=NUMBERS,
    context_length=NUMBERS,
    embedding_length=NUMBERS,
    head_count=NUMBERS,
    head_count_kv=NUMBERS,
    head_count_kv_arr=st.lists(NUMBERS, max_size=70).map(tuple),
    key_length=NUMBERS,
    value_length=NUMBERS,
    key_length_swa=NUMBERS,
    sliding_window=NUMBERS,
    sliding_window_pattern=NUMBERS,
    sliding_window_pattern_arr=st.lists(NUMBERS, max_size=70).map(tuple),
    full_attn_interval=NUMBERS,
    ssm_inner_size=NUMBERS,
    ssm_conv_kernel=NUMBERS,
    ssm_state_size=NUMBERS,
    nextn_layers=NUMBERS,
    vocab_size=NUMBERS,
    expert_weight_share=st.floats(0, 1),
    extra=st.dictionaries(
        st.sampled_from(EXTRA_KEYS), st.one_of(NUMBERS, ARRAYS, st.floats(), st.text(max_size=3), st.integers(-5, -1))
    ).map(MappingProxyType),
    weights=st.builds(
        WeightTable,
        layers=LAYERS,
        globals=st.dictionaries(
            st.sampled_from(["token_embd.weight", "output.weight", "rope_freqs.weight", "odd"]), NUMBERS
        ).map(MappingProxyType),
        complete=st.booleans(),
    ),
)
LAUNCHES = st.builds(
    Launch,
    ctx_tokens=st.integers(0, 2**31),
    ubatch=st.integers(1, 4096),
    batch=st.integers(1, 4096),
    type_k=st.sampled_from(["f16", "q4_0", "f32"]),
    slots=st.integers(1, 256),
    kv_unified=st.booleans(),
    flash_attn=st.booleans(),
    swa_full=st.booleans(),
    kv_offload=st.booleans(),
    gpu_layers=st.one_of(st.none(), st.integers(0, 100)),
    cpu_moe_layers=st.integers(0, 100),
    devices=st.integers(0, 4),
    outputs=st.sampled_from(["server", "all"]),
    embeddings=st.booleans(),
    rollback_snapshots=st.integers(0, 5),
    draft_tokens=st.integers(0, 16),
)


@settings(deadline=None, max_examples=150)
@given(HEADERS, LAUNCHES, st.booleans())
def test_any_header_gives_a_projection(header, launch, cuda):
    table = model_table(header)
    model_problem(table, launch)
    use = project(table, launch, cuda=cuda)
    assert use.engine in ("exact", "approximate", "classic")
    assert (use.engine == "exact") == (not use.warnings)
    assert len(use.devices) == launch.devices
    for place in (*use.devices, use.host):
        assert all(isinstance(size, int) for size in (place.model_bytes, place.context_bytes, place.compute_bytes))
        assert min(place.model_bytes, place.context_bytes, place.compute_bytes) >= 0
