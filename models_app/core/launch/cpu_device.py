"""Whether a launch keeps off every GPU."""

from __future__ import annotations

from models_app.core.launch.ownership import custom_text
from models_app.core.launch.text_knobs import read_text_knobs
from models_app.core.launch.tokens import POSIX
from models_app.core.settings import Override

CPU = "cpu"


def keeps_off_gpus(override: Override, rules: str = POSIX) -> bool:
    """By its field, or by `--device none` in its launch text (sizing.md 12.3)."""
    return override.device.strip().lower() == CPU or read_text_knobs(custom_text(override), rules).no_device
