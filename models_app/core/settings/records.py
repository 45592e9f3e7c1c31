"""The small records inside settings, overrides and the sidecar (state.md 6)."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class LoraRef:
    """One adapter. `scale` None is the plain flag; 0 is loaded but inert."""

    path: str = ""
    scale: float | None = None


@dataclass(frozen=True, slots=True)
class GroupSpec:
    """Models that swap together. `match` are globs over model ids; the first group that matches wins."""

    name: str = ""
    listen: str = ""
    match: tuple[str, ...] = ()
    coexist: bool = False
    """Members stay loaded together; the group still evicts other groups."""


@dataclass(frozen=True, slots=True)
class SlotCache:
    """On-disk slot KV of the reference router. A blank path is the cache folder + `/slotkv`."""

    enable: bool = False
    path: str = ""
    min_save_tokens: int = 30000
    max_disk_gb: float = 10.0
    max_sessions: int = 20
    recurrent_seeds: bool = False
    preamble_caches: bool = True


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A client's key. Without `models` it has full access."""

    name: str = ""
    key: str = ""
    models: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PromptEnhancer:
    """A model that rewrites prompts for image models. The prompt is kept byte for byte."""

    model: str = ""
    name: str = ""
    system_prompt: str = ""
    vision: bool = False


@dataclass(frozen=True, slots=True)
class Encoders:
    """Pinned component files of the fleet. A pin whose file is gone is dropped by whoever reads the disk."""

    flux_vae: str = ""
    clip_l: str = ""
    clip_g: str = ""
    t5: str = ""
    sdxl_vae: str = ""
    zimage_vae: str = ""
    qwen_llm: str = ""
    flux2_vae: str = ""
    video_vae: str = ""
    audio_vae: str = ""


@dataclass(frozen=True, slots=True)
class BackendEntry:
    """One executable of the registry. `managed`, `component`, `version`, `variant` and `build` are provenance."""

    id: str = ""
    kind: str = ""
    name: str = ""
    path: str = ""
    default: bool = False
    managed: bool = False
    component: str = ""
    version: str = ""
    variant: str = ""
    build: str = ""


@dataclass(frozen=True, slots=True)
class SourceExtra:
    """A second release asset that a variant needs (a runtime, for example)."""

    asset: str = ""
    pattern: str = ""


@dataclass(frozen=True, slots=True)
class SourceVariant:
    """One build variant of a tracked source."""

    id: str = ""
    label: str = ""
    asset: str = ""
    pattern: str = ""
    extras: tuple[SourceExtra, ...] = ()


@dataclass(frozen=True, slots=True)
class BackendSource:
    """A repository that a person tracks beside the built-in catalogue."""

    id: str = ""
    name: str = ""
    blurb: str = ""
    repo: str = ""
    kind: str = ""
    exe: str = ""
    bare: bool = False
    allow_prerelease: bool = False
    os: str = ""
    variants: tuple[SourceVariant, ...] = ()


@dataclass(frozen=True, slots=True)
class ExtraImageModel:
    """An image model declared by hand (state.md 6.3). Nothing was scanned, so blank switches read as below."""

    name: str = ""
    model_path: str = ""
    model_flag: str = ""
    """`-m` (blank too) or `--diffusion-model`."""
    vae_path: str = ""
    llm_path: str = ""
    clip_l_path: str = ""
    clip_g_path: str = ""
    t5_path: str = ""
    lora_dir: str = ""
    prompt_enhancer: str = ""
    prompt_enhancer_edit: str = ""
    prompt_enhancer_prompt: str = ""
    prompt_enhancer_edit_prompt: str = ""
    vram_target_gb: float = 0.0
    default_cfg: float = 0.0
    default_steps: int = 0
    default_sampler: str = ""
    default_width: int = 0
    default_height: int = 0
    diffusion_fa: str = ""
    vae_tiling: str = ""
    te_on_cpu: str = ""
    """This and the two above are on when blank, the four below off."""
    temporal_tiling: str = ""
    stream_layers: str = ""
    vae_on_cpu: str = ""
    offload_to_cpu: str = ""
    threads: int = 0
    custom_args: str = ""
    custom_args_off: bool = False
    extra_args: str = ""
    unlisted: bool = False
    backend: str = ""


@dataclass(frozen=True, slots=True)
class AppSettings:
    """Process settings (state.md 10). None and blank inherit from the layer below; an explicit false is a value."""

    listen: str = ""
    playground_listen: str = ""
    admin_allow: str = ""
    admin_open: bool | None = None
    watch_models: bool | None = None
    watch_models_interval_sec: int = 0
    update_check: bool | None = None
    hf_token: str = field(default="", repr=False)
