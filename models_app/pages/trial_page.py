"""What a page says beside the outcome of a test launch."""

from __future__ import annotations

from models_app.core.catalog import Plan
from quartermaster_site.figures import size


def planned_memory(plan: Plan) -> str:
    """The estimate of a plan in words, "" where its class counts none."""
    parts = ((plan.est_vram_bytes, "of device memory"), (plan.est_ram_bytes, "of RAM"))
    return ", ".join(f"{size(amount)} {where}" for amount, where in parts if amount)
