"""Adapters of the area `launch`."""

from __future__ import annotations

from typing import Any

from models_app.core.catalog import Placement
from models_app.core.errors import LaunchError
from models_app.core.launch import help as help_text
from models_app.core.launch import numbers, ownership, paths, pins, sd, stored, tokens, validate
from models_app.core.launch.compose import CUSTOM, GENERATED, REPLACED, compose
from models_app.core.launch.llama import llama_command
from models_app.core.launch.llama_flags import LLAMA
from models_app.core.launch.lora import lora_lines
from models_app.core.launch.profile import LaunchProfile
from models_app.core.launch.samplers import sampler_lines
from models_app.core.launch.sd_flags import SD
from models_app.core.planning import batch, drafters
from models_app.core.planning.checkpoints import resolve_checkpoints
from models_app.core.planning.classic_kv import kv_line
from models_app.core.planning.kv_types import resolve_kv_pair
from models_app.core.settings import record_to_mapping
from tests.adapters import given as read
from tests.adapters.given import Answer, Given, keywords

TABLES = {"llama": LLAMA, "sd": SD}


def llama_argv(
    settings: Given, meta: Given, row: Given, profile: Given, placement: Given, override: Given | None
) -> Answer:
    meta = dict(meta)
    kv_const_gb = meta.pop("kv_const_gb", None)
    header, fleet, own, model = read.header(meta), read.settings(settings), read.override(override), read.row(row)
    given = _LlamaInput(**profile, **placement)
    slots = batch.slot_count(own.parallel)
    long = batch.is_long(given.ctx, given.is_long)
    ubatch = batch.effective_ubatch(header.is_moe, long, fleet.target_vram_gb, own.ub)
    if kv_const_gb is None:
        line = kv_line(header, given.kv_k, given.kv_v)
        kv_const_gb = line.const_gib if line else 0
    command = llama_command(
        fleet,
        header,
        model,
        LaunchProfile(
            spec=drafters.effective_spec(_has_mtp(header), model.draft_kind, given.spec, own.spec),
            checkpoints=resolve_checkpoints(
                header.full_attn_interval > 0,
                kv_const_gb > 0,
                given.ctx_checkpoints,
                given.checkpoint_min_step,
                own.checkpoint_min_step,
            ),
            vision=given.vision,
            projector_in_ram=given.cpu_mmproj,
            reasoning_fmt=given.reasoning_fmt,
            tensor_split=tuple(given.tensor_split),
            main_gpu=given.main_gpu,
            device_ids=tuple(given.device_ids),
        ),
        Placement(
            ctx_tokens=given.ctx,
            gpu_layers=given.ngl,
            cpu_moe_layers=given.n_cpu_moe,
            type_k=given.kv_k,
            type_v=given.kv_v,
            ubatch=ubatch,
            batch=batch.effective_batch(ubatch, given.ctx),
            slots=slots,
            kv_in_ram=given.kv_in_ram,
        ),
        own,
    )
    return _command(command.lines)


class _LlamaInput:
    """The fields of `profile` and `placement`, defaults filled in."""

    def __init__(
        self,
        *,
        ctx: int,
        ngl: int,
        n_cpu_moe: int,
        kv_k: str,
        kv_v: str,
        kv_in_ram: bool,
        vision: bool = False,
        cpu_mmproj: bool = False,
        is_long: bool = False,
        spec: str = "",
        reasoning_fmt: str = "",
        ctx_checkpoints: int | None = None,
        checkpoint_min_step: int = 0,
        tensor_split: list[str] | tuple[str, ...] = (),
        main_gpu: int = 0,
        device_ids: list[str] | tuple[str, ...] = (),
    ) -> None:
        self.__dict__.update({key: value for key, value in locals().items() if key != "self"})

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)


def _has_mtp(header: Any) -> bool:
    return header.is_mtp or header.nextn_layers > 0


def _command(lines: Any) -> Answer:
    """The command; the comparison looks for its fragments in the lines."""
    return {"lines": list(lines)}


def sd_argv(
    settings: Given,
    row: Given,
    override: Given | None,
    components: Given,
    video: bool = False,
    temporal: bool = False,
    defaults: Given | None = None,
    full_checkpoint: bool = False,
) -> Answer:
    fields = dict(row)
    size_gb, component_gb = fields.pop("size_gb"), fields.pop("component_gb", {})
    launch = sd.DiffusionLaunch(
        read.settings(settings),
        read.row(fields),
        read.override(override),
        size_gb,
        components=components,
        component_gib=component_gb,
        defaults=sd.Generation(**(defaults or {})),
        video=video,
        temporal_tiling=temporal,
        full_checkpoint=full_checkpoint,
    )
    lines = sd.sd_command(launch).lines
    return {"max_vram": launch.max_vram_gib, "offload": launch.offloads, **_command(lines)}


def offload_decision(size_gb: float, budget_gb: float, overhead_gb: float, override: Given) -> Answer:
    return {"offload": sd.offload_decision(size_gb, budget_gb, overhead_gb, read.override(override))}


def graph_budget(
    budget_gb: float, size_gb: float, component_gb: Given, offload: bool, override: Given | None = None
) -> Answer:
    return {"max_vram": sd.graph_budget(budget_gb, size_gb, component_gb, offload, read.override(override))}


def effective_parallel(parallel: int | None, variant: int | None = None) -> Answer:
    return {"slots": batch.slot_count(variant, parallel)}


def effective_ub(meta: Given, profile: Given, override: Given, ctx: int, budget_gb: float) -> Answer:
    long, own = _ub_profile(**profile)
    pinned = read.override(override).ub
    is_long = batch.is_long(ctx, long)
    return {"ub": batch.effective_ubatch(read.header(meta).is_moe, is_long, budget_gb, pinned, own)}


def _ub_profile(is_long: bool = False, ub: int = 0) -> tuple[bool, int]:
    return is_long, ub


def effective_spec(meta: Given, override: Given, draft_kind: str) -> Answer:
    header = read.header(meta)
    return {"spec": drafters.effective_spec(_has_mtp(header), draft_kind, read.override(override).spec)}


def kv_pair(k: str, v: str, default_k: str, default_v: str) -> Answer:
    return {"k": resolve_kv_pair(k, v, default_k).k, "v": resolve_kv_pair(k, v, default_v).v}


def samplers(architecture: str, override: Given | None) -> Answer:
    return {"lines": sampler_lines(architecture, read.override(override))}


def format_float(value: float) -> Answer:
    return {"text": numbers.format_float(value)}


def cmd_path(path: str) -> Answer:
    return {"text": paths.quoted_path(path)}


def image_arg(path: str) -> Answer:
    return {"text": paths.argument_path(path)}


def lora_path(dir: str, path: str) -> Answer:  # noqa: A002
    return {"path": paths.join_lora(dir, path)}


def llm_lora_dir(settings: Given, model_path: str) -> Answer:
    return {"dir": paths.llm_lora_dir(read.settings(settings), model_path)}


def sd_lora_dir(settings: Given, override_dir: str, category: str, model_path: str) -> Answer:
    return {"dir": paths.diffusion_lora_dir(read.settings(settings), override_dir, category, model_path)}


def loras(settings: Given, override: Given | None, model_path: str) -> Answer:
    return {"lines": lora_lines(read.settings(settings), read.override(override), model_path)}


def lookup_flag(table: str, spelling: str) -> Answer:
    row = TABLES[table].lookup(spelling)
    if row is None:
        return {"known": False}
    return {
        "known": True,
        "canonical": row.canonical,
        "knob": row.knob,
        "values": row.values,
        "additive": row.additive,
    }


def split_flag_token(token: str) -> Answer:
    return tokens.split_flag_token(token)._asdict()


def split_command(text: str, rules: str) -> Answer:
    try:
        return {"argv": tokens.split_command(text, rules)}
    except LaunchError as error:
        return {"error": str(error)}


def owned_knobs(table: str, tokens: list[str]) -> Answer:
    return {"owned": sorted(ownership.owned_knobs(TABLES[table], tokens))}


def custom_text(override: Given | None) -> Answer:
    return {"text": ownership.custom_text(None if override is None else read.override(override))}


def clear_owned_fields(override: Given, owned: list[str]) -> Answer:
    result, cleared = ownership.clear_owned(read.override(override), owned)
    return {"override": record_to_mapping(result, sparse=False), "cleared": sorted(cleared)}


def clear_owned_from_text(override: Given) -> Answer:
    return {"override": record_to_mapping(ownership.clear_owned_by_text(read.override(override)), sparse=False)}


def compose_text(table: str, lines: list[str], custom: str) -> Answer:
    result = compose(TABLES[table], lines, custom)
    return {
        "lines": list(result.lines),
        "effective": result.effective,
        "owned": sorted(result.owned),
        "suppressed": list(result.replaced),
        "tokens": [
            {
                "text": token.text,
                "source": CUSTOM if token.source == CUSTOM else GENERATED,
                "knob": token.knob,
                "suppressed": token.source == REPLACED,
            }
            for token in result.tokens
        ],
        "error": result.error,
    }


PIN_KEYS = {
    "ctx": "ctx",
    "ngl": "ngl",
    "n_cpu_moe": "nCpuMoe",
    "parallel": "parallel",
    "ub": "ub",
    "ctx_checkpoints": "ctxCheckpoints",
    "checkpoint_min_step": "checkpointMinStep",
    "kv_k": "kvK",
    "kv_v": "kvV",
    "rope_scaling": "ropeScaling",
    "kv_in_ram": "kvInRam",
    "spec": "spec",
}


def read_pins(text: str) -> Answer:
    found = pins.read_pins(text)
    values = {key: getattr(found, name) for name, key in PIN_KEYS.items()}
    return {"pins": {key: value for key, value in values.items() if value not in (None, "") and value is not False}}


def pins_profile(text: str, meta: Given, slots: int) -> Answer:
    result = pins.pin_profile(pins.read_pins(text), read.header(meta), slots)
    return {
        "ctx": result.ctx,
        "ctx_exact": result.ctx_exact,
        "is_long": result.is_long,
        "cpu_offload": result.cpu_offload,
        "cpu_offload_set": result.cpu_offload is not None,
        "kv_k": result.kv_k,
        "ub": result.ub,
        "ctx_checkpoints": result.ctx_checkpoints,
        "checkpoint_min_step": result.checkpoint_min_step,
    }


def pins_variant(text: str, variant: Given) -> Answer:
    result = pins.pin_variant(read.variant(variant), pins.read_pins(text))
    return {"variant": record_to_mapping(result, sparse=False)}


def pins_estimate(text: str, meta: Given, form: Given) -> Answer:
    pinned, profile = pins.pin_estimate(read.override(form), text, read.header(meta))
    return {
        "ctx": pinned.ctx,
        "ctx_exact": profile.ctx_exact,
        "parallel": batch.slot_count(pinned.parallel),
        "kvK": pinned.kv_k,
        "kvV": pinned.kv_v,
        "cpuOffload": pinned.cpu_offload,
        "cpu_offload_set": profile.cpu_offload is not None,
    }


def validate_tokens(table: str, tokens: list[str], help_flags: list[str] | None) -> Answer:
    issues = validate.validate_tokens(TABLES[table], tokens, help_flags)
    return {
        "issues": [
            {"token": issue.token, "kind": issue.kind, "suggestions": list(issue.suggestions)} for issue in issues
        ]
    }


def suggest_flags(table: str, name: str, help_flags: list[str] | None) -> Answer:
    return {"suggestions": list(help_text.suggest(TABLES[table], name, help_flags))}


def parse_help(text: str) -> Answer:
    return {"flags": list(help_text.parse_help(text).spellings)}


def launch_flag_check(commands: dict[str, str], help_flags: list[str] | None) -> Answer:
    probed: list[str] = []

    def probe(exe: str) -> list[str] | None:
        probed.append(exe)
        return help_flags

    found = validate.check_commands(commands, probe)
    findings = {
        model: [{"token": issue.token, "kind": issue.kind} for issue in issues] for model, issues in found.items()
    }
    return {"findings": findings, "probes": len(probed)}


def cmd_model_path(cmd: str) -> Answer:
    return {"path": stored.model_path(tokens.split_command(cmd))}


def estimate_from_cmd(cmd: str) -> Answer:
    found = stored.placement_of(tokens.split_command(cmd))
    return {
        "ctx": found.ctx,
        "ctxCheckpoints": found.ctx_checkpoints,
        "kvInRam": found.kv_in_ram,
        "spec": found.spec,
        "kvK": found.kv_k,
        "kvV": found.kv_v,
    }


def offload_from_cmd(cmd: str, meta: Given) -> Answer:
    return {"cpu_offload": stored.offload_of(tokens.split_command(cmd), read.header(meta))}


ADAPTERS = {
    name: keywords(function)
    for name, function in {
        "llama_argv": llama_argv,
        "sd_argv": sd_argv,
        "offload_decision": offload_decision,
        "graph_budget": graph_budget,
        "effective_parallel": effective_parallel,
        "effective_ub": effective_ub,
        "effective_spec": effective_spec,
        "resolve_kv_pair": kv_pair,
        "sampler_lines": samplers,
        "format_float": format_float,
        "cmd_path": cmd_path,
        "image_arg": image_arg,
        "lora_path": lora_path,
        "llm_lora_dir": llm_lora_dir,
        "sd_lora_dir": sd_lora_dir,
        "lora_lines": loras,
        "lookup_flag": lookup_flag,
        "split_flag_token": split_flag_token,
        "split_command": split_command,
        "owned_knobs": owned_knobs,
        "custom_text": custom_text,
        "clear_owned_fields": clear_owned_fields,
        "clear_owned_from_text": clear_owned_from_text,
        "compose": compose_text,
        "pins": read_pins,
        "pins_profile": pins_profile,
        "pins_variant": pins_variant,
        "pins_estimate": pins_estimate,
        "validate_tokens": validate_tokens,
        "suggest_flags": suggest_flags,
        "parse_help": parse_help,
        "launch_flag_check": launch_flag_check,
        "cmd_model_path": cmd_model_path,
        "estimate_from_cmd": estimate_from_cmd,
        "offload_from_cmd": offload_from_cmd,
    }.items()
}
