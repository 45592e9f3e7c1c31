"""The command of sd-server (launch.md 4, classes.md 6.3 and 6.4). Sizes are GiB, as budgets are set in them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from models_app.core.catalog import Row
from models_app.core.launch.backends import executable_word
from models_app.core.launch.compose import Composition, compose
from models_app.core.launch.launcher import Launcher
from models_app.core.launch.macros import PORT
from models_app.core.launch.numbers import number_text
from models_app.core.launch.ownership import custom_text, runs_text_only
from models_app.core.launch.paths import argument_path, diffusion_lora_dir
from models_app.core.launch.sd_flags import SD
from models_app.core.launch.tokens import POSIX, quote
from models_app.core.settings import Override, Settings

IMAGE_OVERHEAD_GIB = 1.5
VIDEO_OVERHEAD_GIB = 4.0
"""Of a clip of the family's own size and length."""
MIN_BUDGET_GIB = 1.0
LIVE_FREE = -1.0
"""`--max-vram -1`: the server takes what is free minus 1 GiB. 0 would turn segmentation off, 1 aborts video graphs."""

COMPONENT_FLAGS = (
    ("vae", "--vae", "vae_path"),
    ("clip_l", "--clip_l", "clip_l_path"),
    ("clip_g", "--clip_g", "clip_g_path"),
    ("t5xxl", "--t5xxl", "t5_path"),
    ("llm", "--llm", "text_encoder_path"),
    ("audio_vae", "--audio-vae", "audio_vae_path"),
    ("llm_vision", "--llm_vision", "llm_vision_path"),
)
"""Role of a component, its flag, the override that wins over it; in the order of the command."""

VAE_ROLES = ("vae", "audio_vae")

GUIDANCE = (("kontext", 2.5), ("fill", 30.0))
"""Part of the lower-cased id -> guidance of the flux models that are distilled for it."""


@dataclass(frozen=True, slots=True)
class Generation:
    """What a family generates with when a request does not say; 0 and blank leave the flag out."""

    steps: int = 0
    cfg: float = 0.0
    sampler: str = ""
    width: int = 0
    height: int = 0
    frames: int = 0
    fps: int = 0


@dataclass(frozen=True, slots=True)
class DiffusionLaunch:
    """Everything one sd-server command is made from. `override` is the effective one.

    `components` are paths by role, `component_gib` the sizes of those that were found on disk.
    """

    settings: Settings
    row: Row
    override: Override
    model_gib: float
    exe: str = ""
    """The resolved backend's path; blank for the settings' `sdServerExe`."""
    components: Mapping[str, str] = field(default_factory=dict)
    component_gib: Mapping[str, float] = field(default_factory=dict)
    defaults: Generation = field(default_factory=Generation)
    overhead_gib: float | None = None
    """What generating takes beside the weights; None for a picture or a clip of ordinary size."""
    video: bool = False
    temporal_tiling: bool = False
    """The family's VAE can tile in time."""
    full_checkpoint: bool = False
    """All components are in the file."""
    model_flag: str = ""
    """The flag that names the model; blank for the one that follows from `full_checkpoint`."""
    max_vram: float | None = None
    """A value for `--max-vram` instead of the computed one."""

    @property
    def budget_gib(self) -> float:
        return diffusion_budget(self.settings, self.override)

    @property
    def offloads(self) -> bool:
        return offload_decision(self.model_gib, self.budget_gib, self.compute_gib, self.override)

    @property
    def compute_gib(self) -> float:
        """What generating takes beside the weights."""
        ordinary = VIDEO_OVERHEAD_GIB if self.video else IMAGE_OVERHEAD_GIB
        return ordinary if self.overhead_gib is None else self.overhead_gib

    @property
    def max_vram_gib(self) -> float:
        if self.max_vram is not None:
            return self.max_vram
        sizes = {} if self.full_checkpoint else self.component_gib
        return graph_budget(self.budget_gib, self.model_gib, sizes, self.offloads, self.override)

    def component(self, role: str, attribute: str) -> str:
        """The path of a component: the person's choice, else the resolved one."""
        own: str = getattr(self.override, attribute)
        return own.strip() or self.components.get(role, "")


def diffusion_budget(settings: Settings, override: Override) -> float:
    """VRAM that one image or video model may plan with, at least 1 GiB."""
    own = override.vram_target_gb
    return max(MIN_BUDGET_GIB, own if own > 0 else settings.target_vram_gb - settings.vram_overhead_gb)


def offload_decision(model_gib: float, budget_gib: float, overhead_gib: float, override: Override) -> bool:
    """Does the model run with its weights in RAM? Exactly full still fits."""
    if override.offload_to_cpu in ("on", "off"):
        return override.offload_to_cpu == "on"
    return model_gib + overhead_gib > budget_gib


def graph_budget(
    budget_gib: float, model_gib: float, component_gib: Mapping[str, float], offloads: bool, override: Override
) -> float:
    """The value of `--max-vram`, a size of graph segments: what the weights and components on the card leave over.

    Cut to one decimal; below 1 it becomes -1.
    """
    if offloads:
        return budget_gib
    on_card = model_gib
    for role, size in component_gib.items():
        stays = override.vae_on_cpu != "on" if role in VAE_ROLES else override.te_on_cpu == "off"
        on_card += size if stays else 0.0
    # Decimal fractions are not exact: 7.7 must not be cut to 7.6.
    left = math.floor((budget_gib - on_card) * 10 + 1e-9) / 10
    return left if left >= MIN_BUDGET_GIB else LIVE_FREE


def sd_lines(launch: DiffusionLaunch) -> list[str]:
    """The generated lines, executable first, without the person's text."""
    return [*_endpoint(launch), *_components(launch), *_memory(launch), *_generation(launch)]


def sd_command(launch: DiffusionLaunch, rules: str = POSIX) -> Composition:
    """The whole command: generated lines with the person's text laid over them."""
    return compose(SD, sd_lines(launch), custom_text(launch.override), rules, alone=runs_text_only(launch.override))


def _endpoint(launch: DiffusionLaunch) -> list[str]:
    flag = launch.model_flag or ("-m" if launch.full_checkpoint else "--diffusion-model")
    return [
        executable_word(launch.exe or launch.settings.sd_server_exe),
        f"{flag} {argument_path(launch.row.full_path)}",
        "-l 127.0.0.1",
        f"--listen-port {PORT}",
        f"--max-vram {number_text(launch.max_vram_gib)}",
    ]


def _components(launch: DiffusionLaunch) -> list[str]:
    lines = []
    if not launch.full_checkpoint:
        for role, flag, attribute in COMPONENT_FLAGS:
            path = launch.component(role, attribute)
            if path:
                lines.append(f"{flag} {argument_path(path)}")
    category = "video" if launch.video else "image"
    folder = diffusion_lora_dir(launch.settings, launch.override.lora_dir, category, launch.row.full_path)
    return [*lines, f"--lora-model-dir {argument_path(folder)}"] if folder else lines


def _memory(launch: DiffusionLaunch) -> list[str]:
    own = launch.override
    lines = []
    if own.diffusion_fa != "off":
        lines.append("--diffusion-fa")
    if own.vae_tiling != "off":
        lines.append("--vae-tiling")
    by_family = launch.video and launch.temporal_tiling
    if own.temporal_tiling == "on" or (by_family and own.temporal_tiling != "off"):
        lines.append("--temporal-tiling")
    by_offload = launch.video and launch.offloads
    if own.stream_layers == "on" or (by_offload and own.stream_layers != "off"):
        lines.append("--stream-layers")
    threads = own.threads if own.threads > 0 else launch.settings.threads
    if threads > 0:
        lines.append(f"-t {threads}")
    on_cpu = ["te=cpu"] if own.te_on_cpu != "off" else []
    on_cpu += ["vae=cpu"] if own.vae_on_cpu == "on" else []
    if on_cpu:
        lines.append(f"--backend {','.join(on_cpu)}")
    return lines


def _generation(launch: DiffusionLaunch) -> list[str]:
    own, family = launch.override, launch.defaults
    name = (launch.row.id or launch.row.file_name).lower()
    lines = [f"--guidance {number_text(value)}" for part, value in GUIDANCE if part in name][:1]
    if launch.offloads:
        lines.append("--offload-to-cpu")
        # A person who keeps the VAE on the card means it, offloaded or not.
        lines += [] if own.vae_on_cpu == "off" else ["--vae-on-cpu"]
    numbers: tuple[tuple[str, float], ...] = (
        ("--steps", own.default_steps or family.steps),
        ("--cfg-scale", own.default_cfg or family.cfg),
        ("--width", own.default_width or family.width),
        ("--height", own.default_height or family.height),
        ("--video-frames", own.default_frames or family.frames),
        ("--fps", own.default_fps or family.fps),
    )
    defaults = [f"{flag} {number_text(value)}" for flag, value in numbers if value > 0]
    sampler = own.default_sampler.strip() or family.sampler
    if sampler:
        position = sum(1 for flag, value in numbers[:2] if value > 0)
        defaults.insert(position, f"--sampling-method {quote(sampler)}")
    return lines + defaults


LAUNCHER = Launcher(
    kind="sd",
    classes=("image", "video"),
    formats=("gguf", "safetensors"),
    # The server has no health route; its root answers once the model is loaded.
    health_path="/",
    table=SD,
    command=sd_command,
)
