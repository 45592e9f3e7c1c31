"""Image and video models on sd-server (classes.md 6, 8)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from models_app.core.catalog import MemoryTerm, Reason
from models_app.core.classes import image, video
from models_app.core.classes.registry import has_prefix
from models_app.core.components.naming import is_reference_edit
from models_app.core.components.resolve import FULL_CHECKPOINTS, OVERRIDE_ROLES, diffusion_model, resolve_components
from models_app.core.launch.numbers import number_text
from models_app.core.launch.sd import VAE_ROLES, DiffusionLaunch, Generation, sd_command
from models_app.core.plans.engines.request import FITS, NONE_DECLARED, OVER, SPILLS, Answer, Request, term
from models_app.core.settings import Override
from models_app.core.units import GIB

LTX = "ltxav"
LTX_FRAMES = 153
"""Above this its authors promise nothing."""
BARE_UNET = "it looks like a UNet without its encoders: sd-server loads such a file as a full checkpoint"
_PROJECTOR_PIN = "llm_vision_path"


def plan(request: Request) -> Answer:
    launch, missing = launch_of(request)
    answer = Answer(
        sd_command(launch, request.word_rules),
        _facts(request, launch),
        est_vram_gib=launch.budget_gib,
        verdict=_verdict(launch),
        entry={"checkEndpoint": "/", "capabilities": _capabilities(request)},
        engine="sd",
        terms=list(_terms(launch)),
        reasons=[_reason(launch)],
        warnings=list(_warnings(request, launch, missing)),
    )
    answer.est_ram_gib = sum(item.ram_bytes for item in answer.terms) / GIB
    return answer


def launch_of(request: Request) -> tuple[DiffusionLaunch, tuple[str, ...]]:
    """The launch with its components, and the roles for which there is no file."""
    header, around = request.header, request.surroundings
    name = _name(request)
    wired = resolve_components(
        diffusion_model(header, name), around.pool, request.settings.encoders, request.override, around.is_gone
    )
    sizes = {role: around.file_bytes(path) / GIB for role, path in wired.paths.items()}
    kind = header.video_kind
    defaults = _video_generation(request) if kind else _image_generation(request)
    launch = DiffusionLaunch(
        request.settings,
        request.row,
        _without_paths(request.override),
        request.size_gib,
        exe=request.executable().path,
        components=wired.paths,
        component_gib={role: size for role, size in sizes.items() if size > 0},
        defaults=defaults,
        overhead_gib=_overhead_gib(request) if kind else None,
        video=bool(kind),
        temporal_tiling=bool(kind) and video.FAMILIES[kind].tiles_in_time,
        full_checkpoint=not kind and has_prefix(image.image_architecture(header), FULL_CHECKPOINTS),
    )
    return launch, wired.missing


def _without_paths(override: Override) -> Override:
    """The pins of files are settled by then; a `none` among them must not come back as a path."""
    settled: dict[str, Any] = dict.fromkeys((*OVERRIDE_ROLES.values(), _PROJECTOR_PIN), "")
    return replace(override, **settled)


def _name(request: Request) -> str:
    return request.row.id or request.row.file_name


def _image_generation(request: Request) -> Generation:
    header = request.header
    steps, cfg = image.image_defaults(image.image_architecture(header), _name(request), header.cond_hidden)
    return Generation(steps=steps or 0, cfg=cfg or 0.0)


def _video_generation(request: Request) -> Generation:
    family = video.built_in_profile(request.header.video_kind, _name(request))
    return Generation(
        family.steps or 0,
        family.cfg or 0.0,
        family.sampler or "",
        family.width,
        family.height,
        family.frames,
        family.fps,
    )


def _clip(request: Request) -> video.Profile:
    """The clip that a request without wishes asks for."""
    own = request.override
    family = video.built_in_profile(request.header.video_kind, _name(request))
    return replace(
        family,
        width=own.default_width or family.width,
        height=own.default_height or family.height,
        frames=own.default_frames or family.frames,
    )


def _overhead_gib(request: Request) -> float:
    return video.overhead_gib(request.header.video_kind, _name(request), _clip(request))


def _verdict(launch: DiffusionLaunch) -> str:
    if launch.offloads:
        return SPILLS
    return FITS if launch.model_gib <= launch.budget_gib else OVER


def _reason(launch: DiffusionLaunch) -> Reason:
    need, budget = launch.model_gib + launch.compute_gib, launch.budget_gib
    figures = f"{need:.1f} GiB of weights and working memory against a budget of {budget:.1f} GiB"
    if launch.override.offload_to_cpu in ("on", "off"):
        return Reason("offload-pinned", f"Offloading is switched {launch.override.offload_to_cpu} by hand: {figures}.")
    if launch.offloads:
        return Reason("offload", f"The weights stay in RAM and visit the GPU in parts: {figures}.")
    return Reason("resident", f"The model stays on the GPU: {figures}.")


def _terms(launch: DiffusionLaunch) -> Iterator[MemoryTerm]:
    """What is known of the launch, and the rest of its budget, all of which the server may take."""
    known = list(_known_terms(launch))
    yield from known
    rest = launch.budget_gib - sum(sum(item.device_bytes) for item in known) / GIB
    how = "The rest of the budget: the server may fill it, so nothing else is planned there."
    yield term("headroom", "Left to the server", how, vram_gib=max(0.0, rest))


def _known_terms(launch: DiffusionLaunch) -> Iterator[MemoryTerm]:
    place = "ram_gib" if launch.offloads else "vram_gib"
    yield term("weights", "Weights", "the size of the file", **{place: launch.model_gib})
    for role, size in launch.component_gib.items():
        on_cpu = launch.override.vae_on_cpu == "on" if role in VAE_ROLES else launch.override.te_on_cpu != "off"
        where = "ram_gib" if on_cpu or launch.offloads else "vram_gib"
        yield term("component", role, "the size of its file", **{where: size})
    yield term(
        "compute",
        "Generation",
        "scaled from the family's own picture size and length" if launch.video else "a flat figure for one picture",
        vram_gib=launch.compute_gib,
    )


def _facts(request: Request, launch: DiffusionLaunch) -> dict[str, str]:
    header = request.header
    architecture = header.architecture if launch.video else image.image_architecture(header)
    return {
        "arch": architecture or NONE_DECLARED,
        **({"family": header.video_kind} if launch.video else {}),
        "budget": f"{number_text(round(launch.budget_gib, 2))}GB",
        "max-vram": f"{number_text(round(launch.max_vram_gib, 2))}GB",
        "offload": "true" if launch.offloads else "false",
    }


def _capabilities(request: Request) -> dict[str, Any]:
    header, own = request.header, request.override
    if header.video_kind:
        return {"in": ["text"], "out": ["video", "audio"] if header.has_audio_out else ["video"]}
    edits = is_reference_edit(_name(request), own.llm_vision, own.ref_edit)
    return {"in": ["text", "image"] if edits else ["text"], "out": ["image"]}


def _warnings(request: Request, launch: DiffusionLaunch, missing: tuple[str, ...]) -> Iterator[str]:
    if missing:
        yield f"needs [{' '.join(missing)}], for which no file was found or pinned"
    if launch.full_checkpoint and not request.header.has_baked_encoders:
        yield BARE_UNET
    frames = request.override.default_frames or launch.defaults.frames
    if request.header.video_kind == LTX and frames > LTX_FRAMES:
        yield f"clips of more than {LTX_FRAMES} frames are beyond what this family promises; {frames} are set"
