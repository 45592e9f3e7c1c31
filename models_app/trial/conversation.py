"""Requests to a server that was just started on this machine. What it answers is foreign: size and time are bounded."""

from __future__ import annotations

import http.client
import json
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpus_app.core.errors import QuartermasterError
from models_app.router.connection import printable

KEPT_BYTES = 4 << 20
MOST_BYTES = 1 << 30
"""A mesh may have hundreds of megabytes: it is read to its end, and its beginning is kept."""
CONNECT_SECONDS = 5.0
JSON = "application/json"
_CHUNK_BYTES = 1 << 16


class NotAnswered(QuartermasterError):
    """No answer, or one that is none. `status` is 0 where nothing came back."""

    def __init__(self, text: str, status: int = 0) -> None:
        super().__init__(text)
        self.status = status


@dataclass(frozen=True, slots=True)
class Answer:
    """The beginning of what came back, and how long the whole was."""

    data: bytes
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Conversation:
    """With the server on one port of the loopback address. `folder` is for files that it reads from disk."""

    port: int
    model: str
    folder: Path
    end: float
    """Of everything, on the monotonic clock."""

    def get(self, path: str, seconds: float = 0.0) -> Answer:
        return self._exchange("GET", path, None, "", seconds)

    def post(self, path: str, data: bytes, content_type: str) -> Answer:
        return self._exchange("POST", path, data, content_type, 0.0)

    def post_json(self, path: str, body: Mapping[str, Any]) -> Answer:
        return self.post(path, json.dumps(body).encode(), JSON)

    def post_form(self, path: str, fields: Mapping[str, str], name: str, file_name: str, data: bytes) -> Answer:
        """Fields and one file as a browser would send them."""
        edge = secrets.token_hex(16)
        parts = [
            f'--{edge}\r\nContent-Disposition: form-data; name="{key}"\r\n\r\n{value}\r\n'.encode()
            for key, value in fields.items()
        ]
        head = f'--{edge}\r\nContent-Disposition: form-data; name="{name}"; filename="{file_name}"\r\n'
        parts += [
            head.encode(),
            b"Content-Type: application/octet-stream\r\n\r\n",
            data,
            f"\r\n--{edge}--\r\n".encode(),
        ]
        return self.post(path, b"".join(parts), f"multipart/form-data; boundary={edge}")

    def _exchange(self, method: str, path: str, data: bytes | None, content_type: str, seconds: float) -> Answer:
        end = min(self.end, time.monotonic() + seconds) if seconds else self.end
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=CONNECT_SECONDS)
        try:
            connection.connect()
            _limit(connection, end)
            headers = {"Connection": "close", **({"Content-Type": content_type} if content_type else {})}
            connection.request(method, path, body=data, headers=headers)
            response = connection.getresponse()
            answer = _read(connection, response, end)
        except TimeoutError as error:
            raise NotAnswered("it took too long") from error
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise NotAnswered(printable(str(error)) or type(error).__name__) from error
        finally:
            connection.close()
        if not 200 <= response.status < 300:
            raise NotAnswered(f"status {response.status}: {_reason(answer.data)}".rstrip(": "), response.status)
        return answer


def object_of(answer: Answer, key: str) -> dict[str, Any]:
    """The object that was answered. Raises NotAnswered where it is none, or lacks `key`."""
    try:
        value = json.loads(answer.data)
    except (ValueError, RecursionError) as error:
        raise NotAnswered(f"the answer is no JSON: {printable(_text(answer.data))[:100]}") from error
    if not isinstance(value, dict) or key not in value:
        raise NotAnswered(f"the answer has no {key}: {printable(_text(answer.data))[:100]}")
    return value


def _limit(connection: http.client.HTTPConnection, end: float) -> None:
    left = end - time.monotonic()
    if left <= 0:
        raise TimeoutError
    if connection.sock is not None:
        connection.sock.settimeout(left)


def _read(connection: http.client.HTTPConnection, response: http.client.HTTPResponse, end: float) -> Answer:
    kept, size = bytearray(), 0
    while chunk := response.read1(_CHUNK_BYTES):
        size += len(chunk)
        kept += chunk[: KEPT_BYTES - len(kept)]
        if size > MOST_BYTES:
            raise ValueError(f"the answer is longer than {MOST_BYTES >> 20} MiB")
        _limit(connection, end)
    if response.length:
        raise ValueError("the answer broke off")
    return Answer(bytes(kept), size)


def _reason(data: bytes) -> str:
    """The message of an error: nearly all of these servers put it where llama.cpp does."""
    try:
        error = json.loads(data)["error"]
        return printable(str(error["message"] if isinstance(error, dict) else error))
    except (ValueError, LookupError, TypeError, RecursionError):
        return printable(_text(data))


def _text(data: bytes) -> str:
    return data[:2000].decode("utf-8", "replace")
