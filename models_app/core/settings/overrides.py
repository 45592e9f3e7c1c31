"""What a person pinned: the override of a model, and the variants layered over it (state.md 4, 5).

Attributes are the YAML keys in snake case (`kvKDraft` -> `kv_k_draft`); the field catalogue has their types, ranges and
merge rules. "" / 0 / False / () mean "not set, automatic"; where 0 or false is a value, "not set" is None.
"""

from __future__ import annotations

from dataclasses import dataclass

from models_app.core.settings.records import LoraRef


@dataclass(frozen=True, slots=True)
class SharedFields:
    """The fields that overrides and variants have in common."""

    ctx: int = 0
    vram_target_gb: float = 0.0
    kv_k: str = ""
    kv_v: str = ""
    kv_in_ram: bool = False
    cpu_offload: int = 0
    parallel: int = 0
    ub: int = 0
    threads: int = 0
    threads_batch: int = 0
    prio: int = 0
    flash_attn: str = ""
    mmap: str = ""
    mlock: bool = False
    direct_io: bool = False
    no_op_offload: bool = False
    no_repack: bool = False
    swa_full: bool = False

    mmproj: str = ""
    mmproj_file: str = ""

    chat_template_file: str = ""
    reasoning_fmt: str = ""
    preserve_thinking: bool | None = None

    spec: str = ""
    spec_default: bool = False
    spec_draft_n_max: int = 0
    spec_draft_n_min: int = 0
    spec_ngram_size_n: int = 0
    spec_ngram_size_m: int = 0
    spec_ngram_min_hits: int = 0
    kv_k_draft: str = ""
    kv_v_draft: str = ""

    dry: bool | None = None
    dry_multiplier: float = 0.0
    dry_base: float = 0.0
    dry_allowed_length: int = 0
    temp: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    presence_penalty: float | None = None

    ctx_checkpoints: int | None = None
    checkpoint_min_step: int = 0
    cache_reuse: int = 0
    cache_ram_mb: int = 0
    cache_idle_slots: str = ""
    context_shift: str = ""
    slot_prompt_similarity: float = 0.0
    slot_cache: bool | None = None

    rope_scaling: str = ""
    rope_scale: float = 0.0
    rope_freq_base: float = 0.0
    yarn_orig_ctx: int = 0

    split_mode: str = ""
    tensor_split: str = ""
    main_gpu: int = 0
    override_tensor: str = ""

    vae_path: str = ""
    clip_l_path: str = ""
    clip_g_path: str = ""
    t5_path: str = ""
    text_encoder_path: str = ""
    audio_vae_path: str = ""
    llm_vision_path: str = ""
    lora_dir: str = ""
    ref_edit: str = ""
    llm_vision: str = ""
    offload_to_cpu: str = ""
    te_on_cpu: str = ""
    vae_on_cpu: str = ""
    vae_tiling: str = ""
    diffusion_fa: str = ""
    temporal_tiling: str = ""
    stream_layers: str = ""
    default_steps: int = 0
    default_cfg: float = 0.0
    default_sampler: str = ""
    default_width: int = 0
    default_height: int = 0
    default_frames: int = 0
    default_fps: int = 0

    custom_args: str = ""
    custom_args_only: bool = False
    """The text is the whole command: nothing is generated but program, model and port where it does not name them."""
    extra_args: str = ""
    unlisted: bool = False
    served_id: str = ""
    """What clients call the entry instead of an id made from the file's name."""


@dataclass(frozen=True, slots=True)
class Variant(SharedFields):
    """A named set of fields over a model's override. The name `vision` tunes the vision twin instead."""

    name: str = ""


@dataclass(frozen=True, slots=True)
class Override(SharedFields):
    """One row per path glob: `match` covers the model's full path, a blank `quant` any quantisation."""

    match: str = ""
    quant: str = ""
    backend: str = ""
    device: str = ""
    """`cpu` keeps the model off the GPU."""
    swap_group: str = ""
    spawn_guard: str = ""
    """`on` or `off`; blank is the host's."""
    ttl_sec: int | None = None
    """None is the fleet's; 0 never unloads."""
    skip: bool = False
    ctx_variants: tuple[int, ...] = ()
    reasoning_budget: int = 0
    log_verbosity: int = 0
    slot_cache_preamble: bool | None = None
    loras: tuple[LoraRef, ...] = ()
    custom_args_off: bool = False
    """The text is kept, and not applied."""

    prompt_enhancer: str = ""
    prompt_enhancer_edit: str = ""
    prompt_enhancer_prompt: str = ""
    prompt_enhancer_edit_prompt: str = ""

    vllm_gpu_util: float = 0.0
    vllm_tensor_parallel: int = 0
    vllm_tokenizer: str = ""
    vllm_tool_parser: str = ""
    audio_device: int | None = None
    """None asks the probe; negative emits nothing."""
    audio_weight_type: str = ""

    tts_lang: str = ""
    tts_max_batch: int = 0
    tts_codec_chunk_dur: float = 0.0
    tts_codec_left_dur: float = 0.0
    tts_codec_fused: bool = False
    tts_no_fa: bool = False
    tts_clamp_fp16: bool = False
    tts_alias: str = ""
    tts_voices_dir: str = ""

    variants: tuple[Variant, ...] = ()
