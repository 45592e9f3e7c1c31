"""Shared by the tests of the search: models of the zoo, rooms, and a brute force to compare with."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from models_app.core.catalog import Header
from models_app.core.planning.cache_choice import usable_pairs
from models_app.core.planning.fitting import Fitter
from models_app.core.planning.kv_types import KvPair
from models_app.core.planning.question import WINDOW_STEP, Answer, Question, Room, Step
from models_app.core.planning.rope import native_window
from models_app.core.planning.table import ModelTable, model_table
from models_app.core.units import GIB
from tests.zoo import zoo

DENSE = ("llama31-8b-q4_k_m", "gemma3-12b-q4_k_m", "qwen25-32b-q4_k_m", "qwen35-9b-q4_k_m", "phi4-14b-q4_k_m")
MIXTURES = ("qwen3-30b-a3b-q4_k_m", "gpt-oss-20b-mxfp4", "deepseek-v2-lite-q4_k_m", "glm45-air-ud_q2")
OTHERS = ("codestral-mamba-7b-q8_0", "granite4-h-small-q4_k_m", "gemma3n-e4b-q4_k_m", "nemotron-nano-9b-v2-q4_k_m")
MODELS = DENSE + MIXTURES + OTHERS
CHAT_MODELS = tuple(name for name, entry in zoo.MODELS.items() if entry.kind != "embedding")

F16 = KvPair("f16", "f16")

ZooHeader = Callable[[str], Header]


def question(header: Header, table: ModelTable, **changes: object) -> Question:
    """What a plan asks by default."""
    given: dict[str, object] = {
        "ceiling_tokens": native_window(header.context_length),
        "ubatch": 1024 if header.is_moe else 512,
        "kv_pairs": usable_pairs(table, True),
    }
    return Question(**(given | changes))  # type: ignore[arg-type]


def room(*devices_gib: float, ram_gib: float | None = None, cuda: bool = True) -> Room:
    return Room(
        device_bytes=tuple(int(size * GIB) for size in devices_gib),
        ram_bytes=None if ram_gib is None else int(ram_gib * GIB),
        cuda=cuda,
    )


def table_of(zoo_header: ZooHeader, model: str) -> tuple[Header, ModelTable]:
    header = zoo_header(model)
    return header, model_table(header)


def every_step(table: ModelTable) -> Iterator[Step]:
    """Every placement there is."""
    experts = [0, *(block + 1 for block in table.expert_blocks)]
    for layers in range(table.blocks + 2):
        for moved in experts:
            yield Step(layers, moved)


def better_launches(fitter: Fitter, answer: Answer) -> Iterator[tuple[int, Step]]:
    """Launches that are no worse in any respect and better in one, whether they fit or not."""
    table, now, step = fitter.table, answer.placement.ctx_tokens, answer.step
    windows = range(now, fitter.question.top_tokens + 1, WINDOW_STEP)
    experts = [0, *(block + 1 for block in table.expert_blocks)] if table.is_moe else [step.cpu_moe_layers]
    for ctx in windows:
        for layers in range(step.gpu_layers, table.blocks + 2):
            for moved in experts:
                if moved <= step.cpu_moe_layers and (ctx, layers, -moved) != (
                    now,
                    step.gpu_layers,
                    -step.cpu_moe_layers,
                ):
                    yield ctx, Step(layers, moved)
