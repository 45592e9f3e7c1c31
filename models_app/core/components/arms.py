"""The roles that each line of diffusion models needs, and the file for each (discovery.md 12, the table of arms)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from models_app.core.components.naming import is_flux2_line
from models_app.core.components.pool import Pool, PoolEntry
from models_app.core.components.signals import UMT5
from models_app.core.settings.records import Encoders

Wired = dict[str, str]
"""Role -> path; a blank path is a role that is needed and missing."""

WIDE_CAPTION = 4096
"""Caption width of Qwen-Image 2.1, whose VAE has an alpha channel."""
RGBA_LATENT_WIDTH = 64
RGB_LATENT_WIDTH = 16


@dataclass(frozen=True, slots=True)
class Choice:
    """All that an arm may look at: lower-cased architecture and name, the pool, the filled pins, the chosen encoder."""

    architecture: str
    name: str
    caption_width: int
    video_kind: str
    has_audio_out: bool
    pool: Pool
    encoders: Encoders
    llm: str


def wan3d_latent_width(architecture: str, caption_width: int) -> int:
    """Latent width that a model wants of a wan3d VAE, 0 for any."""
    if not architecture.strip().lower().startswith("qwen_image"):
        return 0
    return RGBA_LATENT_WIDTH if caption_width == WIDE_CAPTION else RGB_LATENT_WIDTH


def _minimax_h3(choice: Choice) -> Wired:
    vae = choice.encoders.video_vae or _path(choice.pool.vae("video3d"))
    return {"vae": vae, "llm": choice.llm} | _audio(choice)


def _ltx(choice: Choice) -> Wired:
    """Two decoders of one family are published; the one named `-conv` is several times faster and flat in memory."""
    return {"vae": _path(choice.pool.vae("ltx", hints=("-conv",))), "llm": choice.llm} | _audio(choice)


def _wan(choice: Choice) -> Wired:
    vae = _path(choice.pool.vae("wan3d", hints=("wan",)))
    return {"vae": vae, "t5xxl": _umt5(choice)} | _audio(choice)


def _umt5(choice: Choice) -> str:
    """Wan reads UMT5 only: a pin that the scan knows as another T5 was meant for other models."""
    pin = choice.encoders.t5
    known = choice.pool.entry(pin)
    if pin and (known is None or known.family == UMT5):
        return pin
    return _path(choice.pool.t5(umt5=True))


def _audio(choice: Choice) -> Wired:
    if not choice.has_audio_out:
        return {}
    if choice.video_kind == "ltxav":
        return {"audio_vae": _path(choice.pool.audio_vae("ltx"))}
    return {"audio_vae": choice.encoders.audio_vae or _path(choice.pool.audio_vae("video3d"))}


def _chroma(choice: Choice) -> Wired:
    return {"vae": choice.encoders.flux_vae, "t5xxl": choice.encoders.t5}


def _flux2(choice: Choice) -> Wired:
    return {"vae": choice.encoders.flux2_vae, "llm": choice.llm}


def _longcat(choice: Choice) -> Wired:
    return {"vae": choice.encoders.flux_vae, "llm": choice.llm}


def _flux(choice: Choice) -> Wired:
    return {"vae": choice.encoders.flux_vae, "clip_l": choice.encoders.clip_l, "t5xxl": choice.encoders.t5}


def _z_image(choice: Choice) -> Wired:
    return {"vae": choice.encoders.zimage_vae, "llm": choice.llm}


def _qwen_image(choice: Choice) -> Wired:
    if choice.architecture == "wan" and "wan" not in choice.name:
        vae = choice.encoders.flux2_vae or _path(choice.pool.vae("flux2"))
        return {"vae": vae, "llm": choice.llm}
    is_wan = "krea" in choice.name or "wan" in choice.name
    hints = ("wan_2.1", "wan2.1", "wan") if is_wan else ("qwen_image", "qwen-image")
    width = wan3d_latent_width(choice.architecture, choice.caption_width)
    return {"vae": _path(choice.pool.vae("wan3d", width, hints)), "llm": choice.llm}


def _moss(choice: Choice) -> Wired:
    """The one line that reads a recurrent encoder; its VAE is the full FLUX.2 autoencoder."""
    return {"vae": choice.encoders.flux2_vae, "llm": _path(choice.pool.recurrent_llm(choice.caption_width))}


VIDEO_ARMS: dict[str, Callable[[Choice], Wired]] = {"minimax_h3": _minimax_h3, "ltxav": _ltx, "wan": _wan}
IMAGE_ARMS: tuple[tuple[Callable[[Choice], bool], Callable[[Choice], Wired]], ...] = (
    (lambda choice: "chroma" in choice.name, _chroma),
    (lambda choice: is_flux2_line(choice.name), _flux2),
    (lambda choice: "longcat" in choice.name, _longcat),
    (lambda choice: choice.architecture.startswith("flux"), _flux),
    (lambda choice: choice.architecture.startswith(("lumina", "z_image")) or "z-image" in choice.name, _z_image),
    (
        lambda choice: (
            choice.architecture in ("qwen_image", "wan") or "qwen-image" in choice.name or "qwen_image" in choice.name
        ),
        _qwen_image,
    ),
    (lambda choice: choice.architecture == "moss_image", _moss),
)
"""In order; the first whose test holds decides. A model that none claims gets nothing."""


def choose_arm(choice: Choice) -> Wired:
    """The wired roles of one model."""
    if choice.video_kind in VIDEO_ARMS:
        return VIDEO_ARMS[choice.video_kind](choice)
    return next((arm(choice) for holds, arm in IMAGE_ARMS if holds(choice)), {})


def _path(entry: PoolEntry | None) -> str:
    return entry.path if entry else ""
