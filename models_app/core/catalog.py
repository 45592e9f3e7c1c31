"""The value types that the layers of the core hand to each other.

All are frozen; sizes are bytes unless the name says otherwise. Header facts carry the names of headers.md 5 and 6;
absent numbers read 0, absent texts "".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

Scalar = int | float | bool | str
"""What a header key may hold besides arrays."""

EMPTY: Mapping[str, Scalar | tuple[Scalar, ...]] = MappingProxyType({})


class TensorInfo(NamedTuple):
    """One line of a tensor table. `shape` is innermost first (as in GGUF), `size_bytes` None for an unknown type."""

    name: str
    shape: tuple[int, ...]
    type_id: int
    size_bytes: int | None


@dataclass(frozen=True, slots=True)
class LayerWeights:
    """Bytes of one block, each tensor rounded up to 32 bytes (compute-buffer.md 3)."""

    other_bytes: int = 0
    expert_bytes: int = 0
    """`ffn_{up,down,gate,gate_up}_exps` and their `_chexps` twins: what `--n-cpu-moe` moves."""
    largest_up_bytes: int = 0
    """Largest `ffn_up_exps` / `ffn_gate_exps` / `ffn_gate_up_exps` tensor."""
    largest_down_bytes: int = 0
    largest_tensor_bytes: int = 0
    gated: bool = False
    """The dense feed-forward has a gate: `ffn_gate`, or a fused `ffn_up` of twice the width of `ffn_down`."""
    shared_expert_width: int = 0
    """Rows of `ffn_up_shexp`, 0 without a shared expert."""
    expert_width: int = 0
    """Rows of `ffn_up_exps` (half of a fused `ffn_gate_up_exps`), 0 without experts."""
    feed_forward_width: int = 0
    """Rows of `ffn_up` as stored (twice the true width where gate and up are fused), 0 without a dense feed-forward."""
    down_width: int = 0
    """Columns of `ffn_down`: the true width of the dense feed-forward."""
    expert_gated: bool = False
    """The experts have a gate (`ffn_gate_exps` or `ffn_gate_up_exps`); `gated` speaks of the dense feed-forward."""


@dataclass(frozen=True, slots=True)
class WeightTable:
    """Where the bytes of a model lie: per block, and every tensor outside the blocks by its full name."""

    layers: tuple[LayerWeights, ...] = ()
    globals: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    """Tensor name -> bytes, rounded up to 32, for tensors that belong to no block. Beyond `readers.weights.MAX_GLOBALS`
    names the rest is summed under `*`."""
    total_bytes: int = 0
    complete: bool = True
    """False when some tensor has a type of unknown size: such a table cannot be trusted for placement."""


@dataclass(frozen=True, slots=True)
class Header:
    """Facts read from one model's head (a GGUF set, a safetensors file, a Hugging Face folder)."""

    format: str = "gguf"
    """`gguf`, `safetensors`, `hf`, or `ggml` (segmentation; nothing but the size is known)."""
    path: str = ""
    file_size_bytes: int = 0
    """All shards of a split set together."""

    architecture: str = ""
    general_type: str = ""
    general_name: str = ""
    base_name: str = ""
    size_label: str = ""
    fine_tune: str = ""
    audio_family: str = ""

    block_count: int = 0
    expert_count: int = 0
    expert_used: int = 0
    is_moe: bool = False
    context_length: int = 0
    embedding_length: int = 0
    head_count: int = 0
    head_count_kv: int = 0
    head_count_kv_sum: int = 0
    head_count_kv_arr: tuple[int, ...] = ()
    attn_layer_count: int = 0
    key_length: int = 0
    value_length: int = 0
    key_length_swa: int = 0
    value_length_swa: int = 0
    sliding_window: int = 0
    sliding_window_pattern: int = 0
    sliding_window_pattern_arr: tuple[int, ...] = ()
    non_causal: bool = False
    rope_scaling_type: str = ""
    rope_scaling_factor: float = 0.0
    rope_orig_ctx_len: int = 0
    rope_freq_base: float = 0.0
    full_attn_interval: int = 0
    ssm_inner_size: int = 0
    ssm_conv_kernel: int = 0
    ssm_state_size: int = 0
    nextn_layers: int = 0
    is_mtp: bool = False
    pooling_type: int = 0
    decision_type: str = ""
    speech_type: str = ""
    """Of a Qwen3-TTS talker: `base`, `custom_voice` or `voice_design`."""
    classifier_head: bool = False

    vision_image_size: int = 0
    vision_patch_size: int = 0
    vision_embd: int = 0
    vision_ffn: int = 0
    vision_blocks: int = 0
    vision_heads: int = 0
    vision_merge: int = 0

    split_count: int = 0
    split_no: int = 0
    split_tensors_count: int = 0

    vocab_elems: int = 0
    vocab_size: int = 0
    expert_weight_share: float = 0.0
    param_count: int = 0
    quant_label: str = ""
    diffusion_kind: str = ""
    has_baked_encoders: bool = False
    video_kind: str = ""
    has_audio_out: bool = False
    cond_hidden: int = 0
    preserves_thinking: bool = False
    effort_levels: tuple[str, ...] = ()
    has_chat_template: bool = False
    model_key: str = ""
    family_key: str = ""
    data_complete: bool | None = None

    extra: Mapping[str, Scalar | tuple[Scalar, ...]] = field(default_factory=lambda: EMPTY)
    """Every other scalar and small integer array, architecture prefix removed (`feed_forward_length`,
    `attention.kv_lora_rank`, ...); keys of other namespaces keep the full name. `tokenizer.ggml.tokens` is a count."""
    weights: WeightTable = field(default_factory=WeightTable)
    tensor_shapes: Mapping[str, tuple[int, ...]] = field(default_factory=lambda: MappingProxyType({}))
    """Innermost first, for the component pool: all of a safetensors file; of a GGUF those that mark a component."""
    warnings: tuple[str, ...] = ()

    @property
    def file_size_gib(self) -> float:
        """`file_size_gb` of headers.md 6.6: three decimals, halves away from zero."""
        from models_app.core.units import to_gib

        return to_gib(self.file_size_bytes, 3)


@dataclass(frozen=True, slots=True)
class FileEntry:
    """One file of a listing, as a walk saw it. `real_path` differs from `path` for links."""

    path: str
    size_bytes: int
    mtime_ns: int
    real_path: str = ""
    ctime_ns: int = field(default=0, compare=False)
    """When anything about the file changed last: tells a file from another of the same size and time in its place."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something to know about one file or root. `kind` is a stable slug, `level` info, warning or error."""

    kind: str
    path: str
    text: str
    level: str = "warning"
    code: str = ""
    offset: int | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """One servable model found on disk, with its pairings."""

    id: str
    full_path: str
    base_id: str = ""
    quant: str = ""
    publisher: str = ""
    repo: str = ""
    file_name: str = ""
    size_bytes: int = 0
    mtime_ns: int = 0
    root: str = ""
    category: str = ""
    model_class: str = ""
    """A class id of design.md 2; `skipped` and `ignored` never reach a row list."""
    class_reason: str = ""
    """Why the row has this class, or why it cannot be served."""
    shards: tuple[FileEntry, ...] = ()
    missing_shards: tuple[int, ...] = ()
    """Numbers (from 1) of the parts that are not on disk."""
    shard_count: int = 1
    draft_path: str = ""
    draft_kind: str = ""
    draft_size_bytes: int = 0
    draft_origin: str = ""
    """Why this drafter: `folder` and `name-match` (it lies beside the model, in a folder of one family or of several);
    `quant`, `base` and `family` (borrowed from another quant, from the untuned base, from a finetune)."""
    mmproj_path: str = ""
    mmproj_size_bytes: int = 0
    mmproj_origin: str = ""
    codec_path: str = ""
    codec_size_bytes: int = 0
    dino_path: str = ""
    """Folder of the encoder that a 3D package needs."""
    birefnet_path: str = ""
    audio_family: str = ""
    """Family of an audio.cpp model; of one in several files no single header names it."""
    is_hf: bool = False
    is_sam: bool = False
    is_trellis: bool = False


@dataclass(frozen=True, slots=True)
class Launch:
    """Exactly one llama-server launch, as `project` prices it (no search). Defaults are those of the `project` verb."""

    ctx_tokens: int
    """The value of `-c`: the whole pool."""
    ubatch: int = 512
    batch: int = 2048
    type_k: str = "f16"
    type_v: str = "f16"
    slots: int = 1
    kv_unified: bool = True
    flash_attn: bool = True
    swa_full: bool = False
    rollback_snapshots: int = 0
    """Copies of the recurrent state besides the live one (`drafters.rollback_snapshots`)."""
    kv_offload: bool = True
    gpu_layers: int | None = None
    """`-ngl`; None is `all`."""
    cpu_moe_layers: int = 0
    devices: int = 1
    tensor_split: tuple[float, ...] = ()
    outputs: str = "server"
    """`server`: one output row per slot, as llama-server; `all`: every row of a micro-batch, as llama-fit-params."""
    embeddings: bool = False
    draft_tokens: int = 0
    """Length of a draft: so many more rows of logits per slot."""


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """Bytes that one launch holds on one device, or on the host."""

    name: str
    model_bytes: int = 0
    context_bytes: int = 0
    compute_bytes: int = 0

    @property
    def total_bytes(self) -> int:
        return self.model_bytes + self.context_bytes + self.compute_bytes


@dataclass(frozen=True, slots=True)
class Projection:
    """What a launch would allocate. `devices` has one entry for each device asked for, zeros where it holds nothing."""

    engine: str
    """`exact`, `approximate` (architecture unknown to us) or `classic`."""
    devices: tuple[MemoryUse, ...]
    host: MemoryUse
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Placement:
    """What the search chose, or a person pinned. `ctx_tokens` is the window of one slot, `gpu_layers` as emitted."""

    ctx_tokens: int
    gpu_layers: int
    cpu_moe_layers: int
    type_k: str
    type_v: str
    ubatch: int
    batch: int
    slots: int = 1
    tensor_split: tuple[float, ...] = ()
    kv_in_ram: bool = False


@dataclass(frozen=True, slots=True)
class TermPart:
    """One addend of a memory term in one place. `factors` are numbers with what they count, and multiply to its bytes;
    without them the size is itself what was read (tensors, a file) or stated (a reserve).
    """

    device: int | None
    """Number of the device; None is RAM."""
    label: str
    size_bytes: int
    factors: tuple[tuple[float, str], ...] = ()


@dataclass(frozen=True, slots=True)
class MemoryTerm:
    """One line of the memory table. `how` is the sentence behind "how?"; `parts` add up to the figure of each place."""

    key: str
    """`weights`, `kv`, `compute`, `projector`, `drafter`, `runtime`, `headroom`, `measured`, `checkpoints`."""
    label: str
    device_bytes: tuple[int, ...]
    ram_bytes: int
    how: str
    parts: tuple[TermPart, ...] = ()


@dataclass(frozen=True, slots=True)
class Reason:
    """Why the plan is as it is. `kind` is a stable slug (`ctx-limited-by-vram`), `text` a sentence."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class ArgToken:
    """One word of a command, with where it comes from: `generated`, `custom` or `replaced`."""

    text: str
    source: str = "generated"
    knob: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """The result for one profile of one row: the same value behind a preview, a save and a published entry."""

    profile_id: str
    model_class: str
    verdict: str
    """`fits`, `spills` (parts in RAM), `over` (does not fit), `unknown`, or `unplanned` for a class not planned yet."""
    placement: Placement | None
    projection: Projection | None
    terms: tuple[MemoryTerm, ...] = ()
    est_vram_bytes: int = 0
    est_ram_bytes: int = 0
    target_bytes: int = 0
    lines: tuple[str, ...] = ()
    """The command as lines (launch.md 1): what the exporter writes under `cmd`."""
    tokens: tuple[ArgToken, ...] = ()
    reasons: tuple[Reason, ...] = ()
    warnings: tuple[str, ...] = ()
    suggestions: tuple[str, ...] = ()
    """The smallest changes that would make it fit, or fit better."""
    skip_reason: str = ""
    unlisted: bool = False
    profile: str = "base"
    """`base`, `tier`, `variant` or `vision`."""
    engine: str = ""
    """Kind of the server that runs it; blank for llama-server's chat models."""
    facts: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """What the comment above its entry says of the model, for classes with words of their own."""
    notes: tuple[str, ...] = ()
    """Things to know that are no warnings."""
    entry: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    """Keys that its class writes into the entry of a router's file."""
    as_written: bool = False
    """A person wrote the whole command."""
    device_numbers: tuple[int, ...] = ()
    """Telemetry's numbers of the devices that its figures are about, in their order; empty where that is the host's."""

    @property
    def argv(self) -> tuple[str, ...]:
        return tuple(token.text for token in self.tokens if token.source != "replaced")
