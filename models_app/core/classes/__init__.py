"""Model classes: one file per class, asked in the order of `dispatch.CLASSES`."""

from models_app.core.classes.dispatch import BY_SLUG, CLASSES, category_of, classify
from models_app.core.classes.registry import IGNORED, SKIPPED, Classification, ModelClass

__all__ = [
    "BY_SLUG",
    "CLASSES",
    "IGNORED",
    "SKIPPED",
    "Classification",
    "ModelClass",
    "category_of",
    "classify",
]
