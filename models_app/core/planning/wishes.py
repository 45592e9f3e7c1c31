"""What decides one planned launch besides the model: question, budget, companions, reserves."""

from __future__ import annotations

from dataclasses import dataclass, field

from gpus_app.core.budget import Budget
from models_app.core.planning.checkpoints import Checkpoints
from models_app.core.planning.kv_types import KvPair
from models_app.core.planning.question import Question
from models_app.core.planning.side_memory import DRAFT_FILE_EXTRA_BYTES, Projector, checkpoint_bytes
from models_app.core.planning.table import ModelTable


@dataclass(frozen=True, slots=True)
class Companions:
    """What a launch loads beside the model."""

    projector: Projector | None = None
    draft_file_bytes: int = 0
    """Size of the paired draft model, 0 without one."""
    baked_head: bool = False
    """The launch drafts with the model's own draft blocks."""
    draft_k: str = ""
    draft_v: str = ""
    checkpoints: Checkpoints = field(default_factory=lambda: Checkpoints(0, 0))


@dataclass(frozen=True, slots=True)
class Excess:
    """What one build of llama.cpp was measured to hold beyond our projection, at most, for launches of one model."""

    server: str
    """The executable that this holds for."""
    build: str
    device_bytes: int = 0
    """On one device."""
    ram_bytes: int = 0


NO_EXCESS = Excess("", "")


@dataclass(frozen=True, slots=True)
class Wishes:
    """Everything that decides one launch, besides the model."""

    question: Question
    budget: Budget
    companions: Companions = field(default_factory=Companions)
    headroom_bytes: int = 0
    """Kept free on every device."""
    excess: Excess = NO_EXCESS
    """Kept free as well: what checks against llama.cpp have shown."""
    compute_factor: float = 1.0
    """A person's own safety factor on compute buffers."""
    pinned: frozenset[str] = frozenset()
    """Knobs that the person set: `ctx`, `kv`, `layers`, `experts`, `split`, `ubatch`."""
    unjudged: str = ""
    """Why no figure of this launch could be trusted, whatever the model is."""


def beside_bytes(companions: Companions) -> int:
    """What lies on the main device whatever the window is: a projector on the GPU, a paired draft model."""
    projector = companions.projector
    total = projector.total_bytes if projector and not projector.in_ram else 0
    return total + (companions.draft_file_bytes + DRAFT_FILE_EXTRA_BYTES if companions.draft_file_bytes else 0)


def checkpoint_ram_bytes(
    table: ModelTable, wishes: Wishes, ctx_tokens: int | None = None, pair: KvPair | None = None
) -> int:
    """Checkpoints of a launch; by default the most that they can come to."""
    asked = wishes.question
    window = ctx_tokens or asked.ctx or asked.top_tokens
    return checkpoint_bytes(table, wishes.companions.checkpoints, window, asked.slots, pair or asked.kv_pairs[0])
