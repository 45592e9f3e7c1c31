"""Which class a file belongs to: the first of an ordered list that claims it (classes.md 1).

The order is load-bearing. Video before image (one kind of network, another way to answer); decision before embedding
(a decision model may have a pooling type); embedding and audio.cpp before the two speech classes that also go by name.
"""

from __future__ import annotations

from models_app.core.catalog import Header
from models_app.core.classes.asr import ASR
from models_app.core.classes.audiocpp import AUDIOCPP, CATEGORY_OF_TASK, task_of
from models_app.core.classes.auxiliary import ignored_reason
from models_app.core.classes.decision import DECISION
from models_app.core.classes.embedding import EMBEDDING
from models_app.core.classes.hf import HF
from models_app.core.classes.image import IMAGE
from models_app.core.classes.llm import LLM, unservable_reason
from models_app.core.classes.registry import IGNORED, SKIPPED, Classification, ModelClass
from models_app.core.classes.sam import SAM
from models_app.core.classes.three_d import THREE_D
from models_app.core.classes.tts import TTS
from models_app.core.classes.video import VIDEO

CLASSES: tuple[ModelClass, ...] = (
    SAM,
    THREE_D,
    HF,
    VIDEO,
    IMAGE,
    DECISION,
    EMBEDDING,
    AUDIOCPP,
    TTS,
    ASR,
    LLM,
)
BY_SLUG = {model_class.slug: model_class for model_class in CLASSES}
NO_ARCHITECTURE = "the header names no architecture; nothing here can load it"


def classify(file_name: str, header: Header | None = None) -> Classification:
    """The class of one file. Without a header only classes known by name can answer; the rest is `ignored`."""
    not_a_model = ignored_reason(header)
    if not_a_model:
        return Classification(IGNORED, not_a_model)
    for model_class in CLASSES:
        if model_class is LLM and (reason := unservable_reason(header)):
            return Classification(SKIPPED, reason)
        if reason := model_class.match(file_name, header):
            return Classification(model_class.slug, reason)
    return Classification(IGNORED, "not a model file") if header is None else Classification(SKIPPED, NO_ARCHITECTURE)


def category_of(model_class: str, audio_family: str = "") -> str:
    """The tab that shows a class; an audio.cpp model goes by its family's task. "" for an unknown class."""
    if model_class == AUDIOCPP.slug:
        return CATEGORY_OF_TASK.get(task_of(audio_family), AUDIOCPP.category)
    known = BY_SLUG.get(model_class)
    return known.category if known else ""
