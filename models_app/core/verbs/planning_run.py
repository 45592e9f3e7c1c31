"""The work of `plan`: budget, rows, plans, and how they are printed."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from gpus_app.core.budget import Budget, budget_of, free_budget
from gpus_app.core.gpu_set import gpu_set
from gpus_app.core.probes import machine, memory
from gpus_app.core.runtimes import runtime_of
from models_app.core.catalog import Header, MemoryUse, Placement, Plan, Row
from models_app.core.classes import classify
from models_app.core.discovery.identity import gguf_identity
from models_app.core.errors import HeaderError
from models_app.core.planning.projection import project
from models_app.core.planning.table import model_table
from models_app.core.plans import plan_row
from models_app.core.readers import read_header
from models_app.core.readers.cache import HeaderCache
from models_app.core.settings import Override, Settings
from models_app.core.units import GIB, to_gib
from models_app.core.verbs.answers import FAILED, OK, failure, shown, write_json
from models_app.core.verbs.environment import Environment
from models_app.core.verbs.knobs import launch_of
from models_app.core.verbs.projections import EMBEDDING
from models_app.core.verbs.verification import Verifier

_FLAGS = {
    "ctx": "-c",
    "ub": "-ub",
    "b": "-b",
    "ctk": "-ctk",
    "ctv": "-ctv",
    "parallel": "--parallel",
    "ngl": "-ngl",
    "n_cpu_moe": "--n-cpu-moe",
    "fa": "-fa",
}
"""Knobs that are pinned as a person would pin them: in the launch text."""


_VERDICTS = {"spills": "spills to CPU", "over": "does not fit", "unknown": "cannot judge"}
"""Verdict -> the words that pages have for it, where they differ."""


def budget_for(targets_gib: list[float] | None, ram_gib: float | None) -> Budget:
    """What was asked for; what was not is read from the machine."""
    if targets_gib is not None:
        return budget_of(targets_gib, _available_gib() if ram_gib is None else ram_gib)
    seen = machine.read_machine()
    budget = free_budget(gpu_set(seen.devices), seen.memory, runtime=runtime_of(seen.devices))
    return budget if ram_gib is None else budget.with_ram(ram_gib)


def _available_gib() -> float:
    seen = memory.read()
    return seen.free_bytes / GIB if seen is not None else 0.0


def override_of(knobs: Mapping[str, Any]) -> Override:
    """The pins as a launch text, so that they plan and launch as such a text does."""
    words = [f"{flag} {knobs[knob]}" for knob, flag in _FLAGS.items() if knob in knobs]
    if "kv_unified" in knobs and not knobs["kv_unified"]:
        words.append("--no-kv-unified")
    if "tensor_split" in knobs:
        words.append(f"--tensor-split {','.join(f'{share:g}' for share in knobs['tensor_split'])}")
    return Override(custom_args=" ".join(words))


def run_files(options: argparse.Namespace, knobs: Mapping[str, Any], budget: Budget, environment: Environment) -> int:
    """One plan for each file. A file that fails gets an error in its place and the rest goes on."""
    cache = (
        None if options.no_cache else HeaderCache(environment.header_cache, fold_case=environment.platform != "linux")
    )
    override, outputs = override_of(knobs), str(knobs.get("outputs", "server"))
    verifier = Verifier(options, environment) if options.verify is not None else None
    worst = OK
    try:
        for number, path in enumerate(options.files, 1):
            environment.note(f"{number}/{len(options.files)} {shown(path)}")
            try:
                header = read_header(path, cache=cache)
            except HeaderError as error:
                worst = FAILED
                _write_failure(path, error, options.json, environment)
                continue
            row = row_of(path, header)
            plan = plan_row(row, header, settings=Settings(), override=override, budget=budget, outputs=outputs)[0]
            plan = as_projected(plan, header, knobs)
            check = verifier.answer(header, plan) if verifier else None
            worst = FAILED if check and not check.done else worst
            environment.clear_note()
            if options.json:
                write_json(
                    environment.stdout, answer_of(path, header, plan) | ({"verify": check.json} if check else {})
                )
            else:
                print(
                    "\n".join(report(path, plan, header.warnings) + (check.lines if check else [])),
                    file=environment.stdout,
                )
    finally:
        if cache is not None:
            cache.close()
    return worst


def as_projected(plan: Plan, header: Header, knobs: Mapping[str, Any]) -> Plan:
    """The plan with the compute buffers that `project` gives for the same launch: llama.cpp's own work done again.

    The search uses formulas, which are quicker and differ by some MiB at most.
    """
    placement, formulas = plan.placement, plan.projection
    if placement is None or formulas is None or formulas.engine != "exact" or placement.kv_in_ram:
        return plan
    split = {"tensor_split": placement.tensor_split} if placement.tensor_split else {}
    kept = {name: knobs[name] for name in ("fa", "kv_unified", "outputs") if name in knobs}
    chosen = _placement(placement) | {
        "ctx": placement.ctx_tokens * placement.slots,
        "devices": len(formulas.devices),
        "tensor_split": None,
    }
    launch = replace(launch_of(chosen | split | kept), embeddings=plan.model_class == EMBEDDING)
    played = project(model_table(header), launch, replays=True)
    pairs = zip((*played.devices, played.host), (*formulas.devices, formulas.host), strict=True)
    # Something that `project` cannot be asked for would show in weights or caches.
    same = all((one.model_bytes, one.context_bytes) == (two.model_bytes, two.context_bytes) for one, two in pairs)
    return replace(plan, projection=replace(played, warnings=formulas.warnings)) if same else plan


def _write_failure(path: str, error: HeaderError, as_json: bool, environment: Environment) -> None:
    environment.clear_note()
    answer = failure(path, error)
    if as_json:
        write_json(environment.stdout, answer)
    else:
        print(f"{shown(path)}: {shown(answer['error']['message'])}", file=environment.stderr)


def row_of(path: str, header: Header) -> Row:
    """The file as the scan would list it, without companions."""
    identity = gguf_identity(path)
    name = os.path.basename(path.rstrip("/"))
    classification = classify(name, header)
    return Row(
        id=identity.id,
        base_id=identity.base_id,
        quant=identity.quant,
        full_path=header.path or path,
        file_name=name,
        size_bytes=header.file_size_bytes,
        model_class=classification.model_class,
        class_reason=classification.reason,
        is_hf=header.format == "hf",
    )


def answer_of(path: str, header: Header, plan: Plan) -> dict[str, Any]:
    """One line of `--json`. What is not planned has no placement, and a reason."""
    projection, planned = plan.projection, plan.placement is not None or bool(plan.engine)
    return {
        "file": path,
        "class": plan.model_class,
        "engine": projection.engine if projection else None,
        "devices": [{"name": use.name, **_bytes_of(use)} for use in projection.devices] if projection else [],
        "host": _bytes_of(projection.host) if projection else None,
        "placement": _placement(plan.placement) if plan.placement else None,
        "est_vram_gib": to_gib(plan.est_vram_bytes) if planned else None,
        "est_ram_gib": to_gib(plan.est_ram_bytes) if planned else None,
        "argv": list(plan.argv),
        "reasons": [
            *(reason.text for reason in plan.reasons),
            *plan.notes,
            *([plan.skip_reason] if plan.skip_reason else []),
        ],
        "warnings": [*plan.warnings, *header.warnings],
        "verdict": plan.verdict,
        "target_gib": to_gib(plan.target_bytes),
        "terms": [
            {"key": term.key, "device_bytes": list(term.device_bytes), "ram_bytes": term.ram_bytes, "how": term.how}
            for term in plan.terms
        ],
        "suggestions": list(plan.suggestions),
    }


def _placement(placement: Placement) -> dict[str, Any]:
    return {
        "ctx": placement.ctx_tokens,
        "ngl": placement.gpu_layers,
        "n_cpu_moe": placement.cpu_moe_layers,
        "ctk": placement.type_k,
        "ctv": placement.type_v,
        "ub": placement.ubatch,
        "b": placement.batch,
        "parallel": placement.slots,
        "tensor_split": list(placement.tensor_split),
    }


def _bytes_of(use: MemoryUse) -> dict[str, int]:
    return {
        "model_bytes": use.model_bytes,
        "context_bytes": use.context_bytes,
        "compute_bytes": use.compute_bytes,
    }


def report(path: str, plan: Plan, about_file: Sequence[str] = ()) -> list[str]:
    """A plan for people: verdict, why, memory, command. `about_file` are the warnings of the header."""
    if plan.skip_reason:
        return [f"{shown(path)}: {shown(plan.skip_reason)}"]
    lines = [f"{shown(path)}: {', '.join([_VERDICTS.get(plan.verdict, plan.verdict), *_totals(plan)])}"]
    lines += [f"  {text}" for text in (*(reason.text for reason in plan.reasons), *plan.notes)]
    lines += ["", *_memory_table(plan), ""] if plan.terms else [""]
    lines += [f"  try: {text}" for text in plan.suggestions]
    lines += [f"  warning: {shown(text)}" for text in (*plan.warnings, *about_file)]
    return [*lines, f"  {shown(' '.join(plan.lines))}", ""]


def _totals(plan: Plan) -> list[str]:
    """What is said of memory in the first line; nothing of a plan that nobody can judge."""
    if not plan.terms:
        return []
    vram = f"VRAM {to_gib(plan.est_vram_bytes):.2f} of {to_gib(plan.target_bytes):.2f} GiB"
    return [*([vram] if plan.target_bytes else []), f"RAM {to_gib(plan.est_ram_bytes):.2f} GiB"]


def _memory_table(plan: Plan) -> list[str]:
    if plan.projection is not None:
        devices = [use.name for use in plan.projection.devices]
    else:
        devices = ["GPU"] if any(term.device_bytes for term in plan.terms) else []
    lines = [f"  {'GiB':<20}" + "".join(f"{name:>9}" for name in [*devices, "RAM"])]
    totals = [0] * (len(devices) + 1)
    for term in plan.terms:
        sizes = [*(term.device_bytes or (0,) * len(devices)), term.ram_bytes]
        lines.append(f"  {term.label:<20}" + "".join(f"{size / GIB:9.2f}" for size in sizes))
        totals = [total + size for total, size in zip(totals, sizes, strict=True)]
    return [*lines, f"  {'Total':<20}" + "".join(f"{total / GIB:9.2f}" for total in totals)]
