"""Servers that speak the protocols of the real engines, as far as a test launch asks them, and refuse as these do.

`main(engine)` is the whole program: it takes the real one's flags. `serving(engine, ...)` runs one inside a test.
"""

from __future__ import annotations

import base64
import contextlib
import json
import signal
import sys
import threading
from email.parser import BytesParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

PNG = b"\x89PNG\r\n\x1a\n"
WAV = b"RIFF\x24\x00\x00\x00WAVEfmt "


class Refusal(Exception):
    """An answer other than 200."""

    def __init__(self, status, message):
        self.status, self.message = status, message
        super().__init__(message)


class Engine:
    """One engine: what it was started with, and how far its job is."""

    def __init__(self, options):
        self.options, self.looks, self.model = options, 0, options.get("model", "")

    def get(self, path, query):
        if path == "/health":
            return {"status": "ok"}
        raise Refusal(404, "File Not Found")


class Llama(Engine):
    """llama-server; a 501 where the model or a flag is missing for what is asked."""

    def post(self, path, query, content_type, data):
        body = json.loads(data)
        if path == "/v1/chat/completions" and body["messages"] and body["max_tokens"]:
            return {"choices": [{"message": {"role": "assistant", "content": "t"}}]}
        if path == "/v1/embeddings" and body["input"]:
            return {"object": "list", "data": [{"embedding": [0.5], "index": 0}]}
        if path == "/v1/rerank" and body["query"] and body["documents"]:
            if "reranking" not in self.options:
                raise Refusal(501, "This server does not support reranking. Start it with `--reranking`")
            return {"results": [{"index": 0, "relevance_score": 0.5}]}
        if path == "/v1/systemone" and body["state"]:
            kinds = {name: question["type"] for name, question in body["questions"].items()}
            if not set(kinds.values()) <= {"choice", "score", "noul"}:
                raise Refusal(400, "unknown question type")
            return {"answers": {name: {"type": kind, kind: 0.6} for name, kind in kinds.items()}}
        raise Refusal(404, "File Not Found")


class Vllm(Engine):
    """It knows its model by the served name only, and chats only with models that have a template."""

    def post(self, path, query, content_type, data):
        body = json.loads(data)
        if body["model"] != self.options["served-model-name"]:
            raise Refusal(404, f"The model `{body['model']}` does not exist.")
        if path == "/v1/completions" and body["prompt"]:
            return {"choices": [{"text": "t", "finish_reason": "length"}]}
        raise Refusal(400, "default chat template is no longer allowed")


class Sd(Engine):
    """sd-server: no health route, pictures at once, clips as jobs."""

    def get(self, path, query):
        if path == "/":
            return b"<html>Stable Diffusion Server</html>"
        if path == "/sdcpp/v1/jobs/job_1":
            self.looks += 1
            return {"id": "job_1", "status": ["queued", "generating", "completed"][min(self.looks, 3) - 1]}
        raise Refusal(404, "")

    def post(self, path, query, content_type, data):
        body = json.loads(data)
        if not body.get("prompt") or body["width"] % 64 or body["height"] % 64:
            raise Refusal(400, "prompt required")
        if path == "/sdapi/v1/txt2img" and body["steps"] == 1:
            return {"images": [base64.b64encode(PNG).decode()], "parameters": body, "info": ""}
        if path == "/sdcpp/v1/vid_gen" and body["sample_params"]["sample_steps"] == 1:
            return {"id": "job_1", "kind": "vid_gen", "status": "queued", "poll_url": "/sdcpp/v1/jobs/job_1"}
        raise Refusal(404, "")


class Qwentts(Engine):
    """`type` is one of its three types of models, with what each demands and refuses."""

    def get(self, path, query):
        if path == "/v1/audio/voices":
            custom = self.options.get("type") == "custom_voice"
            return {"voices": [{"name": "serena", "kind": "speaker"}] if custom else []}
        return super().get(path, query)

    def post(self, path, query, content_type, data):
        body, kind = json.loads(data), self.options.get("type", "base")
        if path != "/v1/audio/speech" or not body.get("input") or body["response_format"] != "wav":
            raise Refusal(400, "'input' is out of domain")
        if kind == "voice_design" and not body.get("instructions"):
            raise Refusal(400, "voice_design models need instructions")
        if kind == "custom_voice" and body.get("voice") != "serena":
            raise Refusal(502, "unknown speaker")
        if kind == "base" and body.get("instructions"):
            raise Refusal(400, "base models take no instructions")
        return b"" if kind == "broken" else WAV


class Ttscpp(Engine):
    """It refuses every model name but the stem of its file, and lists voices by that stem."""

    def __init__(self, options):
        super().__init__(options)
        self.stem = Path(options["model-path"]).stem

    def get(self, path, query):
        return {self.stem: ["af", "bm"]} if path == "/v1/audio/voices" else super().get(path, query)

    def post(self, path, query, content_type, data):
        body = json.loads(data)
        if body.get("model") != self.stem:
            raise Refusal(400, f"Invalid Model: {body.get('model')}")
        if path != "/v1/audio/speech" or body.get("voice", "af") not in ("af", "bm"):
            raise Refusal(400, "no such voice")
        return WAV


class Audiocpp(Engine):
    """It has no model flag: everything stands in its JSON file. Some families speak with a recording only."""

    def __init__(self, options):
        super().__init__(options)
        config = json.loads(Path(options["config"]).read_text())
        assert config["lazy_load"] is False
        (self.entry,) = config["models"]

    def get(self, path, query):
        return {"voices": []} if path == "/v1/audio/voices" else super().get(path, query)

    def post(self, path, query, content_type, data):
        if path == "/v1/audio/transcriptions":
            fields = form(content_type, data)
            self._known(fields["model"].decode())
            if not fields["file"].startswith(b"RIFF"):
                raise Refusal(400, "not a WAV file")
            return {"text": ""}
        body = json.loads(data)
        self._known(body["model"])
        if path == "/v1/tasks/run":
            return self._task(body["request"])
        if self.entry["family"] == "echo_tts":
            self._file(body.get("voice_ref", ""))
        return WAV

    def _task(self, request):
        if self.entry["task"] == "gen":
            if self.entry["family"] != "ace_step" and "num_inference_steps" in request:
                raise Refusal(500, "unknown option num_inference_steps")
            return {"audio": base64.b64encode(WAV).decode()} if request["text"] else {}
        self._file(request["audio"])
        return {"stems": ["drums"]}

    def _known(self, model):
        if model != self.entry["id"]:
            raise Refusal(500, f"unknown model id: {model}")

    def _file(self, path):
        if not path or not Path(path).read_bytes().startswith(b"RIFF"):
            raise Refusal(500, "a reference recording is required")


class Parakeet(Engine):
    def post(self, path, query, content_type, data):
        fields = form(content_type, data)
        if path != "/v1/audio/transcriptions" or not fields.get("file", b"").startswith(b"RIFF"):
            raise Refusal(400, "could not decode audio; this example accepts WAV uploads only")
        return {"text": "hm"}


class Sam(Engine):
    """Its masks are garbage on a GPU. SAM 2 knows no words, and `type` words knows no box."""

    def post(self, path, query, content_type, data):
        body = json.loads(data)
        assert "no-gpu" in self.options
        _, _, encoded = body["image"].rpartition(",")
        prompt = "text" if self.options.get("type") == "words" else "box"
        if path != "/v1/segment" or not base64.b64decode(encoded).startswith(PNG) or prompt not in body:
            raise Refusal(400, f"{prompt} is required")
        return {"instances": [{"score": 0.9, "bbox": [16, 16, 48, 48], "mask": base64.b64encode(PNG).decode()}]}


class Trellis(Engine):
    """The picture is the body; what a person may choose stands in the address."""

    def post(self, path, query, content_type, data):
        if path != "/v1/3d/generations" or not data.startswith(PNG) or content_type != "image/png":
            raise Refusal(400, "not an image")
        if query["pipeline"] != ["512"] or query["shape_only"] != ["1"]:
            raise Refusal(400, "unknown pipeline")
        return b"glTF" + b"\0" * 6_000_000


ENGINES = {
    "llama": Llama,
    "vllm": Vllm,
    "sd": Sd,
    "tts": Qwentts,
    "ttscpp": Ttscpp,
    "audiocpp": Audiocpp,
    "asr": Parakeet,
    "sam": Sam,
    "trellis2": Trellis,
}
SWITCHES = ("no-gpu", "reranking", "mesh-postprocess-simplify", "diffusion-fa", "vae-tiling")


def form(content_type, data):
    """Name -> bytes of a multipart body, read by the standard library rather than by what wrote it."""
    message = BytesParser().parsebytes(b"Content-Type: " + content_type.encode() + b"\r\n\r\n" + data)
    assert message.is_multipart(), content_type
    parts = message.get_payload()
    return {part.get_param("name", header="content-disposition"): part.get_payload(decode=True) for part in parts}


def options_of(words):
    """`--name value` pairs; a switch stands alone."""
    found, rest = {}, list(words)
    while rest:
        word = rest.pop(0)
        if word.startswith("-"):
            name = word.lstrip("-")
            alone = name in SWITCHES or not rest or rest[0].startswith("-")
            found[name] = "" if alone else rest.pop(0)
    return found


def answering(engine):
    class Answers(BaseHTTPRequestHandler):
        def log_message(self, *args):
            print("request", self.command, self.path, flush=True)

        def _send(self, work):
            parts = urlsplit(self.path)
            try:
                answer, status = work(parts.path, parse_qs(parts.query)), 200
            except Refusal as refusal:
                status = refusal.status
                answer = {"error": {"message": refusal.message, "type": "invalid_request_error"}}
            data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def do_GET(self):
            self._send(engine.get)

        def do_POST(self):
            data = self.rfile.read(int(self.headers["Content-Length"]))
            self._send(lambda path, query: engine.post(path, query, self.headers["Content-Type"], data))

    return Answers


@contextlib.contextmanager
def serving(name, **options):
    """The port of an engine while the block runs."""
    engine = ENGINES[name]({key.replace("_", "-"): value for key, value in options.items()})
    server = ThreadingHTTPServer(("127.0.0.1", 0), answering(engine))
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


def main(name):
    options = options_of(sys.argv[1:])
    print("starting", *sys.argv[1:], flush=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    port = int(options.get("port") or options["listen-port"])
    ThreadingHTTPServer(("127.0.0.1", port), answering(ENGINES[name](options))).serve_forever()
