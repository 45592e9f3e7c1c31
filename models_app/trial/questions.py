"""The smallest meaningful request of every kind of engine, in its own protocol, and whether the answer is one.

Each asks through a `Conversation` and says in words what came back; `NotAnswered` says what did not.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from models_app.core.launch.samples import dot_png, tone_wav
from models_app.trial.conversation import Answer, Conversation, NotAnswered, object_of

HELLO = "Hi"
SIDE = 64
"""Pixels: the least that all of these models can make a picture of."""
CLIP_SIDE, CLIP_FRAMES = 128, 9
"""A clip that every family can round to one of its own lengths."""
MUSIC_SECONDS = 5
LOOK_SECONDS = 0.5


def chat(talk: Conversation) -> str:
    body = {"model": talk.model, "messages": [{"role": "user", "content": HELLO}], "max_tokens": 1}
    return _listed(talk.post_json("/v1/chat/completions", body), "choices", "a token")


def completion(talk: Conversation) -> str:
    """vllm refuses to chat with models that have no template; every one of them completes a text."""
    body = {"model": talk.model, "prompt": HELLO, "max_tokens": 1}
    return _listed(talk.post_json("/v1/completions", body), "choices", "a token")


def embedding(talk: Conversation) -> str:
    return _listed(talk.post_json("/v1/embeddings", {"model": talk.model, "input": HELLO}), "data", "a vector")


def ranking(talk: Conversation) -> str:
    body = {"model": talk.model, "query": HELLO, "documents": [HELLO]}
    return _listed(talk.post_json("/v1/rerank", body), "results", "a ranking")


def decision(talk: Conversation) -> str:
    questions = {"greeting": {"type": "noul", "instructions": "Is this a greeting?"}}
    body = {"model": talk.model, "state": HELLO, "questions": questions}
    return _listed(talk.post_json("/v1/systemone", body), "answers", "a decision")


def image(talk: Conversation) -> str:
    body = {"prompt": "a dot", "width": SIDE, "height": SIDE, "steps": 1, "batch_size": 1, "seed": 1}
    return _listed(talk.post_json("/sdapi/v1/txt2img", body), "images", f"a picture of {SIDE} pixels in one step")


def video(talk: Conversation) -> str:
    """A clip is a job of the server: it is asked for, then looked at until it is over."""
    size = {"width": CLIP_SIDE, "height": CLIP_SIDE, "video_frames": CLIP_FRAMES}
    body = {"prompt": "a dot", "seed": 1, **size, "sample_params": {"sample_steps": 1}}
    job = object_of(talk.post_json("/sdcpp/v1/vid_gen", body), "id")
    address = f"/sdcpp/v1/jobs/{quote(str(job['id']), safe='')}"
    while True:
        state = object_of(talk.get(address), "status")
        if state["status"] == "completed":
            return f"a clip of at least {CLIP_FRAMES} frames in one step"
        if state["status"] not in ("queued", "generating"):
            raise NotAnswered(f"the job is {str(state['status'])[:40]}: {str(state.get('error', ''))[:200]}")
        if time.monotonic() >= talk.end:
            raise NotAnswered("it took too long")
        time.sleep(LOOK_SECONDS)


def mesh(talk: Conversation) -> str:
    options = "pipeline=512&ss_steps=1&slat_steps=1&texture_size=512&shape_only=1&seed=1"
    path = f"/v1/3d/generations?model={quote(talk.model, safe='')}&{options}"
    return _file(talk.post(path, dot_png(256), "image/png"), b"glTF", "a mesh")


def segment(talk: Conversation) -> str:
    """SAM 2 takes a box, SAM 3 a box or words."""
    picture = "data:image/png;base64," + base64.b64encode(dot_png(SIDE)).decode()
    body = {"model": talk.model, "image": picture}
    box = [SIDE // 4, SIDE // 4, SIDE - SIDE // 4, SIDE - SIDE // 4]
    attempts: list[dict[str, Any]] = [{**body, "box": box}, {**body, "text": "square"}]
    answer = _first_taken(attempts, lambda attempt: talk.post_json("/v1/segment", attempt))
    object_of(answer, "instances")
    return "a mask"


def speech(talk: Conversation) -> str:
    """A model that has speakers wants one, one that designs voices wants a description, others want nothing."""
    body = {"model": talk.model, "input": HELLO, "response_format": "wav", "max_new_tokens": 24, "seed": 1}
    attempts = [*({**body, "voice": voice} for voice in _voices(talk)[:1]), body]
    attempts.append({**body, "instructions": "A calm voice."})
    return _spoken(talk, attempts)


def cloned_speech(talk: Conversation) -> str:
    """Some families of audio.cpp only speak with the voice of a recording."""
    body = {"model": talk.model, "input": HELLO, "response_format": "wav", "max_tokens": 24, "seed": 1}
    reference = {"voice_ref": _tone_file(talk), "reference_text": HELLO}
    voices = [{**body, "voice": voice} for voice in _voices(talk)[:1]]
    return _spoken(talk, [*voices, body, {**body, **reference}])


def transcription(talk: Conversation) -> str:
    fields = {"model": talk.model, "response_format": "json"}
    answer = talk.post_form("/v1/audio/transcriptions", fields, "file", "tone.wav", tone_wav())
    object_of(answer, "text")
    return "a transcript of one second"


def music(talk: Conversation) -> str:
    """Families that do not diffuse know no steps, and some refuse what they do not know."""
    wish = {"text": "a drum", "lyrics": "la", "duration_seconds": MUSIC_SECONDS, "seed": 1}
    attempts = [{**wish, "num_inference_steps": 1}, wish]
    ask = {"model": talk.model}
    answer = _first_taken(attempts, lambda body: talk.post_json("/v1/tasks/run", {**ask, "request": body}))
    return _whole(answer, "music")


def audio_task(talk: Conversation) -> str:
    request = {"audio": _tone_file(talk)}
    return _whole(talk.post_json("/v1/tasks/run", {"model": talk.model, "request": request}), "a result")


QUESTIONS: Mapping[str, Callable[[Conversation], str]] = {
    "chat": chat,
    "completion": completion,
    "embedding": embedding,
    "ranking": ranking,
    "decision": decision,
    "image": image,
    "video": video,
    "mesh": mesh,
    "segment": segment,
    "speech": speech,
    "cloned speech": cloned_speech,
    "transcription": transcription,
    "music": music,
    "audio task": audio_task,
}
"""Name of a question (`models_app.core.plans.question`) -> how it is asked."""


def _first_taken(attempts: Sequence[Mapping[str, Any]], ask: Callable[[Mapping[str, Any]], Answer]) -> Answer:
    """The answer to the first attempt that the server does not call a wrong request."""
    for attempt in attempts[:-1]:
        try:
            return ask(attempt)
        except NotAnswered as refusal:
            if not 400 <= refusal.status < 600:
                raise
    return ask(attempts[-1])


def _spoken(talk: Conversation, attempts: Sequence[Mapping[str, Any]]) -> str:
    return _file(_first_taken(attempts, lambda body: talk.post_json("/v1/audio/speech", body)), b"RIFF", "speech")


def _voices(talk: Conversation) -> list[str]:
    """Names of voices: each of three engines lists them in a shape of its own; none where they cannot be had."""
    try:
        found = json.loads(talk.get(f"/v1/audio/voices?model={quote(talk.model, safe='')}").data)
    except (NotAnswered, ValueError, RecursionError):
        return []
    listed = found.get("voices", found) if isinstance(found, dict) else found
    if isinstance(listed, dict):
        listed = listed.get(talk.model)
    names = (
        [item.get("name") if isinstance(item, dict) else item for item in listed] if isinstance(listed, list) else []
    )
    return [name for name in names if isinstance(name, str)]


def _tone_file(talk: Conversation) -> str:
    path = talk.folder / "tone.wav"
    path.write_bytes(tone_wav(3.0))
    return str(path)


def _listed(answer: Answer, key: str, words: str) -> str:
    if not object_of(answer, key)[key]:
        raise NotAnswered(f"the answer's {key} is empty")
    return words


def _file(answer: Answer, magic: bytes, words: str) -> str:
    """Servers of speech answer 200 and nothing when they fail on the way."""
    if not answer.data.startswith(magic):
        raise NotAnswered(f"{answer.size_bytes:,} bytes came back that are no {magic.decode()} file")
    return f"{words} of {answer.size_bytes:,} bytes"


def _whole(answer: Answer, words: str) -> str:
    if not answer.size_bytes:
        raise NotAnswered("the answer is empty")
    return f"{words} of {answer.size_bytes:,} bytes"
