"""Adapters of the area `sizing`: classic engine and policy; the exact operations are in `sizing_exact`."""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gpus_app.core import backend_probe, budget, device_listing, guard, runtimes, split
from gpus_app.core.gpu_set import DevicePolicy, GpuDevice, GpuSet, describe, gpu_set
from gpus_app.core.probes import amd, kfd, nvidia_smi, rocm_smi
from gpus_app.core.readings import DeviceReading, MemoryReading
from gpus_app.core.units import GIB, MIB, floor_gib
from models_app.core.catalog import Header
from models_app.core.planning import batch, checkpoints, classic_overheads, classic_placement, classic_window, rope
from models_app.core.planning.classic_kv import (
    KvLine,
    checkpoint_reserve_gib,
    default_kv_type,
    kv_line,
    round_ctx,
)
from models_app.core.planning.kv_types import element_bytes, valid_kv_pair

Given = dict[str, Any]
Answer = dict[str, Any]

_HEADER_FIELDS = set(Header.__dataclass_fields__)
_POLICY_KEYS = {
    "minGpuVramGB": "min_vram_gib",
    "sharedMemory": "shared_memory",
    "poolIntegratedGpu": "pool_integrated",
    "multiGpu": "multi_gpu",
}


def _only(given: Given, *known: str) -> None:
    unknown = set(given) - set(known) - {"engine"}
    if unknown:
        raise KeyError(f"unknown input fields: {', '.join(sorted(unknown))}")


def _header(meta: Given) -> Header:
    """Header facts under the names of headers.md; sizes come as GB."""
    facts = dict(meta)
    size_gb = facts.pop("file_size_gb", 0)
    unknown = set(facts) - _HEADER_FIELDS
    if unknown:
        raise KeyError(f"unknown header facts: {', '.join(sorted(unknown))}")
    tuples = {key: tuple(value) if isinstance(value, list) else value for key, value in facts.items()}
    return Header(**tuples, file_size_bytes=round(size_gb * GIB))


def _policy(settings: Given) -> DevicePolicy:
    return DevicePolicy(**{_POLICY_KEYS[key]: value for key, value in settings.items()})


def _readings(devices: list[Given]) -> list[DeviceReading]:
    readings = []
    taken = {device["id"] for device in devices if "id" in device}
    unused = (number for number in itertools.count() if number not in taken)
    for device in devices:
        _only(
            device,
            *("id", "name", "mem_total_mb", "mem_used_mb", "shared_total_mb", "shared_used_mb", "integrated", "sample"),
        )
        readings.append(
            DeviceReading(
                index=device["id"] if "id" in device else next(unused),
                name=device["name"],
                total_bytes=device["mem_total_mb"] * MIB,
                used_bytes=device["mem_used_mb"] * MIB,
                shared_total_bytes=device["shared_total_mb"] * MIB,
                shared_used_bytes=device["shared_used_mb"] * MIB,
                integrated=device.get("integrated"),
                sample=device.get("sample", 0),
            )
        )
    return readings


def _set(total_gb: list[float], free_gb: list[float], ids: list[int] | None = None) -> GpuSet:
    return GpuSet(
        tuple(
            GpuDevice(ids[position] if ids else position, "", False, False, total * GIB, free * GIB)  # not rounded
            for position, (total, free) in enumerate(zip(total_gb, free_gb, strict=True))
        )
    )


def _line(given: Given) -> KvLine:
    return KvLine(given["slope_gb"], given["const_gb"])


def _kv_cost(given: Given) -> Answer:
    _only(given, "meta", "kv_type")
    line = kv_line(_header(given["meta"]), given["kv_type"], given["kv_type"]) or KvLine()
    return {
        "slope_gb": line.slope_gib,
        "const_gb": line.const_gib,
        "global_layers": line.global_layers,
        "local_layers": line.local_layers,
        "ssm_layers": line.recurrent_layers,
    }


def _default_kv_type(given: Given) -> Answer:
    _only(given, "meta", "target_gb", "overhead_gb", "settings")
    _only(given["settings"], "denseMinCtx", "kvQuant")
    return {
        "kv_type": default_kv_type(
            _header(given["meta"]),
            given["target_gb"],
            given["overhead_gb"],
            given["settings"].get("denseMinCtx", 0),
            given["settings"].get("kvQuant", ""),
        )
    }


def _checkpoint_defaults(given: Given) -> Answer:
    _only(given, "recurrent", "const_gb")
    found = checkpoints.checkpoint_defaults(given["recurrent"], given["const_gb"] > 0)
    return {"count": found.count, "spacing": found.spacing}


def _checkpoint_reserve(given: Given) -> Answer:
    _only(given, "slope_gb", "const_gb", "recurrent", "count", "ctx_ceiling")
    reserve = checkpoint_reserve_gib(_line(given), given["recurrent"], given["count"], given["ctx_ceiling"])
    return {"reserve_gb": reserve}


def _compute_buffer(given: Given) -> Answer:
    _only(given, "vocab", "embd", "ub", "factor", "runtime")
    size = classic_overheads.compute_gib(given["vocab"], given["embd"], given["ub"], given["factor"], given["runtime"])
    return {"compute_gb": size}


def _mmproj_charge(given: Given) -> Answer:
    _only(given, "projector", "in_ram", "vision_overhead_gb")
    projector = given["projector"]
    if projector is None or given["in_ram"]:
        return {"charge_gb": 0}
    _only(projector, "file_gb", "image_size", "patch_size", "embd", "ffn", "heads")
    header = Header(
        vision_image_size=projector.get("image_size", 0),
        vision_patch_size=projector.get("patch_size", 0),
        vision_embd=projector.get("embd", 0),
        vision_ffn=projector.get("ffn", 0),
        vision_heads=projector.get("heads", 0),
    )
    return {
        "charge_gb": projector["file_gb"] + classic_overheads.projector_clip_gib(header, given["vision_overhead_gb"])
    }


def _draft_overhead(given: Given) -> Answer:
    _only(given, "spec", "draft_size_gb", "draft_kind")
    return {
        "overhead_gb": classic_overheads.draft_overhead_gib(given["spec"], given["draft_size_gb"], given["draft_kind"])
    }


def _mtp_draft_slope(given: Given) -> Answer:
    _only(given, "meta", "kv_k", "kv_v", "spec", "draft_size_gb")
    header = _header(given["meta"])
    slope = classic_overheads.mtp_slope_bytes(
        header, given["kv_k"], given["kv_v"], given["spec"], given["draft_size_gb"]
    )
    return {"bytes_per_token": slope}


def _rope_ceiling(given: Given) -> Answer:
    _only(given, "scaling", "requested", "native")
    return {"ceiling": rope.rope_ceiling(given["scaling"], given["requested"], given["native"])}


def _rope_factor(given: Given) -> Answer:
    _only(given, "ctx", "native")
    return {"factor": rope.rope_factor(given["ctx"], given["native"])}


def _rope_scale(given: Given) -> Answer:
    _only(given, "scaling", "ctx", "native", "explicit")
    return {"scale": rope.rope_scale(given["scaling"], given["ctx"], given["native"], given["explicit"])}


def _dense_ctx(given: Given) -> Answer:
    _only(
        given,
        *("model_max", "slope_gb", "const_gb", "file_gb", "target_gb", "overhead_gb", "ladder", "min_ctx"),
        "allow_offload",
    )
    found = classic_window.dense_window(
        given["model_max"],
        _line(given),
        given["file_gb"],
        given["target_gb"],
        given["overhead_gb"],
        given["ladder"],
        given["min_ctx"],
        given["allow_offload"],
    )
    return {"ctx": found.ctx_tokens, "note": found.note}


def _load_plan(given: Given) -> Answer:
    _only(given, "meta", "target_gb", "max_ram_gb", "kv_reserve_gb", "overhead_gb")
    plan = classic_placement.load_plan(
        _header(given["meta"]),
        given["target_gb"],
        given["max_ram_gb"],
        given.get("kv_reserve_gb"),
        given.get("overhead_gb"),
    )
    return {
        "ngl": plan.gpu_layers,
        "n_cpu_moe": plan.cpu_moe_layers,
        "est_vram_gb": plan.vram_gib,
        "est_ram_gb": plan.ram_gib,
        "ram_exceeded": plan.ram_exceeded,
    }


def _force_low_active_moe(given: Given) -> Answer:
    _only(given, "meta", "target_gb", "overhead_gb", "kv_reserve_gb")
    layers, in_ram = classic_placement.force_low_active_moe(
        _header(given["meta"]), given["target_gb"], given["kv_reserve_gb"], given["overhead_gb"]
    )
    return {"ngl": layers, "n_cpu_moe": in_ram}


def _forced_offload(given: Given) -> Answer:
    _only(given, "meta", "cpu_offload")
    header = _header(given["meta"])
    layers, in_ram = classic_placement.forced_offload(header.block_count, header.is_moe, given["cpu_offload"])
    return {"ngl": layers, "n_cpu_moe": in_ram}


def _seed_budgets(given: Given) -> Answer:
    _only(given, "probe", "file", "sidecar")
    written = {**given["file"], **given["sidecar"]}
    probe = given["probe"]
    return {
        "targetVramGB": budget.seed_budget(
            written.get("targetVramGB"), probe["vram_gb"] or None, budget.PLACEHOLDER_VRAM_GIB
        ),
        "maxRamGB": budget.seed_budget(written.get("maxRamGB"), probe["ram_gb"] or None, budget.PLACEHOLDER_RAM_GIB),
    }


def _recommended_ram(given: Given) -> Answer:
    _only(given, "total_gb", "available_gb", "used_gb")
    # Not rounded to bytes: a figure like 20.3 GiB would lie a little below itself and be cut to 20.2.
    memory = MemoryReading(given["total_gb"] * GIB, given["available_gb"] * GIB, given["used_gb"] * GIB)
    return {"ram_gb": budget.recommended_ram_gib(memory)}


def _gpu_set(given: Given) -> Answer:
    _only(given, "devices", "settings")
    found = gpu_set(_readings(given["devices"]), _policy(given["settings"]))
    devices = [
        {
            "id": device.index,
            "name": device.name,
            "integrated": device.integrated,
            "total_gb": device.total_bytes / GIB,
            "free_gb": device.free_bytes / GIB,
            "shared_total_gb": device.shared_total_bytes / GIB,
            "shared_free_gb": device.shared_free_bytes / GIB,
        }
        for device in found.devices
    ]
    return {
        "devices": devices,
        "free_gb": guard.free_gib(found),
        "total_gb": found.total_bytes / GIB,
        "main_index": found.live_main,
    }


def _gpu_report(given: Given) -> Answer:
    _only(given, "devices", "settings")
    return {"text": describe(_readings(given["devices"]), _policy(given["settings"]))}


def _live_split(given: Given) -> Answer:
    _only(given, "runtime", "free_gb", "main", "main_fixed_gb")
    ratio = split.split_ratio(
        given["free_gb"], given["main"], given["main_fixed_gb"], runtimes.runtime_gib(given["runtime"])
    )
    return {"split": list(ratio) or None}


def _plan_split(given: Given) -> Answer:
    _only(given, "runtime", "total_gb", "free_gb", "main_fixed_gb")
    devices = _set(given["total_gb"], given["free_gb"])
    fixed, runtime = given["main_fixed_gb"], given["runtime"]
    return {
        "plan_split": list(split.plan_split(devices, fixed, runtime)),
        "plan_main": devices.plan_main,
        "live_main": devices.live_main,
        "live_split": list(split.live_split(devices, fixed, runtime)) or None,
    }


def _match_devices(given: Given) -> Answer:
    _only(given, "set", "backend")
    ids = device_listing.match_devices(
        [(device["name"], round(device["total_gb"] * GIB)) for device in given["set"]],
        [
            device_listing.ListedDevice(device["id"], device["name"], round(device["total_gb"] * GIB))
            for device in given["backend"]
        ],
    )
    return {"ids": list(ids) or None, "distinct": len(set(ids))}


def _parse_device_list(given: Given) -> Answer:
    _only(given, "listing")
    found = device_listing.parse_listing(given["listing"])
    return {
        "devices": [{"id": item.id, "name": item.name, "total_gb": item.total_bytes / GIB} for item in found],
    }


def _probe_budget(given: Given) -> Answer:
    _only(given, "hanging_probes")
    allowance = backend_probe.ProbeAllowance()
    granted = []
    for _ in range(given["hanging_probes"]):
        granted.append(allowance.grant())
        allowance.spend(granted[-1])
    return {"allowed_seconds": granted}


def _probe_cache(given: Given) -> Answer:
    _only(given, "steps")
    runs: list[str] = []
    cache = backend_probe.ListingCache(lambda path, _seconds: runs.append(path), lambda: 0.0)
    mtime = 1
    for step in given["steps"]:
        if step == "touch":
            mtime += 1
        elif step == "probe":
            cache.listing(("server", 1, mtime))
        else:
            raise ValueError(step)
    return {"probes_run": len(runs)}


def _spawn_guard(given: Given) -> Answer:
    _only(given, "argv", "free_gb")
    return {"argv": " ".join(guard.guard_cheap_cases(given["argv"].split(), given["free_gb"]))}


def _gpu_fraction(given: Given) -> Answer:
    _only(given, "block_count", "ngl", "n_cpu_moe", "expert_share")
    if "expert_share" not in given:
        return {"fraction": guard.gpu_fraction(given["block_count"], given["ngl"])}
    return {
        "fraction": guard.moe_gpu_fraction(given["block_count"], given["n_cpu_moe"], given["expert_share"]),
    }


def _refuse_launch(given: Given) -> Answer:
    _only(given, "baked_fraction", "live_fraction", "settings")
    _only(given["settings"], "minGpuFraction")
    least = given["settings"].get("minGpuFraction", 0.5)
    return {"refused": guard.refuse_launch(given["baked_fraction"], given["live_fraction"], least)}


def _retune_split(given: Given) -> Answer:
    _only(given, "argv", "runtime", "ids", "total_gb", "free_gb", "main_fixed_gb", "probe_failed")
    argv = given["argv"].split()
    devices = None
    if given.get("free_gb") is not None:
        devices = _set(given.get("total_gb") or given["free_gb"], given["free_gb"], given.get("ids"))
    names: list[str] = []
    if "--device" in argv and not given.get("probe_failed"):
        names = sorted(argv[argv.index("--device") + 1].split(","))
    tuned = guard.retune_split(
        argv,
        devices,
        main_fixed_gib=given.get("main_fixed_gb", 0),
        runtime=given["runtime"],
        backend_ids=names,
    )
    main = int(tuned[tuned.index("--main-gpu") + 1]) if "--main-gpu" in tuned else None
    return {"argv": " ".join(tuned), "main_gpu": main}


def _nvidia_smi_processes(given: Given) -> Answer:
    _only(given, "lines")
    found = nvidia_smi.processes(given["lines"])
    return {
        "processes": [{"pid": item.pid, "mem_mb": item.used_bytes // MIB, "name": item.name} for item in found],
    }


def _rocm_smi_card(given: Given) -> Answer:
    _only(given, "vram_total_b", "vram_used_b", "gtt_total_b", "gtt_used_b")
    labels = {
        "vram_total_b": "VRAM Total Memory (B)",
        "vram_used_b": "VRAM Total Used Memory (B)",
        "gtt_total_b": "GTT Total Memory (B)",
        "gtt_used_b": "GTT Total Used Memory (B)",
    }
    table = [("device", *labels.values()), ("card0", *(str(given[key]) for key in labels))]
    found = rocm_smi.card_reading(0, dict(zip(*table, strict=True)))
    return {
        "mem_total_mb": found.total_bytes // MIB,
        "mem_used_mb": found.used_bytes // MIB,
        "shared_total_mb": found.shared_total_bytes // MIB,
        "shared_used_mb": found.shared_used_bytes // MIB,
    }


def _sysfs_reading(given: Given) -> Answer:
    _only(given, "vram_total_gib", "vram_used_gib", "gtt_total_gib", "gtt_used_gib", "integrated")
    total, used, shared, shared_used = (
        round(given[key] * GIB) for key in ("vram_total_gib", "vram_used_gib", "gtt_total_gib", "gtt_used_gib")
    )
    return {
        "mem_total_mb": total // MIB,
        "shared_total_mb": shared // MIB,
        "mem_util_pct": amd.memory_utilisation_percent(total, used, shared, shared_used, given["integrated"]),
    }


def _kfd_node(given: Given) -> Answer:
    _only(given, "nodes", "node")
    apu = kfd.is_apu(given["nodes"].get(str(given["node"]), {}))
    return {"apu": apu, "known": apu is not None}


def _simple(field: str, rule: Callable[..., Any], *names: str) -> Callable[[Given], Answer]:
    """An operation whose input fields are the arguments of one function."""

    def run(given: Given) -> Answer:
        _only(given, *names)
        return {field: rule(*(given[name] for name in names))}

    return run


POLICY_AND_CLASSIC: dict[str, Callable[[Given], Answer]] = {
    "round_ctx": _simple("ctx", round_ctx, "ctx"),
    "floor_gb": _simple("value", floor_gib, "value"),
    "kv_element_bytes": _simple("bytes", element_bytes, "kv_type"),
    "kv_cost": _kv_cost,
    "max_ctx": _simple(
        "ctx", lambda size, slope, const: KvLine(slope, const).max_ctx(size), "budget_gb", "slope_gb", "const_gb"
    ),
    "valid_kv_pair": _simple("result", valid_kv_pair, "k", "v"),
    "default_kv_type": _default_kv_type,
    "checkpoint_defaults": _checkpoint_defaults,
    "checkpoint_reserve": _checkpoint_reserve,
    "compute_buffer": _compute_buffer,
    "effective_batch": _simple("b", batch.effective_batch, "ub", "ctx"),
    "mmproj_charge": _mmproj_charge,
    "draft_overhead": _draft_overhead,
    "mtp_draft_slope": _mtp_draft_slope,
    "rope_ceiling": _rope_ceiling,
    "rope_factor": _rope_factor,
    "rope_scale": _rope_scale,
    "dense_ctx": _dense_ctx,
    "expert_share": _simple("share", classic_placement.expert_share, "arch", "header_share"),
    "load_plan": _load_plan,
    "force_low_active_moe": _force_low_active_moe,
    "forced_offload": _forced_offload,
    "profile_target": _simple("target_gb", classic_overheads.profile_target_gib, "target_gb", "overhead_gb", "long"),
    "recommended_ram": _recommended_ram,
    "seed_budgets": _seed_budgets,
    "auto_vram_target": _simple("target_gb", budget.auto_vram_target, "target_gb", "mark_gb"),
    "free_high_water": _simple("mark", lambda samples: list(budget.high_water(samples)), "samples"),
    "gpu_set": _gpu_set,
    "gpu_report": _gpu_report,
    "live_split": _live_split,
    "plan_split": _plan_split,
    "extra_device_overhead": _simple(
        "extra_gb", lambda runtime, devices: split.extra_device_gib(devices, runtime), "runtime", "devices"
    ),
    "main_last_order": _simple(
        "order", lambda ids, main: list(split.main_last_order(ids, main)) or None, "ids", "main"
    ),
    "permute_split": _simple("split", lambda ratio, order: list(split.permute_split(ratio, order)), "split", "order"),
    "format_split": _simple("text", split.format_split, "split"),
    "parse_device_list": _parse_device_list,
    "match_devices": _match_devices,
    "probe_budget": _probe_budget,
    "probe_cache": _probe_cache,
    "spawn_guard": _spawn_guard,
    "live_budget": _simple("budget_gb", guard.live_budget_gib, "free_gb", "target_gb"),
    "gpu_fraction": _gpu_fraction,
    "refuse_launch": _refuse_launch,
    "retune_split": _retune_split,
    "watchdog_ceiling": _simple("ceiling_gb", guard.watchdog_ceiling_gib, "budget_gb", "excess_gb", "reserve_gb"),
    "rocm_from_path": _simple("verdict", runtimes.rocm_verdict, "exe"),
    "nvidia_smi_rows": _simple(
        "rows_per_snapshot", lambda lines: [len(rows) for rows in nvidia_smi.snapshots(lines)], "lines"
    ),
    "nvidia_smi_processes": _nvidia_smi_processes,
    "rocm_smi_card": _rocm_smi_card,
    "sysfs_reading": _sysfs_reading,
    "integrated_shared_used": _simple(
        "shared_used_mb", kfd.integrated_shared_used, "gtt_used_mb", "kfd_proc_mb", "integrated"
    ),
    "kfd_node": _kfd_node,
    "pci_to_kfd_location": _simple("location", kfd.location_of, "pci"),
    "fdinfo_bytes": _simple("bytes", kfd.fdinfo_bytes, "value"),
}


def _exact() -> dict[str, Callable[[Given], Answer]]:
    if not (Path(__file__).parent / "sizing_exact.py").is_file():
        return {}
    exact: dict[str, Callable[[Given], Answer]] = importlib.import_module("tests.adapters.sizing_exact").EXACT
    return exact


ADAPTERS = {**POLICY_AND_CLASSIC, **_exact()}
