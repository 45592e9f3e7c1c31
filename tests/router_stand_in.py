"""A router for tests: it listens on a free port and replays recorded answers, or what a test puts in their place."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "data"


def recorded(router: str, about: str) -> dict[str, Any]:
    """One recorded answer by its description."""
    answers = json.loads((DATA / f"{router}-answers.json").read_text(encoding="utf-8"))["answers"]
    return next(answer for answer in answers if answer["about"] == about)


@dataclass
class StandIn:
    """`answers`: (method, path) -> recorded answers, the last of which is given again and again."""

    url: str = ""
    answers: dict[tuple[str, str], list[dict[str, Any]]] = field(default_factory=dict)
    asked: list[tuple[str, str, str]] = field(default_factory=list)
    """Method, path and body of every request."""
    headers: list[dict[str, str]] = field(default_factory=list)

    def answer(self, method: str, path: str, *answers: dict[str, Any]) -> None:
        self.answers[method, path] = list(answers)

    def replay(self, router: str, *abouts: str) -> None:
        """The recorded answers of these descriptions, each at the address it was recorded for."""
        for about in abouts:
            item = recorded(router, about)
            self.answers.setdefault((item["request"]["method"], item["request"]["path"]), []).append(item)

    def next_answer(self, method: str, path: str) -> dict[str, Any]:
        found = self.answers.get((method, path))
        if not found:
            return {"status": 404, "body": '{"error":{"code":404,"message":"File Not Found"}}'}
        return found.pop(0) if len(found) > 1 else found[0]


@contextmanager
def stand_in() -> Iterator[StandIn]:
    state = StandIn()

    class Handler(BaseHTTPRequestHandler):
        def _serve(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
            state.asked.append((self.command, self.path, body))
            state.headers.append(dict(self.headers))
            answer = state.next_answer(self.command, self.path)
            data = answer["body"].encode()
            self.send_response(answer["status"])
            for name, value in answer.get("send", {}).items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = _serve

        def log_message(self, *_: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
