"""What `generate` plans from: folders and options alone, or a settings file with its sidecar."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gpus_app.core.budget import (
    PLACEHOLDER_RAM_GIB,
    Budget,
    auto_vram_target,
    budget_of,
    machine_budget,
    recommended_ram_gib,
    recommended_vram_gib,
    seed_budget,
)
from gpus_app.core.gpu_set import RANKS, DevicePolicy, gpu_set
from gpus_app.core.probes import machine
from gpus_app.core.units import GIB
from models_app.core.discovery.hostile_names import unsafe_reason
from models_app.core.errors import UsageError
from models_app.core.export.fragments import NO_FRAGMENTS, Fragments
from models_app.core.launch.backends import KINDS, kind_of, with_registry
from models_app.core.settings import BackendEntry, Override, Settings
from models_app.core.settings_files.ensure import Target, scan_folders
from models_app.core.settings_files.files import OwnSettings
from models_app.core.settings_files.pair import Pair
from models_app.core.units import to_gib
from models_app.core.verbs.answers import shown
from models_app.core.verbs.budgets import budget_from, check_targets


@dataclass(frozen=True, slots=True)
class Inputs:
    """What one run plans."""

    folders: Sequence[str]
    settings: Settings
    budget: Budget
    overrides: tuple[Override, ...] = ()
    fragments: Fragments = NO_FRAGMENTS


def from_options(options: argparse.Namespace) -> Inputs:
    """Defaults, with the executables and budgets of the options; executables that are not named are bare names."""
    folders = [existing_folder(path) for path in options.models]
    backends = backend_rows(options.backend)
    budget = budget_from(options)
    settings = Settings(
        backends=backends, target_vram_gb=to_gib(budget.target_bytes), max_ram_gb=to_gib(budget.ram_bytes)
    )
    return Inputs(folders, settings, budget)


def from_files(options: argparse.Namespace, pair: Pair, platform: str) -> Inputs:
    """What the files say; `--models` stands for the main folder, and budgets and executables of the options go first.

    Raises `SettingsError` with every fault of the files.
    """
    main, *others = [existing_folder(path) for path in options.models] or [""]
    state = pair.state(main)
    roots = scan_folders(state, pair.own, platform)
    folders = [os.path.abspath(path) for path in dict.fromkeys([*(root.path for root in roots), *others])]
    settings, budget = _budgeted(options, state.settings, pair)
    if options.backend:
        settings = _with_backends(settings, options.backend)
    return Inputs(folders, settings, budget, state.overrides, pair.own.fragments_for(options.dialect))


def target_of(options: argparse.Namespace) -> Target:
    """The files of a run, for the gate: what the options say and the program itself count as inputs."""
    told = [options.dialect, options.vram, options.ram, options.backend, options.models]
    return Target(
        settings_file=Path(options.settings).absolute(),
        output=Path(options.output).absolute(),
        version=json.dumps([_program_digest(), *told]),
        program_folder=os.path.dirname(os.path.abspath(__file__)),
        models_dir=os.path.abspath(options.models[0]) if options.models else "",
        sidecar=Path(options.sidecar).absolute() if options.sidecar else None,
    )


def _program_digest() -> str:
    """Changes with every change of this program: what it would write may be another text then."""
    package = Path(__file__).resolve().parents[3]
    modules = sorted(path for core in ("models_app/core", "gpus_app/core") for path in (package / core).rglob("*.py"))
    stamps = ((str(path.relative_to(package)), path.stat()) for path in modules)
    return hashlib.sha256(repr([(name, stat.st_size, stat.st_mtime_ns) for name, stat in stamps]).encode()).hexdigest()


def _budgeted(options: argparse.Namespace, settings: Settings, pair: Pair) -> tuple[Settings, Budget]:
    """Settings with the budgets in force, as a host of the product has them: typed, else what the machine has free."""
    check_targets(options.vram)
    seen = machine.read_machine()
    devices = gpu_set(seen.devices, _policy(settings, pair.own))
    written = settings.target_vram_gb if pair.sets("targetVramGB") else None
    target = seed_budget(written, recommended_vram_gib(devices), 0.0)
    if settings.auto_vram:
        target = auto_vram_target(target, devices.free_bytes / GIB)
    written = settings.max_ram_gb if pair.sets("maxRamGB") else None
    ram = seed_budget(written, recommended_ram_gib(seen.memory), PLACEHOLDER_RAM_GIB)
    if options.ram is not None:
        ram = options.ram
    if options.vram is None:
        budget = machine_budget(devices, seen.devices, target, ram)
    else:
        budget = budget_of(options.vram, ram)
        target = to_gib(budget.target_bytes)
    return replace(settings, target_vram_gb=target, max_ram_gb=ram), budget


def _policy(settings: Settings, own: OwnSettings) -> DevicePolicy:
    return DevicePolicy(
        min_vram_gib=settings.min_gpu_vram_gb,
        shared_memory=settings.shared_memory,
        pool_integrated=settings.pool_integrated_gpu,
        multi_gpu=settings.multi_gpu,
        reserve_gib=_by_index(own.device_reserve_gb),
        preference={index: word for index, word in _by_index(own.device_preference).items() if word in RANKS},
    )


def _by_index(values: Mapping[str, Any]) -> dict[int, Any]:
    return {int(index): value for index, value in values.items() if index.isdigit() and len(index) < 4}


def existing_folder(path: str) -> str:
    """The whole path of a models folder. Raises `UsageError` where there is none."""
    if not os.path.isdir(path):
        problem = "is not a folder" if os.path.exists(path) else "does not exist"
        raise UsageError(f"models folder {shown(path)} {problem}")
    return os.path.abspath(path)


def _with_backends(settings: Settings, texts: Sequence[str]) -> Settings:
    """The executables of the options before those of the files, which they replace kind by kind."""
    named = backend_rows(texts, alone=False)
    kinds = {row.kind for row in named}
    others = (row for row in settings.backends if (kind := kind_of(row.kind)) is None or kind.name not in kinds)
    return with_registry(settings, (*named, *others))


def backend_rows(texts: Sequence[str], *, alone: bool = True) -> tuple[BackendEntry, ...]:
    """Registry rows of the given executables; of several for one kind the last counts.

    `alone`: llama-server comes first, named or not: without a pin it runs the chat models, whatever else can.
    """
    rows: dict[str, BackendEntry] = {}
    if texts and alone:
        rows["llama"] = BackendEntry(id="llama", kind="llama", path="llama-server", default=True)
    for text in texts:
        spelling, _, path = text.partition("=")
        kind = kind_of(spelling)
        if kind is None:
            known = ", ".join(kind.name for kind in KINDS)
            raise UsageError(f"--backend {shown(text)}: the kind must be one of {known}")
        if not path.strip():
            raise UsageError(f"--backend {shown(text)}: write KIND=PATH")
        if problem := unsafe_reason(path.strip()):
            raise UsageError(f"--backend {shown(text)}: {problem}")
        rows[kind.name] = BackendEntry(id=kind.name, kind=kind.name, path=path.strip(), default=True)
    return tuple(rows.values())
