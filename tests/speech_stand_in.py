"""A server that speaks the HTTP protocol of qwentts.cpp (tts-server.h at a8a7716), with a hum for a voice.

`stand_in()` runs it in this process, alone or behind a router like llama-swap; as a program it takes the same flags.
Faults make it answer as a broken or hostile server would.
"""

from __future__ import annotations

import base64
import json
import re
import struct
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from tests.speech_files import wav

MAX_BODY_BYTES = 32 << 20
FRAME_SECONDS = 0.08
_NUMBERS = {
    "seed": (int, -(1 << 63), 1 << 63),
    "max_new_tokens": (int, 1, 1 << 31),
    "top_k": (int, 0, 1 << 31),
    "temperature": (float, 0.0, 3e38),
    "top_p": (float, 1e-300, 1.0),
    "repetition_penalty": (float, 1e-300, 3e38),
}


class Answer(Exception):
    """An answer that ends the handling of a request."""

    def __init__(self, status: int, kind: str, message: str) -> None:
        self.status = status
        self.body = {"error": {"message": message, "type": kind}}


@dataclass
class SpeechServer:
    """One process: a model, its speakers and the voices that were registered with it."""

    model_type: str = "base"
    width: int = 2048
    speakers: tuple[str, ...] = ()
    alias: str = "qwen-talker-1.7b-base-Q8_0.gguf"
    voices: dict[str, dict[str, Any]] = field(default_factory=dict)
    voices_path: str = "/v1/audio/voices"
    has_registry: bool = True
    fault: str = ""
    """`cut`, `cut-wav`, `huge`, `slow`, `text`, `empty`, `redirect`, `odd-json`, `deep-json`, `forgets`, `broken`."""
    asked: list[tuple[str, str, Any]] = field(default_factory=list)
    running: dict[str, str] = field(default_factory=dict)
    """As a router: id of a model -> its state, "" where it does not run. Empty: it is no router."""
    key: str = ""
    url: str = ""

    def restart(self) -> None:
        """Another process: what was registered is gone."""
        self.voices.clear()

    def listing(self) -> dict[str, Any]:
        found = [{"name": name, "kind": "speaker"} for name in self.speakers]
        return {"voices": found + [{"name": name, "kind": "registered"} for name in self.voices]}

    def register(self, body: Any) -> str:
        """Keep a voice; returns the answer, which is not escaped: so it is there."""
        if not isinstance(body, dict):
            raise Answer(400, "invalid_request_error", "request body must be a JSON object")
        name = body.get("name")
        if not isinstance(name, str) or not name:
            raise Answer(400, "invalid_request_error", "'name' must be a non-empty string")
        given = {key: _base64(body[key]) for key in ("wav_b64", "spk_b64", "rvq_b64") if body.get(key)}
        if set(given) not in ({"wav_b64"}, {"spk_b64", "rvq_b64"}):
            raise Answer(400, "invalid_request_error", "provide either 'wav_b64' or both 'spk_b64' and 'rvq_b64'")
        if "wav_b64" in given:
            if given["wav_b64"][:4] != b"RIFF":
                raise Answer(400, "invalid_request_error", "cannot decode the WAV payload")
            if self.model_type != "base":
                raise Answer(400, "invalid_request_error", "voice extraction requires a base model")
        elif len(given["spk_b64"]) % 4:
            raise Answer(400, "invalid_request_error", "'spk_b64' must decode to a positive multiple of 4 bytes")
        elif len(given["rvq_b64"]) * 8 // 11 % 16 or len(given["rvq_b64"]) < 22:
            raise Answer(400, "invalid_request_error", "'rvq_b64' does not decode to a valid packed code stream")
        if self.fault != "forgets":
            width = len(given["spk_b64"]) // 4 if "spk_b64" in given else self.width
            self.voices[name] = {"ref_text": body.get("ref_text") or "", "width": width, "bytes": given}
        return f'{{"name":"{name}","status":"registered"}}'

    def speak(self, body: Any) -> tuple[str, bytes]:
        """(format, sound); raises Answer. Raw sound hides what the engine says: the caller sends none then."""
        if not isinstance(body, dict):
            raise Answer(400, "invalid_request_error", "request body must be a JSON object")
        if not isinstance(body.get("input"), str) or not body["input"]:
            raise Answer(400, "invalid_request_error", "'input' must be a non-empty string")
        for key, (kind, low, high) in _NUMBERS.items():
            value = body.get(key)
            right = isinstance(value, int | float) if kind is float else isinstance(value, int)
            if key in body and (isinstance(value, bool) or not right or not low <= value <= high):
                raise Answer(400, "invalid_request_error", f"'{key}' is out of domain")
        form = _text(body, "response_format") or "pcm"
        if form not in ("pcm", "wav"):
            raise Answer(400, "invalid_request_error", "response_format must be 'pcm' or 'wav'")
        try:
            self._check(_text(body, "voice"), _text(body, "instructions"))
        except Answer:
            if form == "pcm":
                return form, b""
            raise
        frames = min(body.get("max_new_tokens", 2048), 3 + 4 * len(body["input"].split()))
        return form, wav(seconds=frames * FRAME_SECONDS)

    def _check(self, voice: str, instructions: str) -> None:
        """What the engine has against a request: -1 and -2 are the client's fault, others the server's."""
        if voice in self.voices:
            if self.model_type != "base":
                raise Answer(400, "server_error", "a reference requires a base model")
            if self.voices[voice]["width"] != self.width:
                raise Answer(502, "server_error", "speaker embedding has the wrong width")
        elif self.model_type == "custom_voice":
            if voice.lower() not in self.speakers:
                raise Answer(502, "server_error", f"unknown speaker '{voice}'")
        elif voice and not self.speakers:
            raise Answer(400, "server_error", f"unknown voice '{voice}'")
        if self.model_type == "base" and instructions:
            raise Answer(400, "server_error", "instruct is not supported by a base model")
        if self.model_type == "voice_design" and not instructions:
            raise Answer(400, "server_error", "voice_design requires an instruct")


def _base64(text: Any) -> bytes:
    plain = re.sub(r"[=\r\n]", "", text) if isinstance(text, str) else "!"
    if not re.fullmatch(r"[A-Za-z0-9+/]*", plain):
        raise Answer(400, "invalid_request_error", "invalid base64 payload")
    return base64.b64decode(plain + "=" * (-len(plain) % 4))


def _text(body: dict[str, Any], key: str) -> str:
    value = body.get(key)
    return value if isinstance(value, str) else ""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    state: SpeechServer

    def do_GET(self) -> None:
        self._serve(None)

    def do_DELETE(self) -> None:
        self._serve(None)

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        if length > MAX_BODY_BYTES:
            self._send(413, b"", "text/plain")
            return
        raw = self.rfile.read(length)
        try:
            body = json.loads(raw)
        except ValueError:
            body = None
        self._serve(body)

    def _serve(self, body: Any) -> None:
        state, path = self.state, self.path.partition("?")[0]
        state.asked.append((self.command, path, body))
        if state.running:
            if state.key and self.headers.get("Authorization") != f"Bearer {state.key}":
                self._json(401, {"src": "llama-swap", "error": {"message": "unauthorized", "code": "unauthorized"}})
                return
            if path in ("/running", "/api/version", "/v1/models"):
                running = [
                    {"model": name, "state": value, "cmd": "x"} for name, value in state.running.items() if value
                ]
                listing = [{"id": name, "owned_by": "llama-swap"} for name in state.running]
                self._json(200, {"running": running, "version": "1", "data": listing})
                return
            found = re.match(r"/upstream/([^/]+)(/.*)", path)
            if not found or not state.running.get(unquote(found[1])):
                self._json(404, {"src": "llama-swap", "error": {"message": "no such model", "code": "not_found"}})
                return
            path = found[2]
        try:
            self._route(path, body)
        except Answer as answer:
            self._json(answer.status, answer.body)

    def _route(self, path: str, body: Any) -> None:
        state = self.state
        if self._faulty():
            return
        if (self.command, path) == ("GET", "/health"):
            self._json(200, {"status": "ok"})
        elif (self.command, path) == ("GET", "/v1/models"):
            self._json(200, {"object": "list", "data": [{"id": state.alias, "object": "model", "owned_by": "local"}]})
        elif (self.command, path) == ("POST", "/v1/audio/speech"):
            self._speech(body)
        elif path == state.voices_path and self.command == "GET":
            self._json(200, state.listing())
        elif path.startswith(state.voices_path) and not state.has_registry:
            raise Answer(501, "not_implemented", "this backend has no voice registry")
        elif path == state.voices_path and self.command == "POST":
            self._send(200, state.register(body).encode(), "application/json")
        elif path.startswith(f"{state.voices_path}/") and self.command == "DELETE":
            if state.voices.pop(unquote(path.rpartition("/")[2]), None) is None:
                raise Answer(404, "not_found_error", "no registered voice with this name")
            self._json(200, {"status": "deleted"})
        else:
            self._send(404, b"", "text/plain")

    def _speech(self, body: Any) -> None:
        form, sound = self.state.speak(body)
        if form == "wav":
            if self.state.fault == "cut-wav":
                sound = sound[: len(sound) // 2]
            self._send(200, sound, "audio/wav")
            return
        self.send_response(200)
        self.send_header("Content-Type", "audio/pcm")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        raw, frames = sound[44:], 1
        while raw:
            chunk, raw = raw[: 3840 * frames], raw[3840 * frames :]
            self.wfile.write(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n")
            frames = min(8, frames * 2)
        self.wfile.write(b"0\r\n\r\n")

    def _faulty(self) -> bool:
        """Answer as a server in trouble; False where the fault lies elsewhere."""
        fault = self.state.fault
        if fault == "cut":
            self.send_response(200)
            self.send_header("Content-Type", "audio/wav")
            self.send_header("Content-Length", "100000")
            self.end_headers()
            self.wfile.write(wav()[:1000])
            self.close_connection = True
        elif fault == "huge":
            self.send_response(200)
            self.send_header("Content-Length", str(1 << 32))
            self.end_headers()
            try:
                while True:
                    self.wfile.write(b"\0" * (1 << 20))
            except OSError:
                self.close_connection = True
        elif fault == "slow":
            time.sleep(3)
            self.close_connection = True
        elif fault in ("text", "empty", "odd-json", "deep-json"):
            data = {"text": b"<html>hello</html>", "empty": b"", "odd-json": b'{"voices": 5}'}.get(fault, b"[" * 90_000)
            self._send(200, data, "text/html")
        elif fault == "redirect":
            self.send_response(302)
            self.send_header("Location", "http://127.0.0.1:1/")
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif fault == "broken":
            self._json(502, {"error": {"message": "GGML_ASSERT failed\nmore", "type": "server_error"}})
        return fault not in ("", "cut-wav", "forgets")

    def _json(self, status: int, body: dict[str, Any]) -> None:
        self._send(status, json.dumps(body).encode(), "application/json")

    def _send(self, status: int, data: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None: ...


def serve(state: SpeechServer, port: int = 0) -> ThreadingHTTPServer:
    handler = type("Handler", (Handler,), {"state": state})
    server = ThreadingHTTPServer(("127.0.0.1", port), handler)
    server.daemon_threads = True
    state.url = f"http://127.0.0.1:{server.server_port}"
    return server


@contextmanager
def stand_in(**choices: Any) -> Iterator[SpeechServer]:
    """A server in threads of this process."""
    state = SpeechServer(**choices)
    server = serve(state)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()


USAGE = """qwentts.cpp a8a7716 (2026-08-07)

Usage: tts-server --model <gguf> --codec <gguf> [options]

Required:
  --model <gguf>          Talker LM GGUF (qwen-talker-*.gguf)
  --codec <gguf>          Codec GGUF (qwen-tokenizer-*.gguf)

Optional:
  --alias <name>          Report this model id instead of the GGUF file name
  --host <ip>             Listen address (default: 127.0.0.1)
  --port <n>              Listen port (default: 8080)
  --lang <name>           Language label (default: auto)
  --max-batch <n>         Concurrent requests batched on the GPU (default: 1)
  --no-fa                 Disable flash attention
  --clamp-fp16            Clamp hidden states to FP16 range
  --codec-chunk-dur <f>   Codec decode chunk duration in seconds, wav responses (default: 24.0)
"""
VALUES = ("--model", "--codec", "--alias", "--host", "--port", "--lang", "--max-batch", "--codec-chunk-dur")


def main(words: list[str]) -> int:
    """The program: exit code 0 also where model or codec are missing, as with the real one."""
    given: dict[str, str] = {}
    while words:
        word = words.pop(0)
        if word in VALUES and words:
            given[word] = words.pop(0)
        elif word in ("--help", "-h"):
            print(USAGE, file=sys.stderr)
            return 0
        elif word not in ("--no-fa", "--clamp-fp16"):
            print(f"[CLI] ERROR: unknown arg: {word}\n{USAGE}", file=sys.stderr)
            return 1
    if not {"--model", "--codec"} <= set(given):
        print(USAGE, file=sys.stderr)
        return 0
    for path in (given["--model"], given["--codec"]):
        if struct.unpack("<4s", Path(path).read_bytes()[:4])[0] != b"GGUF":
            print(f"[Server] FATAL: {path} is no GGUF", file=sys.stderr)
            return 1
    file = Path(given["--model"]).name
    kind = next((kind for kind in ("custom_voice", "voice_design") if kind in file), "base")
    speakers = ("serena", "ryan") if kind == "custom_voice" else ()
    state = SpeechServer(kind, speakers=speakers, alias=given.get("--alias") or file)
    serve(state, int(given.get("--port", "8080"))).serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
