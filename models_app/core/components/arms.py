"""The roles that each line of diffusion models needs, and the file for each (discovery.md 12, the table of arms)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from models_app.core.components.declared import FILLED
from models_app.core.components.naming import is_flux2_line
from models_app.core.components.pool import Pool, PoolEntry
from models_app.core.components.ranking import Ranking
from models_app.core.components.signals import UMT5
from models_app.core.settings.records import Encoders

HOST_PIN = "host-pin"


@dataclass(frozen=True, slots=True)
class Pick:
    """The file of one role, "" when it is missing; what decided; and the candidates as they were ranked.

    `because` is a criterion of the ranking, or names the pin that outranks it.
    """

    path: str = ""
    because: str = ""
    ranking: Ranking = field(default_factory=Ranking)
    limited_to: tuple[str, ...] = ()
    """Architectures that the choice was limited to; empty for no limit."""

    @classmethod
    def of(cls, ranking: Ranking) -> Pick:
        return cls(ranking.path, ranking.because, ranking)

    @property
    def others(self) -> tuple[PoolEntry, ...]:
        """Candidates that were not taken, the best first."""
        return tuple(entry for entry in self.ranking.entries if entry.path != self.path)


Wired = dict[str, Pick]
"""Role -> file; a blank path is a role that is needed and missing."""

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
    latent_width: int
    pool: Pool
    pins: Encoders
    """Pins of the host whose files are there."""
    llm: Pick

    def pinned(self, name: str) -> Pick:
        """The host's pin, else the best file for what it stands for."""
        path, ranking = getattr(self.pins, name), FILLED[name](self.pool)
        return Pick(path, HOST_PIN, ranking) if path else Pick.of(ranking)


def wan3d_latent_width(architecture: str, caption_width: int) -> int:
    """Latent width that a model wants of a wan3d VAE, 0 for any."""
    if not architecture.strip().lower().startswith("qwen_image"):
        return 0
    return RGBA_LATENT_WIDTH if caption_width == WIDE_CAPTION else RGB_LATENT_WIDTH


def _minimax_h3(choice: Choice) -> Wired:
    return {"vae": choice.pinned("video_vae"), "llm": choice.llm} | _audio(choice)


def _ltx(choice: Choice) -> Wired:
    """Two decoders of one family are published; the one named `-conv` is several times faster and flat in memory."""
    return {"vae": Pick.of(choice.pool.vaes("ltx", hints=("-conv",))), "llm": choice.llm} | _audio(choice)


def _wan(choice: Choice) -> Wired:
    vae = Pick.of(choice.pool.vaes("wan3d", choice.latent_width, hints=("wan",)))
    return {"vae": vae, "t5xxl": _umt5(choice)} | _audio(choice)


def _umt5(choice: Choice) -> Pick:
    """Wan reads UMT5 only: a pin that the scan knows as another T5 was meant for other models."""
    pin, ranking = choice.pins.t5, choice.pool.t5s(umt5=True)
    known = choice.pool.entry(pin)
    if pin and (known is None or known.family == UMT5):
        return Pick(pin, HOST_PIN, ranking)
    return Pick.of(ranking)


def _audio(choice: Choice) -> Wired:
    if not choice.has_audio_out:
        return {}
    if choice.video_kind == "ltxav":
        return {"audio_vae": Pick.of(choice.pool.audio_vaes("ltx"))}
    return {"audio_vae": choice.pinned("audio_vae")}


def _chroma(choice: Choice) -> Wired:
    return {"vae": choice.pinned("flux_vae"), "t5xxl": choice.pinned("t5")}


def _flux2(choice: Choice) -> Wired:
    return {"vae": choice.pinned("flux2_vae"), "llm": choice.llm}


def _longcat(choice: Choice) -> Wired:
    return {"vae": choice.pinned("flux_vae"), "llm": choice.llm}


def _flux(choice: Choice) -> Wired:
    return {"vae": choice.pinned("flux_vae"), "clip_l": choice.pinned("clip_l"), "t5xxl": choice.pinned("t5")}


def _z_image(choice: Choice) -> Wired:
    """Its VAE is byte for byte that of FLUX.1."""
    vae = choice.pinned("zimage_vae")
    return {"vae": vae if vae.path else choice.pinned("flux_vae"), "llm": choice.llm}


def _qwen_image(choice: Choice) -> Wired:
    if choice.architecture == "wan" and "wan" not in choice.name:
        return {"vae": choice.pinned("flux2_vae"), "llm": choice.llm}
    is_wan = "krea" in choice.name or "wan" in choice.name
    hints = ("wan_2.1", "wan2.1", "wan") if is_wan else ("qwen_image", "qwen-image")
    width = wan3d_latent_width(choice.architecture, choice.caption_width)
    return {"vae": Pick.of(choice.pool.vaes("wan3d", width, hints)), "llm": choice.llm}


def _moss(choice: Choice) -> Wired:
    """The one line that reads a recurrent encoder; its VAE is the full FLUX.2 autoencoder."""
    return {"vae": choice.pinned("flux2_vae"), "llm": Pick.of(choice.pool.recurrent_llms(choice.caption_width))}


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
