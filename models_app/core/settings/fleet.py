"""The settings of one host's fleet, after the load sequence (state.md 2, 3): every default is in place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from models_app.core.fields import DEFAULT_CTX_LADDER
from models_app.core.settings.overrides import Variant
from models_app.core.settings.records import (
    ApiKey,
    AppSettings,
    BackendEntry,
    Encoders,
    ExtraImageModel,
    GroupSpec,
    PromptEnhancer,
    SlotCache,
)


@dataclass(frozen=True, slots=True)
class Settings:
    """Attributes are the YAML keys in snake case. Sizes in GB are GiB. A stored 0 of the patch stays 0."""

    models_root: str = ""
    category_roots: Mapping[str, str] = field(default_factory=dict)
    server_exe: str = "llama-server"
    sd_server_exe: str = "sd-server"
    tts_server_exe: str = "tts-server"
    asr_server_exe: str = "parakeet-server"
    backends: tuple[BackendEntry, ...] = ()

    target_vram_gb: float = 7.0
    auto_vram: bool = False
    vram_overhead_gb: float = 0.5
    max_ram_gb: float = 24.0
    ttl_sec: int = 600

    multi_resident: bool = True
    min_gpu_fraction: float = 0.5
    oom_guard_evict: bool = True
    oom_guard_reserve_gb: float = 1.0
    oom_guard_grace_sec: int = 30
    spawn_guard: bool = False

    multi_gpu: bool = True
    min_gpu_vram_gb: float = 3.0
    shared_memory: str = "auto"
    pool_integrated_gpu: bool = False

    dry_default: bool = False
    kv_quant: str = ""
    slot_cache: SlotCache = field(default_factory=SlotCache)

    compute_buf_factor: float = 1.0
    vision_overhead_gb: float = 1.0
    vision_ctx: int = 8192
    moe_ctx_target: int = 65536
    dense_min_ctx: int = 32768
    dense_ctx_ladder: tuple[int, ...] = DEFAULT_CTX_LADDER
    threads: int = 7
    health_check_timeout: int = 300
    lora_dir: str = ""
    lora_dirs: Mapping[str, str] = field(default_factory=dict)

    groups: tuple[GroupSpec, ...] = ()
    default_variants: tuple[Variant, ...] = ()
    display_names: Mapping[str, str] = field(default_factory=dict)
    api_keys: tuple[ApiKey, ...] = ()
    encoders: Encoders = field(default_factory=Encoders)
    prompt_enhancers: tuple[PromptEnhancer, ...] = ()
    extra_image_models: tuple[ExtraImageModel, ...] = ()
    extra_models: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    """Hand-written config blocks by name; checked by the exporter, which alone knows their keys."""
    app: AppSettings = field(default_factory=AppSettings)
