"""Adapters of the area `qwentts`: the speech server qwentts.cpp."""

from __future__ import annotations

from models_app.core.classes import qwentts
from models_app.core.classes.tts import qwentts_estimate_gib
from models_app.core.export import scalars
from tests.adapters.given import Answer, Given, keywords


def has_flag(build: str, flag: str) -> Answer:
    return {"result": qwentts.has_flag(build, flag)}


def estimate(talker_gb: float, codec_gb: float, max_batch: int, voices: bool) -> Answer:
    return {"est_gb": scalars.gb(qwentts_estimate_gib(talker_gb, codec_gb, max_batch, voices))}


def memory(max_batch: int) -> Answer:
    kv_mib, ring_mib = qwentts.memory_mib(max_batch)
    return {"kv_mib": kv_mib, "ring_mib": ring_mib}


def rvq(**given: int) -> Answer:
    frames = qwentts.rvq_frames(given.pop("bytes"))
    assert not given
    return {"frames": frames, "seconds": None if frames is None else frames * qwentts.FRAME_SECONDS}


def speaker_bytes(width: int) -> Answer:
    return {"bytes": qwentts.speaker_bytes(width)}


def speech(body: Given, model_type: str, registered: list[str]) -> Answer:
    return {"status": qwentts.speech_status(body, model_type, registered)}


def speech_failure(response_format: str, engine_status: int) -> Answer:
    status = qwentts.failure_status(response_format, engine_status)
    return {"status": status, "body_bytes": 0 if status == qwentts.OK else None}


def register(fields: list[str]) -> Answer:
    return {"status": qwentts.registration_status(fields)}


def delete_voice(name: str, registered: list[str], speakers: list[str]) -> Answer:
    del speakers  # they cannot be deleted
    return {"status": qwentts.deletion_status(name, registered)}


ADAPTERS = {
    "qwentts_has_flag": keywords(has_flag),
    "qwentts_estimate": keywords(estimate),
    "qwentts_memory": keywords(memory),
    "qwentts_rvq": keywords(rvq),
    "qwentts_spk_bytes": keywords(speaker_bytes),
    "qwentts_speech": keywords(speech),
    "qwentts_speech_failure": keywords(speech_failure),
    "qwentts_register": keywords(register),
    "qwentts_delete_voice": keywords(delete_voice),
}
