"""The advanced lines of llama-server, in their order (launch.md 2.1)."""

from __future__ import annotations

from models_app.core.launch.numbers import number_text
from models_app.core.launch.tokens import quote
from models_app.core.planning.rope import rope_scale
from models_app.core.settings import Override


def advanced_lines(override: Override, ctx_tokens: int, trained_tokens: int) -> list[str]:
    """One line per knob that is set. `ctx_tokens` is the window of one slot, for the RoPE factor."""
    own = override
    factor = rope_scale(own.rope_scaling, ctx_tokens, trained_tokens, own.rope_scale)
    lines = [
        _above_zero("-tb", own.threads_batch),
        _above_zero("--prio", own.prio),
        _switch("--no-op-offload", own.no_op_offload),
        _switch("--no-repack", own.no_repack),
        _above_zero("--cache-reuse", own.cache_reuse),
        # -1 is a value: no limit.
        f"-cram {own.cache_ram_mb}" if own.cache_ram_mb else "",
        _above_zero("-lv", own.log_verbosity),
        _on_off("cache-idle-slots", own.cache_idle_slots),
        _switch("--swa-full", own.swa_full),
        _on_off("context-shift", own.context_shift),
        _above_zero("--spec-draft-n-min", own.spec_draft_n_min),
        _above_zero("-sps", own.slot_prompt_similarity),
        _text("--rope-scaling", own.rope_scaling),
        _above_zero("--rope-scale", factor or 0.0),
        _above_zero("--rope-freq-base", own.rope_freq_base),
        _above_zero("--yarn-orig-ctx", own.yarn_orig_ctx),
        _text("-sm", own.split_mode),
        _text("-ts", own.tensor_split),
        _above_zero("-mg", own.main_gpu),
        _text("-ot", own.override_tensor),
    ]
    return [line for line in lines if line]


def _above_zero(flag: str, value: float) -> str:
    return f"{flag} {number_text(value)}" if value > 0 else ""


def _switch(flag: str, on: bool) -> str:
    return flag if on else ""


def _on_off(name: str, value: str) -> str:
    return {"on": f"--{name}", "off": f"--no-{name}"}.get(value, "")


def _text(flag: str, value: str) -> str:
    return f"{flag} {quote(value.strip())}" if value.strip() else ""
