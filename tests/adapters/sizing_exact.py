"""Adapters of the area `sizing`, operations of the exact engine: what llama.cpp allocates."""

from __future__ import annotations

from typing import Any

from models_app.core.catalog import Header, Launch
from models_app.core.planning.context import context_bytes
from models_app.core.planning.geometry import geometry
from models_app.core.planning.projection import project
from models_app.core.planning.table import model_table
from models_app.core.units import MIB
from tests.gguf_memory import Tensor, header_of

Given = dict[str, Any]
Answer = dict[str, Any]

_LAUNCH = {
    "ctx": "ctx_tokens",
    "ubatch": "ubatch",
    "slots": "slots",
    "kv_unified": "kv_unified",
    "type_k": "type_k",
    "type_v": "type_v",
    "flash_attn": "flash_attn",
    "swa_full": "swa_full",
    "rollback_snapshots": "rollback_snapshots",
    "kv_offload": "kv_offload",
    "ngl": "gpu_layers",
    "n_cpu_moe": "cpu_moe_layers",
    "devices": "devices",
}


def _launch(given: Given, outputs: str = "server") -> Launch:
    """A launch in the words of the vectors; all layers may be said as null or "all"."""
    knobs = {_LAUNCH[key]: value for key, value in given.items()}
    if knobs.get("gpu_layers") == "all":
        knobs["gpu_layers"] = None
    return Launch(**knobs, outputs=outputs)


def project_context(kv: Given, launch: Given, engine: str = "exact") -> Answer:
    table, wanted = model_table(header_of(kv)), _launch(launch)
    total = context_bytes(table, wanted, geometry(wanted, table.window, table.trained_tokens), 0, table.trunk)
    return {"k_bytes": total.k, "v_bytes": total.v, "r_bytes": total.r, "s_bytes": total.s}


def project_compute(
    kv: Given, vocab: int, launch: Given, has_gate_tensor: bool = True, engine: str = "exact"
) -> Answer:
    table = model_table(_with_vocabulary(kv, vocab, has_gate_tensor))
    server = project(table, _launch(launch))
    fit_params = project(table, _launch(launch, outputs="all"))
    return {
        "device_context_bytes": server.devices[0].context_bytes,
        "server_compute_mib": server.devices[0].compute_bytes / MIB,
        "fit_params_compute_mib": fit_params.devices[0].compute_bytes / MIB,
        "host_compute_mib": server.host.compute_bytes / MIB,
    }


def project_placement(kv: Given, tensors: list[Given], launch: Given, engine: str = "exact") -> Answer:
    listed = [tensor for entry in tensors for tensor in _expand(**entry)]
    projection = project(model_table(header_of(kv, listed)), _launch(launch))
    first = projection.devices[0]
    return {
        "devices": [
            {"model_mib": use.model_bytes // MIB, "context_mib": use.context_bytes // MIB} for use in projection.devices
        ],
        "host": {
            "model_mib": projection.host.model_bytes // MIB,
            "context_mib": projection.host.context_bytes // MIB,
        },
        "device_model_bytes": first.model_bytes,
        "device_context_bytes": first.context_bytes,
    }


def _with_vocabulary(kv: Given, vocab: int, has_gate_tensor: bool) -> Header:
    """The header says the vocabulary as a key; a feed-forward without a gate can be told from its tensors alone."""
    architecture = kv["general.architecture"]
    tensors: list[Tensor] = []
    if not has_gate_tensor:
        blocks, embedding, width = (
            kv[f"{architecture}.{key}"] for key in ("block_count", "embedding_length", "feed_forward_length")
        )
        for index in range(blocks):
            tensors.append((f"blk.{index}.ffn_up.weight", (embedding, width), "F16"))
            tensors.append((f"blk.{index}.ffn_down.weight", (width, embedding), "F16"))
    return header_of({**kv, f"{architecture}.vocab_size": vocab}, tensors)


def _expand(name: str, shape: list[int], type: str, layers: list[list[int]] | None = None) -> list[Tensor]:  # noqa: A002
    if layers is None:
        return [(name, tuple(shape), type)]
    return [
        (name.replace("{i}", str(index)), tuple(shape), type)
        for first, last in layers
        for index in range(first, last + 1)
    ]


EXACT = {
    "project_context": lambda given: project_context(**given),
    "project_compute": lambda given: project_compute(**given),
    "project_placement": lambda given: project_placement(**given),
}
