"""The component files of a host, and the best one for a wish (discovery.md 11.4 and 11.5)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from models_app.core.components import signals
from models_app.core.components.ranking import Ranking, rank
from models_app.core.discovery.roots import path_key

CAPTION_LAYOUTS = (1, 3, 8)
"""How many hidden layers of an encoder a model may stack into its caption width."""
ARCHITECTURE_RANKS = (("qwen", 3), ("mistral", 2), ("ministral", 2), ("gemma", 1), ("llama", 1))


@dataclass(frozen=True, slots=True)
class PoolEntry:
    """One component file. `family` is a VAE family, or the architecture of a GGUF encoder."""

    path: str
    role: str
    family: str = ""
    width: int = 0
    size_bytes: int = 0
    mmproj: str = ""
    vision: bool = False
    block_count: int = 0
    mtime_ns: int = 0
    recognised_by: str = ""
    """What in the file or its name said so, in words."""
    withheld: str = ""
    """Why no model is given this file, "" when models are."""

    @property
    def is_offered(self) -> bool:
        """Is it one of the files that a diffusion model chooses from?"""
        return self.role in signals.POOL_ROLES and not self.withheld


@dataclass(frozen=True, slots=True)
class Wish:
    """The text encoder that a model needs: caption width, a vision tower, and architectures it is limited to."""

    caption_width: int
    vision: bool = False
    architectures: Collection[str] = ()

    def factor(self, entry: PoolEntry) -> int:
        """Layers of this encoder that make up the caption width; 0 when it does not qualify."""
        if entry.role != signals.LLM or (self.vision and not entry.vision):
            return 0
        if self.architectures and entry.family and entry.family.lower() not in self.architectures:
            return 0
        return caption_factor(self.caption_width, entry.width)


def caption_factor(caption_width: int, encoder_width: int) -> int:
    """Whole quotient of the widths if it is a layout that models use, else 0."""
    if caption_width <= 0 or encoder_width <= 0 or caption_width % encoder_width:
        return 0
    factor = caption_width // encoder_width
    return factor if factor in CAPTION_LAYOUTS else 0


def architecture_rank(architecture: str) -> int:
    """What image models are usually trained against; a higher rank is preferred at equal width."""
    lower = architecture.strip().lower()
    return next((rank for prefix, rank in ARCHITECTURE_RANKS if lower.startswith(prefix)), 0)


class Pool:
    """All component files, sorted by path; "first" below means in that order."""

    def __init__(self, entries: Iterable[PoolEntry], platform: str = "linux") -> None:
        self.entries = tuple(sorted(entries, key=lambda entry: entry.path))
        self._platform = platform
        self._by_key = {path_key(entry.path, platform): entry for entry in self.entries}

    def entry(self, path: str) -> PoolEntry | None:
        """The entry of a path in any spelling that means the same file."""
        return self._by_key.get(path_key(path, self._platform)) if path else None

    def llm(self, wish: Wish, prefer: str = "") -> PoolEntry | None:
        """The text encoder for a wish. A pin that qualifies wins inside its layout; an exact width beats a stacked pin.

        Otherwise: fewer layers, architecture rank, larger file, lower path.
        """
        best = self.ranked_llms(wish).best
        pin = self.entry(prefer)
        if best is not None and pin is not None and 0 < wish.factor(pin) <= wish.factor(best):
            return pin
        return best

    def ranked_llms(self, wish: Wish) -> Ranking:
        """All encoders that qualify, best first."""
        return rank(
            (entry for entry in self.entries if wish.factor(entry)),
            layers=wish.factor,
            architecture=lambda entry: -architecture_rank(entry.family),
            size=lambda entry: -entry.size_bytes,
        )

    def is_llm_candidate(self, path: str, wish: Wish) -> bool:
        """Would a pin to this path be honoured?"""
        entry = self.entry(path)
        return entry is not None and wish.factor(entry) > 0

    def knows_llm(self, path: str) -> bool:
        """Did the scan class this path as a text encoder, of any width?"""
        entry = self.entry(path)
        return entry is not None and entry.role == signals.LLM

    def llm_hinted(self, *hints: str) -> PoolEntry | None:
        """The first text encoder whose path contains a hint; no fallback."""
        named = self._of(signals.LLM, lambda entry: _hint_index(entry, hints) < len(hints))
        return min(named, key=lambda entry: _hint_index(entry, hints), default=None)

    def recurrent_llms(self, caption_width: int) -> Ranking:
        """Recurrent encoders of a caption width, the largest first."""
        fitting = self._of(signals.RECURRENT_LLM, lambda entry: caption_factor(caption_width, entry.width) > 0)
        return rank(fitting, size=lambda entry: -entry.size_bytes)

    def vaes(self, family: str, width: int = 0, hints: Sequence[str] = ()) -> Ranking:
        """VAEs of a family; width and hints narrow the choice and never empty it."""
        fitting = self._of(signals.VAE, lambda entry: entry.family == family)
        return _ranked_by_name([entry for entry in fitting if width and entry.width == width] or fitting, hints)

    def vae(self, family: str, width: int = 0, hints: Sequence[str] = ()) -> PoolEntry | None:
        return self.vaes(family, width, hints).best

    def audio_vaes(self, family: str = "", hints: Sequence[str] = ()) -> Ranking:
        """Audio VAEs of a family, or of any."""
        return _ranked_by_name(self._of(signals.AUDIO_VAE, lambda entry: family in ("", entry.family)), hints)

    def audio_vae(self, family: str = "", hints: Sequence[str] = ()) -> PoolEntry | None:
        return self.audio_vaes(family, hints).best

    def clips(self, width: int) -> Ranking:
        """CLIP towers of a width."""
        return rank(self._of(signals.CLIP, lambda entry: entry.width == width))

    def clip(self, width: int) -> PoolEntry | None:
        return self.clips(width).best

    def t5s(self, *, umt5: bool = False) -> Ranking:
        """T5 encoders, the widest first and the last by path on a tie. T5 and UMT5 never stand in for each other."""
        unwanted = ("t5encoder",) if umt5 else (signals.UMT5,)
        fitting = self._of(signals.T5, lambda entry: entry.family not in unwanted)
        if umt5:
            fitting = [entry for entry in fitting if entry.family == signals.UMT5] or fitting
        return rank(reversed(fitting), width=lambda entry: -entry.width)

    def t5(self, *, umt5: bool = False) -> PoolEntry | None:
        return self.t5s(umt5=umt5).best

    def _of(self, role: str, accepts: Callable[[PoolEntry], bool]) -> list[PoolEntry]:
        return [entry for entry in self.entries if entry.role == role and accepts(entry)]


def _ranked_by_name(entries: Iterable[PoolEntry], hints: Sequence[str]) -> Ranking:
    """Those whose path contains the first hint, then the next."""
    return rank(entries, name=lambda entry: _hint_index(entry, hints))


def _hint_index(entry: PoolEntry, hints: Sequence[str]) -> int:
    return next((index for index, hint in enumerate(hints) if hint in _plain(entry.path)), len(hints))


def _plain(path: str) -> str:
    return path.replace("\\", "/").lower()
