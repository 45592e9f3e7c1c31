"""LoRA adapters of llama-server (launch.md 3.10)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from models_app.core.launch.numbers import format_float
from models_app.core.launch.paths import join_lora, llm_lora_dir, quoted_path
from models_app.core.settings import Override, Settings


def lora_lines(settings: Settings, override: Override, model_path: str, *, joined_scale: bool = False) -> list[str]:
    """One line per adapter, in list order; rows without a path are half-typed and left out.

    `joined_scale`: the build reads `FNAME:SCALE` as one value (its help says so), not two values.
    """
    folder = llm_lora_dir(settings, model_path)
    lines = []
    for adapter in override.loras:
        if not adapter.path.strip():
            continue
        path = quoted_path(join_lora(folder, adapter.path))
        if adapter.scale is None:
            lines.append(f"--lora {path}")
        elif joined_scale:
            lines.append(f'--lora-scaled {path[:-1]}:{format_float(adapter.scale)}"')
        else:
            lines.append(f"--lora-scaled {path} {format_float(adapter.scale)}")
    return lines


def scale_problems(argv: Sequence[str]) -> tuple[str, ...]:
    """Why a build that reads `FNAME:SCALE` will not take an adapter of a command: it splits at every colon."""
    values = (value for flag, value in pairwise(argv) if flag == "--lora-scaled")
    return tuple(
        f"This build cannot read {value}: with a scale, the path of an adapter may hold no colon."
        for value in values
        if value.count(":") > 1
    )


def takes_joined_scale(hint: str | None) -> bool:
    """Whether a build's value hint of `--lora-scaled` is the one-word form."""
    return hint is not None and ":" in hint
