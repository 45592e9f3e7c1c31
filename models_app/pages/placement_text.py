"""Where the layers of a model lie, in words: `all GPU`, `48/64 layers GPU`, `12 expert layers CPU`, `CPU`."""

from __future__ import annotations

from models_app.core.catalog import Placement, Plan


def engine_placement_word(plan: Plan) -> str:
    """The same for a server that places its model by itself."""
    if plan.verdict == "spills":
        return "visits the GPU"
    used = max((len([size for size in term.device_bytes if size]) for term in plan.terms), default=0)
    return "CPU" if not used else "all GPU"


def placement_word(placement: Placement, block_count: int) -> str:
    """Short, for a table cell."""
    on_gpu = min(placement.gpu_layers, block_count + 1)
    if on_gpu <= 0:
        return "CPU"
    if placement.cpu_moe_layers > 0:
        experts = "expert layer" if placement.cpu_moe_layers == 1 else "expert layers"
        return f"{placement.cpu_moe_layers} {experts} CPU"
    if on_gpu <= block_count:
        return f"{on_gpu}/{block_count + 1} layers GPU"
    return "all GPU"


def placement_sentence(placement: Placement, block_count: int) -> str:
    """For the plan panel; `-ngl` counts the output as one more layer."""
    on_gpu = min(placement.gpu_layers, block_count + 1)
    if on_gpu <= 0:
        return "everything in RAM, computed on the CPU"
    if on_gpu <= block_count:
        text = f"{on_gpu} of {block_count + 1} layers on the GPU"
    else:
        text = "all layers on the GPU"
    if placement.cpu_moe_layers > 0:
        text += f", experts of the first {placement.cpu_moe_layers} layers in RAM"
    elif on_gpu > block_count and not placement.kv_in_ram:
        text = "everything on the GPU"
    return text + (", KV cache in RAM" if placement.kv_in_ram else "")
