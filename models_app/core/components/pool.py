"""The component files of a host, and the best one for a wish (discovery.md 11.4 and 11.5)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from models_app.core.components import signals
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
        ranked = self.ranked_llms(wish)
        if not ranked:
            return None
        pin = self.entry(prefer)
        if pin is not None and 0 < wish.factor(pin) <= wish.factor(ranked[0]):
            return pin
        return ranked[0]

    def ranked_llms(self, wish: Wish) -> list[PoolEntry]:
        """All encoders that qualify, best first: what a page shows beside the choice."""
        fitting = [entry for entry in self.entries if wish.factor(entry)]
        return sorted(
            fitting,
            key=lambda entry: (
                wish.factor(entry),
                -architecture_rank(entry.family),
                -entry.size_bytes,
                entry.path,
            ),
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
        return _hinted([entry for entry in self.entries if entry.role == signals.LLM], hints)

    def recurrent_llm(self, caption_width: int) -> PoolEntry | None:
        """The largest recurrent encoder of a caption width."""
        fitting = [
            entry
            for entry in self.entries
            if entry.role == signals.RECURRENT_LLM and caption_factor(caption_width, entry.width)
        ]
        return min(fitting, key=lambda entry: (-entry.size_bytes, entry.path), default=None)

    def vae(self, family: str, width: int = 0, hints: Iterable[str] = ()) -> PoolEntry | None:
        """A VAE of a family; width and hints narrow the choice and never empty it."""
        fitting = self._of(signals.VAE, lambda entry: entry.family == family)
        exact = [entry for entry in fitting if width and entry.width == width]
        return _best_hinted(exact or fitting, hints)

    def audio_vae(self, family: str = "", hints: Iterable[str] = ()) -> PoolEntry | None:
        """An audio VAE of a family; a blank family takes any."""
        fitting = self._of(signals.AUDIO_VAE, lambda entry: family in ("", entry.family))
        return _best_hinted(fitting, hints)

    def clip(self, width: int) -> PoolEntry | None:
        """The first CLIP tower of exactly this width."""
        return next(iter(self._of(signals.CLIP, lambda entry: entry.width == width)), None)

    def t5(self, *, umt5: bool = False) -> PoolEntry | None:
        """The widest T5, the last on a tie. T5 and UMT5 have one width and never stand in for each other."""
        unwanted = ("t5encoder",) if umt5 else (signals.UMT5,)
        fitting = self._of(signals.T5, lambda entry: entry.family not in unwanted)
        if umt5:
            fitting = [entry for entry in fitting if entry.family == signals.UMT5] or fitting
        return max(reversed(fitting), key=lambda entry: entry.width, default=None)

    def _of(self, role: str, accepts: Callable[[PoolEntry], bool]) -> list[PoolEntry]:
        return [entry for entry in self.entries if entry.role == role and accepts(entry)]


def _hinted(entries: Iterable[PoolEntry], hints: Iterable[str]) -> PoolEntry | None:
    """The first entry whose path contains the first hint, else the next hint."""
    entries = list(entries)
    return next((entry for hint in hints for entry in entries if hint in _plain(entry.path)), None)


def _best_hinted(entries: list[PoolEntry], hints: Iterable[str]) -> PoolEntry | None:
    return _hinted(entries, hints) or next(iter(entries), None)


def _plain(path: str) -> str:
    return path.replace("\\", "/").lower()
