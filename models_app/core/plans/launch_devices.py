"""Which devices a launch uses, and in which order, where a person says something about that (sizing.md 14.3).

A ratio typed by hand stands in the backend's own order, so no list of ours goes with it; a list in the launch text
takes the place of ours; without a split one device holds everything.
"""

from __future__ import annotations

from gpus_app.core.budget import Budget
from models_app.core.launch.backends import engine_of
from models_app.core.launch.ownership import custom_text, runs_text_only
from models_app.core.launch.text_knobs import read_text_knobs
from models_app.core.launch.tokens import POSIX
from models_app.core.settings import Override, Settings
from models_app.core.state.overrides import is_none

ALONE, BY_LAYERS = "none", "layer"


def launch_budget(budget: Budget, override: Override, rules: str = POSIX) -> Budget:
    """The budget of the devices that a launch of llama-server with this override uses."""
    text = read_text_knobs(custom_text(override), rules)
    bare = runs_text_only(override)
    ratio = text.tensor_split or ("" if bare else override.tensor_split.strip())
    if text.devices:
        budget = budget.listed(text.devices)
    elif bare or (ratio and not is_none(ratio)):
        budget = budget.unnamed()
    if split_mode(override, rules) != ALONE or len(budget.device_bytes) < 2:
        return budget
    typed = text.main_gpu or str(0 if bare else override.main_gpu)
    place = int(typed) if typed.isdecimal() and len(typed) < 4 else 0
    return budget.unnamed().alone(place or (0 if bare else None))


def budget_of_server(
    budget: Budget, settings: Settings, override: Override, model_class: str, rules: str = POSIX
) -> Budget:
    """The same for any server: only llama-server with a chat model shares it among devices."""
    shares = model_class == "llm" and engine_of(settings, override, "llm") == "llama"
    return launch_budget(budget, override, rules) if shares else budget


def unknown_devices(budget: Budget, override: Override, rules: str = POSIX) -> str:
    """A warning about devices in the launch text that the plan cannot tell from the others, "" without any."""
    names = read_text_knobs(custom_text(override), rules).devices
    if len(budget.device_bytes) < 2 or set(names) <= set(budget.backend_ids):
        return ""
    return f"The estimate does not know the devices {','.join(names)[:60]} of the launch text: it counts with all."


def split_mode(override: Override, rules: str = POSIX) -> str:
    """How the launch spreads its layers: `layer`, as llama.cpp does by itself, `none`, or another word."""
    own = "" if runs_text_only(override) else override.split_mode
    return (read_text_knobs(custom_text(override), rules).split_mode or own).strip().lower() or BY_LAYERS
