"""Which smallest request shows that the server of a plan does its work. The request itself: `models_app.trial`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from models_app.core.catalog import Plan
from models_app.core.launch.executables import AUDIOCPP, VLLM

QUICK_SECONDS, SLOW_SECONDS = 120.0, 600.0
RERANKING_FLAGS = frozenset({"--reranking", "--rerank"})
_BY_CLASS: Mapping[str, str] = {
    "llm": "chat",
    "embedding": "embedding",
    "decision": "decision",
    "image": "image",
    "video": "video",
    "3d": "mesh",
    "sam": "segment",
    "tts": "speech",
    "asr": "transcription",
}
_BY_AUDIO_TASK: Mapping[str, str] = {
    "tts": "cloned speech",
    "asr": "transcription",
    "gen": "music",
    "sep": "audio task",
    "midi": "audio task",
}
_SLOW = frozenset({"image", "video", "mesh", "music", "audio task"})
"""One step of these may read all weights from RAM."""


@dataclass(frozen=True, slots=True)
class Question:
    """A request by its name, the model as the server calls it, and how long an answer may take."""

    name: str
    model: str
    seconds: float


def question_of(plan: Plan) -> Question | None:
    """None for a plan whose server nobody here knows how to ask."""
    name = _name(plan)
    model = str(plan.entry.get("useModelName") or plan.profile_id)
    return Question(name, model, SLOW_SECONDS if name in _SLOW else QUICK_SECONDS) if name else None


def _name(plan: Plan) -> str:
    if plan.engine == VLLM:
        return "completion"
    if plan.engine == AUDIOCPP:
        return _BY_AUDIO_TASK.get(str(plan.entry.get("audiocpp", {}).get("task", "")), "")
    if plan.model_class == "embedding" and RERANKING_FLAGS.intersection(plan.argv):
        return "ranking"
    return _BY_CLASS.get(plan.model_class, "")
