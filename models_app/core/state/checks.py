"""What the catalogue alone cannot check: bounds that a model or host sets, and fields that depend on each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from models_app.core.fields import Field
from models_app.core.planning.drafters import spec_problem
from models_app.core.state.overrides import is_none

ROPE_FACTOR = 8
"""With RoPE scaling a window may be this many times the trained one (web.md 5.5)."""
_SHORTEST_WINDOW = 4096
_MOST_GIB = 65_536
"""Far above any machine; what is merely above this one's capacity is kept."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What bounds the fields of one model on one host; 0 where it is not known."""

    trained_tokens: int = 0
    block_count: int = 0
    device_count: int = 0
    rope_scaling: str = ""
    """In force while the form is read: it lifts the ceiling of the context."""

    @property
    def ceiling_tokens(self) -> int:
        scaled = self.rope_scaling.strip().lower() not in ("", "none")
        return self.trained_tokens * (ROPE_FACTOR if scaled else 1)


def bounded(field: Field, limits: Limits) -> Field:
    """The field with the bounds of this model filled in."""
    if field.limit == "trained-length" and limits.trained_tokens:
        shortest = min(_SHORTEST_WINDOW, limits.trained_tokens)
        return replace(field, minimum=shortest, maximum=limits.ceiling_tokens)
    if field.limit == "layers" and limits.block_count:
        return replace(field, maximum=limits.block_count)
    if field.limit == "capacity":
        return replace(field, maximum=_MOST_GIB)
    if field.key == "mainGpu" and limits.device_count:
        return replace(field, maximum=limits.device_count - 1)
    return field


def joint_problems(values: Mapping[str, Any], limits: Limits) -> dict[str, str]:
    """Key -> message for fields that do not go together. Values that are missing say nothing."""
    problems = {}
    shortest, longest = values.get("specDraftNMin") or 0, values.get("specDraftNMax") or 0
    if longest and shortest > longest:
        problems["specDraftNMin"] = f"Shortest draft: give at most the longest draft, {longest:,}."
    if values.get("ttsCodecFused") and (values.get("ttsMaxBatch") or 1) > 1:
        problems["ttsCodecFused"] = "Fused codec: it serves one request at a time; switch it off, or leave that at 1."
    if values.get("swapGroup") == "cpu" and values.get("device", "cpu") != "cpu":
        # It would hold VRAM that the pool of the cpu group does not count.
        problems["swapGroup"] = "Swap group: a model on the GPU cannot be in the CPU group. Set Device to CPU first."
    if problem := spec_problem(values.get("spec") or ""):
        problems["spec"] = f"Speculative decoding: {problem}"
    if problem := split_problem(values.get("tensorSplit") or "", limits.device_count):
        problems["tensorSplit"] = problem
    if problem := pairs_problem(values.get("overrideTensor") or ""):
        problems["overrideTensor"] = problem
    return problems


def split_problem(text: str, device_count: int) -> str:
    """Why a text is no ratio for so many devices, "" when it is one."""
    if not text.strip() or is_none(text):
        return ""
    parts = [part.strip() for part in text.replace("/", ",").split(",")]
    if not all(_is_share(part) for part in parts):
        return "Tensor split: give numbers of 0 or more, separated by commas, such as 3,1."
    if not any(float(part) for part in parts):
        return "Tensor split: at least one share must be above 0."
    if device_count and len(parts) != device_count:
        return f"Tensor split: this host has {device_count:,} devices, so give {device_count:,} numbers."
    return ""


def pairs_problem(text: str) -> str:
    """Why a text is no list of `pattern=buffer` pairs, "" when it is one."""
    if not text.strip() or is_none(text):
        return ""
    sound = all(_is_pair(pair) for pair in text.split(","))
    return "" if sound else "Tensor overrides: give pattern=buffer pairs separated by commas, such as ffn_.*=CPU."


def _is_pair(text: str) -> bool:
    pattern, equals, buffer = text.strip().rpartition("=")
    return bool(equals and pattern and buffer)


def _is_share(text: str) -> bool:
    whole, _, fraction = text.partition(".")
    digits = whole + fraction
    return len(text) <= 20 and digits.isascii() and digits.isdigit()


def beyond_trained(limits: Limits) -> str:
    """The way out of a window that is too long."""
    if limits.ceiling_tokens > limits.trained_tokens:
        return f"{ROPE_FACTOR} times the trained length is the most."
    return f"The model was trained for {limits.trained_tokens:,} tokens: give less, or switch RoPE scaling on."
