"""Plans of a row: the one function behind previews, saves, published entries and the verb `plan`."""

from models_app.core.plans.rows import plan_curve, plan_row

__all__ = ["plan_curve", "plan_row"]
