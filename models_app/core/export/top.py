"""The blocks before `models`, from a host's settings (config-yaml.md 3, 4)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from models_app.core.export import scalars
from models_app.core.export.enhancers import enhancer_table
from models_app.core.settings.fleet import Settings
from models_app.core.settings.records import ApiKey, SlotCache

MIN_HEALTH_TIMEOUT_SECONDS = 15


def header_lines(settings: Settings, timestamp: str) -> tuple[str, ...]:
    """The three comment lines on top. Only the first holds a time."""
    figures = f"TargetVramGB={_figure(settings.target_vram_gb)}  MaxRamGB={_figure(settings.max_ram_gb)}"
    return (
        f"Quartermaster config - generated {timestamp}",
        f"{figures}  Threads={settings.threads}",
        "Edits here are detected; change the model's settings instead",
    )


def _figure(value_gb: float) -> str:
    return scalars.number(scalars.gb(value_gb))


def top_level(settings: Settings, cache_dir: str = "") -> dict[str, Any]:
    """Keys before `models` in written order. `cache_dir` is where slot KV goes when the settings name no path."""
    blocks: dict[str, Any] = {
        "healthCheckTimeout": max(MIN_HEALTH_TIMEOUT_SECONDS, settings.health_check_timeout),
        **budgets(settings),
    }
    if settings.slot_cache.enable:
        blocks["slotCache"] = slot_cache(settings.slot_cache, cache_dir)
    blocks |= api_keys(settings.api_keys)
    if table := enhancer_table(settings.prompt_enhancers):
        blocks["promptEnhancers"] = table
    return blocks


def budgets(settings: Settings) -> dict[str, float]:
    """The router's budgets: the whole target, headroom not deducted; none when models must not co-reside."""
    if not settings.multi_resident:
        return {}
    figures = {"vramBudgetGB": settings.target_vram_gb, "ramBudgetGB": settings.max_ram_gb}
    return {name: scalars.gb(value) for name, value in figures.items() if value > 0}


def slot_cache(block: SlotCache, cache_dir: str) -> dict[str, Any]:
    """`slotCache`; the path must equal the `--slot-save-path` of the commands."""
    fields: dict[str, Any] = {"enable": True, "path": slot_cache_path(block, cache_dir)}
    if block.min_save_tokens > 0:
        fields["minSaveTokens"] = block.min_save_tokens
    if block.recurrent_seeds:
        fields["recurrentSeeds"] = True
    if block.max_disk_gb > 0:
        fields["maxDiskGB"] = scalars.gb(block.max_disk_gb)
    if block.max_sessions > 0:
        fields["maxSessions"] = block.max_sessions
    if not block.preamble_caches:
        fields["preambleCaches"] = False
    return fields


def slot_cache_path(block: SlotCache, cache_dir: str) -> str:
    """Where slot KV is kept: the configured path, else `slotkv` in the cache folder; forward slashes."""
    return scalars.forward(block.path.strip() or f"{cache_dir.rstrip('/')}/slotkv")


def api_keys(keys: Iterable[ApiKey]) -> dict[str, Any]:
    """`apiKeys` in settings order and `apiKeyModels` for the scoped ones. Names of keys are not written."""
    rows = list(keys)
    blocks: dict[str, Any] = {}
    if secrets := list(dict.fromkeys(row.key for row in rows)):
        blocks["apiKeys"] = secrets
    if scopes := {row.key: list(row.models) for row in rows if row.models}:
        blocks["apiKeyModels"] = scopes
    return blocks
