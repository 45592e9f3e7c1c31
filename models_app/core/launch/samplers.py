"""Sampler flags (launch.md 3.6, 3.7). Only what no client can send gets a baseline, and only from a model card."""

from __future__ import annotations

from dataclasses import dataclass

from models_app.core.launch.numbers import format_float, number_text
from models_app.core.settings import Override, Settings

DRY_MULTIPLIER = 0.8
DRY_BASE = 1.75
DRY_ALLOWED_LENGTH = 3


@dataclass(frozen=True, slots=True)
class Baseline:
    """Samplers of a family; None leaves the flag out."""

    prefix: str
    """Start of the lower-cased architecture."""
    top_k: int | None = None
    min_p: float | None = None


BASELINES = (
    Baseline("qwen3", top_k=20, min_p=0.0),
    Baseline("muse-glimmer", top_k=64),
)

_NO_BASELINE = Baseline("")


def baseline_of(architecture: str) -> Baseline:
    name = architecture.lower()
    return next((baseline for baseline in BASELINES if name.startswith(baseline.prefix)), _NO_BASELINE)


def sampler_lines(architecture: str, override: Override | None) -> list[str]:
    """One line per sampler that has a value. An explicit 0 is a value."""
    own = override or Override()
    baseline = baseline_of(architecture)
    top_k = own.top_k if own.top_k is not None else baseline.top_k
    values = (
        ("--temp", own.temp),
        ("--top-k", top_k),
        ("--top-p", own.top_p),
        ("--min-p", own.min_p if own.min_p is not None else baseline.min_p),
        ("--presence-penalty", own.presence_penalty),
    )
    return [f"{flag} {number_text(value)}" for flag, value in values if value is not None]


def dry_lines(settings: Settings, override: Override | None) -> list[str]:
    """The DRY line, when the model or else the fleet switches it on; each value replaces its default on its own."""
    own = override or Override()
    if not (settings.dry_default if own.dry is None else own.dry):
        return []
    multiplier = format_float(own.dry_multiplier or DRY_MULTIPLIER)
    base = format_float(own.dry_base or DRY_BASE)
    length = own.dry_allowed_length or DRY_ALLOWED_LENGTH
    return [f"--dry-multiplier {multiplier} --dry-base {base} --dry-allowed-length {length}"]
