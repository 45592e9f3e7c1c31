"""Image models declared by hand: nothing is scanned, switches count as they are written (classes.md 6.9)."""

from __future__ import annotations

from dataclasses import replace

from gpus_app.core.budget import Budget
from models_app.core.catalog import Row
from models_app.core.launch.executables import resolve_executable
from models_app.core.launch.numbers import number_text
from models_app.core.launch.sd import DiffusionLaunch, diffusion_budget, sd_command
from models_app.core.launch.tokens import POSIX
from models_app.core.plans.engines.request import FITS, Answer, on_its_devices
from models_app.core.settings import ExtraImageModel, Override, Settings

CHECKPOINT_FLAG = "-m"
_COPIED = (
    "lora_dir",
    "default_cfg",
    "default_steps",
    "default_sampler",
    "default_width",
    "default_height",
    "diffusion_fa",
    "vae_tiling",
    "te_on_cpu",
    "vae_on_cpu",
    "temporal_tiling",
    "stream_layers",
    "custom_args",
    "custom_args_off",
    "extra_args",
    "unlisted",
    "backend",
    "vram_target_gb",
    "threads",
    "prompt_enhancer",
    "prompt_enhancer_edit",
    "prompt_enhancer_prompt",
    "prompt_enhancer_edit_prompt",
)
"""Fields that mean the same in a declaration and in an override."""
_COMPONENTS = {
    "vae": "vae_path",
    "clip_l": "clip_l_path",
    "clip_g": "clip_g_path",
    "t5xxl": "t5_path",
    "llm": "llm_path",
}
_PIN_OF_COMPONENT = {"llm": "text_encoder_path"}
_FILE_FIRST = ("vram_target_gb", "threads")
"""A row of the same name replaces everything else also by nothing."""


def declared_override(model: ExtraImageModel, own: Override | None) -> Override:
    """The declaration as an override; a row of the same name is authoritative."""
    fields = {name: getattr(model, name) for name in _COPIED}
    declared = replace(Override(), **fields, offload_to_cpu="on" if model.offload_to_cpu == "on" else "off")
    if own is None:
        return declared
    kept = {name: getattr(own, name) or fields[name] for name in _FILE_FIRST}
    return replace(own, **kept, offload_to_cpu="on" if own.offload_to_cpu == "on" else "off")


def plan_declared(
    settings: Settings,
    model: ExtraImageModel,
    own: Override | None = None,
    *,
    devices: Budget | None = None,
    word_rules: str = POSIX,
) -> Answer:
    """The launch of one declaration. Its budget is its estimate, and goes to the server whole.

    Of several `devices` its server uses one: where the declaration has no target of its own, that one's part counts.
    """
    override = declared_override(model, own)
    if devices is not None:
        settings = on_its_devices(settings, devices)
    budget_gib = diffusion_budget(settings, override)
    components = {role: getattr(model, name).strip() for role, name in _COMPONENTS.items()}
    if own is not None:
        pins = {role: getattr(own, _PIN_OF_COMPONENT.get(role, name)).strip() for role, name in _COMPONENTS.items()}
        components = {role: pins[role] or path for role, path in components.items()}
    launch = DiffusionLaunch(
        settings,
        Row(id=model.name.strip(), full_path=model.model_path.strip()),
        override,
        0.0,
        exe=resolve_executable(settings, override.backend, "image").path,
        components={role: path for role, path in components.items() if path},
        model_flag=model.model_flag.strip() or CHECKPOINT_FLAG,
        max_vram=budget_gib,
    )
    return Answer(
        sd_command(launch, word_rules),
        {"max-vram": f"{number_text(round(budget_gib, 2))}GB"},
        est_vram_gib=budget_gib,
        verdict=FITS,
        entry={"checkEndpoint": "/", "capabilities": {"in": ["text"], "out": ["image"]}},
        engine="sd",
    )
