"""What the search is asked, and what it answers. Sizes are bytes, windows are tokens of one slot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from models_app.core.catalog import Launch, MemoryUse, Placement, Projection
from models_app.core.planning.kv_types import KvPair

WINDOW_STEP = 4096
"""Windows are multiples of this; a model trained for less gets its trained window."""

CtxBytes = Callable[[int, KvPair], int]
"""Bytes of something that grows with the window of one slot."""


def stepped(tokens: int) -> int:
    """Down to a multiple of the step; shorter windows stay as they are."""
    return max(1, tokens) if tokens < WINDOW_STEP else tokens // WINDOW_STEP * WINDOW_STEP


def nothing(_ctx_tokens: int, _pair: KvPair) -> int:
    return 0


@dataclass(frozen=True, slots=True)
class Room:
    """What llama.cpp's own allocations may take: per device, and in RAM (None: no cap).

    Everything else that lies there is subtracted already, except what grows with the window: `growing` is charged to
    the last device, or to RAM where there is none.
    """

    device_bytes: tuple[int, ...] = ()
    ram_bytes: int | None = None
    growing: CtxBytes = nothing
    cuda: bool = False
    """Devices copy host weights in and convert quantised caches (compute-buffer.md 6)."""
    compute_factor: float = 1.0
    """A person's own safety factor on the compute buffers of devices."""
    ranks: tuple[int, ...] = ()
    """The order in which devices are filled; empty where it is the same for all."""

    @property
    def in_turn(self) -> tuple[tuple[int, ...], ...]:
        """The devices that a launch may fill, tried one after the other: those of the first rank alone, with those of
        the next, all. Devices that are left out have no room.
        """
        steps = sorted(set(self.ranks)) or [0]
        ranks = self.ranks or (0,) * len(self.device_bytes)
        return tuple(
            tuple(size if rank <= step else 0 for size, rank in zip(self.device_bytes, ranks, strict=True))
            for step in steps
        )

    @property
    def adjusts(self) -> bool:
        """Loads differ from the plain projection."""
        return self.cuda or self.compute_factor != 1.0


@dataclass(frozen=True, slots=True)
class Question:
    """The wishes for one profile. Pins are None where the search may choose."""

    ceiling_tokens: int
    """No window is longer: the trained one, stretched where RoPE scaling allows it."""
    ladder_top: int = 0
    """The person's own ceiling; 0 for none."""
    min_ctx: int = 32768
    """What a dense model gives up precision of its cache, and then layers, for."""
    moe_ctx_target: int = 65536
    """Where a mixture with experts in RAM stops asking for more."""
    kv_pairs: tuple[KvPair, ...] = (KvPair("f16", "f16"), KvPair("q8_0", "q8_0"))
    """Best first; a pinned pair stands alone."""
    ctx: int | None = None
    gpu_layers: int | None = None
    """The value of `-ngl`; everything from block count + 1 on is all."""
    cpu_moe_layers: int | None = None
    tensor_split: tuple[float, ...] = ()
    slots: int = 1
    ubatch: int = 512
    batch: int | None = None
    kv_in_ram: bool = False
    kv_unified: bool = True
    flash_attn: bool = True
    swa_full: bool = False
    rollback_snapshots: int = 0
    draft_tokens: int = 0
    """Longest draft of the chain (`drafters.longest_draft`)."""
    outputs: str = "server"

    @property
    def top_tokens(self) -> int:
        """The longest window the search may choose, a multiple of the step where it is long enough for one."""
        return stepped(min(self.ceiling_tokens, self.ladder_top) if self.ladder_top > 0 else self.ceiling_tokens)

    @property
    def wanted_tokens(self) -> int:
        """The window below which a plan counts as short."""
        return min(stepped(self.min_ctx), self.top_tokens)

    @property
    def offloaded_tokens(self) -> int:
        """The window that a mixture gives up experts on the GPU for."""
        return max(min(stepped(self.moe_ctx_target), self.top_tokens), self.wanted_tokens)


@dataclass(frozen=True, slots=True)
class Step:
    """One rung of the ladder of placements. Layers count the output; `all_layers` of the model is everything."""

    gpu_layers: int
    cpu_moe_layers: int


@dataclass(frozen=True, slots=True)
class Answer:
    """The chosen launch, what it allocates, and how the search came to it."""

    placement: Placement
    launch: Launch
    projection: Projection
    """Llama.cpp's own figures, as `project` gives them for this placement: without drafts."""
    loads: tuple[MemoryUse, ...]
    """Per device, with what a CUDA device adds, what drafting needs, and the safety factor."""
    host: MemoryUse
    growing_bytes: int
    """What the room's growing term came to."""
    step: Step
    pair: KvPair
    fits: bool
    """Every device, and RAM where it has a cap."""
    limit: str
    """What kept the window from being longer: `trained`, `ladder`, `pinned`, `vram`, `ram`, `short`, `least`."""
    stepped_down: bool = False
    """The cache is quantised because a full-precision one would not hold the wanted window."""
