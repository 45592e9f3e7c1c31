"""A launch text that is the whole command: what the server does where it says nothing (launch.md 15)."""

from __future__ import annotations

from dataclasses import replace

from models_app.core.errors import LaunchError
from models_app.core.launch.ownership import custom_text, runs_text_only
from models_app.core.launch.pins import flag_values
from models_app.core.launch.tokens import POSIX, split_command
from models_app.core.planning.checkpoints import SERVER_COUNT, SERVER_SPACING
from models_app.core.settings import Override

SERVER_KV_TYPE = "f16"
SERVER_UBATCH_TOKENS = 512


def with_server_defaults(override: Override, rules: str = POSIX) -> Override:
    """The override as the server will run it. Window and layers stay open: current builds fit both to the memory.

    An override without such a text comes back as it is. What the text says is read from it later, and wins.
    """
    if not runs_text_only(override):
        return override
    return replace(
        override,
        kv_k=SERVER_KV_TYPE,
        kv_v=SERVER_KV_TYPE,
        kv_in_ram=False,
        ctx=0,
        cpu_offload=0,
        parallel=0,
        ub=SERVER_UBATCH_TOKENS,
        spec="none",
        ctx_checkpoints=SERVER_COUNT,
        checkpoint_min_step=SERVER_SPACING,
        tensor_split="",
        override_tensor="",
        rope_scaling="",
        swa_full=False,
        flash_attn="",
        loras=(),
    )


def projector_in_text(override: Override, rules: str = POSIX) -> tuple[str, bool]:
    """The projector that a text loads, "" for none, and whether it stays in RAM."""
    try:
        given = dict(flag_values(split_command(custom_text(override), rules)))
    except LaunchError:
        return "", False
    return given.get("mmprojFile", ""), "--no-mmproj-offload" in given
