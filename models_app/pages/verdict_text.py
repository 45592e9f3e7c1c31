"""The verdict of a plan in words: one headline, and one line of details below it."""

from __future__ import annotations

from models_app.core.catalog import Plan
from models_app.pages.engine_words import engine_name
from models_app.pages.placement_text import placement_sentence
from quartermaster_site.figures import count, gib

_NOTICEABLE_BYTES = 1 << 27


def headline(plan: Plan, ram_budget_bytes: int) -> str:
    if plan.verdict == "unplanned":
        return "Not served"
    if plan.engine:
        return _headline_of_engine(plan)
    if plan.placement is None:
        return "Cannot judge"
    context = f"context {count(plan.placement.ctx_tokens)}"
    if plan.verdict == "unknown":
        return f"Cannot judge: memory unknown, {context}"
    vram = f"{gib(plan.est_vram_bytes, 1)} of {gib(plan.target_bytes, 1)} GiB"
    lacks_ram = plan.est_vram_bytes <= plan.target_bytes and 0 < ram_budget_bytes < plan.est_ram_bytes
    if not plan.target_bytes and not plan.est_vram_bytes:
        starts = "Does not fit in RAM" if plan.verdict == "over" else "Runs on the CPU"
        return f"{starts}: {gib(plan.est_ram_bytes, 1)} GiB RAM, {context}"
    if plan.verdict == "over" and lacks_ram:
        return f"Does not fit: needs {gib(plan.est_ram_bytes, 1)} of {gib(ram_budget_bytes, 1)} GiB RAM, {context}"
    if plan.verdict == "over":
        return f"Does not fit: needs {vram}, {context}"
    if plan.verdict == "spills":
        return f"Fits with parts in RAM: {vram}, {context}"
    return f"Fits: {vram}, {context}"


def _headline_of_engine(plan: Plan) -> str:
    """Classes with servers of their own: an estimate and no placement."""
    if not plan.est_vram_bytes:
        return f"Runs on the CPU: {gib(plan.est_ram_bytes, 1)} GiB RAM" if plan.est_ram_bytes else "Runs on the CPU"
    starts = {"over": "Does not fit: needs", "spills": "Fits with parts in RAM:"}.get(plan.verdict, "Fits:")
    vram = f"{gib(plan.est_vram_bytes, 1)} of {gib(plan.target_bytes, 1)} GiB"
    return f"{starts} {vram}"


def details(plan: Plan, block_count: int) -> str:
    if plan.skip_reason:
        return f"{plan.skip_reason}. Left out of the config file, with a comment that says so."
    if plan.engine:
        return _details_of_engine(plan)
    placement = plan.placement
    if placement is None:
        return ""
    parts = []
    if placement.slots > 1:
        pool = placement.ctx_tokens * placement.slots
        parts.append(f"per conversation, {placement.slots} at once (pool {count(pool)})")
    parts.append(placement_sentence(placement, block_count))
    spare = plan.target_bytes - plan.est_vram_bytes
    if plan.target_bytes and not (plan.verdict == "over" and spare >= 0):  # then it is RAM that is short
        parts.append(f"{gib(abs(spare), 1)} GiB {'to spare' if spare >= 0 else 'too much'}")
    return " · ".join(parts)


def _details_of_engine(plan: Plan) -> str:
    held = sum(sum(term.device_bytes) for term in plan.terms if term.key != "headroom")
    runs = f"runs on {engine_name(plan.engine)}"
    if plan.verdict != "over" and held < plan.est_vram_bytes - _NOTICEABLE_BYTES:
        # sd-server takes what it is given; the router has to keep that free.
        return f"{runs} · {gib(held, 1)} GiB at the least, the rest is kept free for it to work in"
    spare = plan.target_bytes - plan.est_vram_bytes
    if plan.est_vram_bytes and spare >= 0:
        return f"{runs} · {gib(spare, 1)} GiB to spare"
    return f"{runs} · {gib(-spare, 1)} GiB too much" if plan.est_vram_bytes else runs
