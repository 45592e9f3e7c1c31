"""What a host worker does at a running qwentts server: voices, and having it speak (qwentts.md 3, 5).

No database, no Django. A model that is not running is not started: behind a router that is looked at first.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from gpus_app.core.errors import QuartermasterError
from models_app.core.classes.voices import MAX_SPEECH_BYTES, SPEECH_PATH, check_speech
from models_app.router import llama_swap
from models_app.router.connection import AnswerCut, Connection, RouterAway, RouterRefused, printable
from quartermaster_site.jobs.host_tasks import host_task
from quartermaster_site.jobs.reporting import Reporter

VOICES_PATH, OLD_VOICES_PATH = "/v1/audio/voices", "/v1/voices"
"""The second until 8d556c9."""
KINDS = ("speaker", "registered")
MAX_VOICES = 200
MAX_NAME_CHARACTERS = 200
MAX_LIST_BYTES = 1 << 20
LIST_SECONDS = 15.0
REGISTER_SECONDS = 120.0
SPEAK_SECONDS = 300.0
"""A thousand characters are about a minute; slow machines take some times as long as they speak."""


class SpeechError(QuartermasterError):
    """A speech server did not do what it was asked, in words for the person who asked."""


@dataclass
class Server:
    """A running server: itself, or a router that passes requests on."""

    connection: Connection
    prefix: str = ""
    voices_path: str = field(default=VOICES_PATH, init=False)

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        seconds: float = LIST_SECONDS,
        most_bytes: int = MAX_LIST_BYTES,
    ) -> bytes:
        """The bytes of a good answer. Raises SpeechError, Missing for what is not there."""
        try:
            return self.connection.data(method, self.prefix + path, body, seconds=seconds, most_bytes=most_bytes)
        except RouterRefused as refused:
            raise _in_words(refused, path) from refused
        except AnswerCut as cut:
            what = "the sound was cut off" if path == SPEECH_PATH else "the answer was cut off"
            raise SpeechError(f"{what}: {cut}") from cut
        except RouterAway as away:
            raise SpeechError(str(away)) from away

    def voices(self) -> list[dict[str, str]]:
        """What it speaks with: [{"name", "kind"}]. Finds the older address of the list by itself."""
        try:
            data = self.call("GET", self.voices_path)
        except Missing:
            if self.voices_path == OLD_VOICES_PATH:
                raise
            self.voices_path = OLD_VOICES_PATH
            data = self.call("GET", self.voices_path)
        return _voices(data)


class Missing(SpeechError):
    """The server has no such page, or no such voice."""


def reach(inputs: Mapping[str, Any]) -> Server:
    """The server of a model. Raises SpeechError where its router has it not loaded."""
    connection = Connection(str(inputs["url"]), str(inputs.get("key", "")))
    if not inputs.get("routed"):
        return Server(connection)
    model = str(inputs["model"])
    try:
        state = llama_swap.state_of(connection, model)
    except RouterRefused as refused:
        raise SpeechError(str(refused)) from refused
    except RouterAway as away:
        raise SpeechError(str(away)) from away
    if state != "loaded":
        raise SpeechError(f"{model} is not loaded: load it on the Router page and try again")
    return Server(connection, f"/upstream/{quote(model)}")


def ask(inputs: Mapping[str, Any], tell: Callable[[str], None]) -> dict[str, Any]:
    """Do what `inputs` says: the voices that the server has then, or the sound. Raises SpeechError, VoiceError."""
    tell("Looking for the server")
    server = reach(inputs)
    return ACTIONS[inputs["action"]](server, inputs, tell)


def _list(server: Server, inputs: Mapping[str, Any], tell: Callable[[str], None]) -> dict[str, Any]:
    return {"voices": server.voices()}


def _register(server: Server, inputs: Mapping[str, Any], tell: Callable[[str], None]) -> dict[str, Any]:
    """The answer is not read, since the server does not escape the name in it: its list says what became of it."""
    server.voices()
    name = str(inputs["name"])
    body = {"name": name, "ref_text": str(inputs["ref_text"]), **inputs["files"]}
    tell(f"Registering {name}")
    try:
        server.call("POST", server.voices_path, body, seconds=REGISTER_SECONDS)
    except Missing as missing:
        raise SpeechError("this build of the server cannot register voices: it is older than July 2026") from missing
    voices = server.voices()
    if {"name": name, "kind": "registered"} not in voices:
        raise SpeechError(f"the server took {name}, but does not list it: was it restarted meanwhile?")
    return {"voices": voices}


def _delete(server: Server, inputs: Mapping[str, Any], tell: Callable[[str], None]) -> dict[str, Any]:
    server.voices()
    name = str(inputs["name"])
    tell(f"Deleting {name}")
    try:
        server.call("DELETE", f"{server.voices_path}/{quote(name, safe='')}")
    except Missing:
        tell(f"{name} was gone already")
    return {"voices": server.voices()}


def _speak(server: Server, inputs: Mapping[str, Any], tell: Callable[[str], None]) -> dict[str, Any]:
    tell("Waiting for the whole sound")
    began = time.monotonic()
    data = server.call("POST", SPEECH_PATH, inputs["body"], seconds=SPEAK_SECONDS, most_bytes=MAX_SPEECH_BYTES)
    took = time.monotonic() - began
    wav = check_speech(data)
    return {
        "audio": base64.b64encode(data).decode(),
        "seconds": round(wav.seconds, 3),
        "took_seconds": round(took, 3),
    }


ACTIONS = {"list": _list, "register": _register, "delete": _delete, "speak": _speak}


@host_task("models_app.speech.ask_speech_server")
def ask_speech_server(report: Reporter, inputs: dict[str, Any]) -> dict[str, Any]:
    """One request to a running speech server. Sound goes as a part of its own, so that no job row holds it."""
    answer = ask(inputs, lambda text: report.progress(text, 0))
    if audio := answer.pop("audio", ""):
        report.batch({"audio": audio})
    return answer


def _voices(data: bytes) -> list[dict[str, str]]:
    try:
        listed = json.loads(data)["voices"]
        found = [(str(item["name"]), str(item["kind"])) for item in listed]
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise SpeechError("what answers there lists no voices: it is no qwentts server") from error
    if len(found) > MAX_VOICES:
        raise SpeechError(f"the server lists {len(found):,} voices; at most {MAX_VOICES:,} are taken")
    return [
        {"name": printable(name)[:MAX_NAME_CHARACTERS], "kind": kind}
        for name, kind in found
        if kind in KINDS and printable(name)
    ]


def _in_words(refused: RouterRefused, path: str) -> SpeechError:
    said = f": {refused.reason}" if refused.reason else ""
    if refused.from_router or refused.status in (401, 403):
        return SpeechError(str(refused))
    if refused.status == 404:
        return Missing(f"the server has no {path}{said}")
    if refused.status == 501:
        return SpeechError("this build of the server keeps no voices")
    if refused.status == 413:
        return SpeechError("the server takes no request of this size")
    if 300 <= refused.status < 400:
        return SpeechError(f"the server redirects (status {refused.status}), which is not followed")
    return SpeechError(f"the server answers {refused.status}{said}")
