"""One request to a router, within limits. What answers is whatever listens at an address: nothing of it is believed.

No redirects and no proxies; address, size of the answer and time are bounded. No Django, no database: this runs where
the host's worker runs.
"""

from __future__ import annotations

import http.client
import json
import re
import ssl
import time
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from gpus_app.core.errors import QuartermasterError

MAX_ANSWER_BYTES = 16 << 20
"""2,000 models with their command lines are some 8 MB."""
MAX_REASON_CHARACTERS = 300
MAX_KEY_CHARACTERS = 400
CONNECT_SECONDS = 5.0
ANSWER_SECONDS = 15.0
_CHUNK_BYTES = 1 << 16
_CONTROL = re.compile(r"[\x00-\x20\x7f-\x9f]+")
_KEY = re.compile(r"[\x21-\x7e]*\Z")


class RouterError(QuartermasterError):
    """A router did not do what it was asked, in words for the person who asked."""


class RouterAway(RouterError):
    """No usable answer: nobody listens, it takes too long, or something else than a router answers."""


class AnswerCut(RouterAway):
    """The connection ended in the middle of an answer."""


class RouterRefused(RouterError):
    """The router answered with an error. `status` is the HTTP status, `reason` its own words.

    `from_router`: llama-swap marks its own errors; without the mark the model's server answered.
    """

    def __init__(self, status: int, reason: str, *, from_router: bool = True) -> None:
        self.status, self.reason, self.from_router = status, reason, from_router
        super().__init__(_in_words(status, reason))


def checked_url(text: str) -> str:
    """A router's base address without its last slash; "" for none. Raises ValueError with what is wrong."""
    text = text.strip()
    if not text:
        return ""
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("Write an address such as http://127.0.0.1:8080.")
    if parts.username or parts.password:
        raise ValueError("The key has a field of its own: leave it out of the address.")
    if parts.query or parts.fragment or _CONTROL.search(text) or not text.isascii() or len(text) > 300:
        raise ValueError("Only scheme, host, port and a path may stand in the address.")
    parts.port  # noqa: B018  raises for a port that is none
    return text.rstrip("/")


def is_sendable_key(key: str) -> bool:
    """A header holds printable ASCII only; anything else could end it."""
    return len(key) <= MAX_KEY_CHARACTERS and bool(_KEY.match(key))


@dataclass(frozen=True, slots=True)
class Connection:
    """A router's address and key. Each request has a connection of its own."""

    url: str
    key: str = field(default="", repr=False)

    def json(self, method: str, path: str, body: Any = None, *, seconds: float = ANSWER_SECONDS) -> dict[str, Any]:
        """The object that is answered. Raises RouterAway and RouterRefused."""
        text = self.text(method, path, body, seconds=seconds)
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise RouterAway(f"{self.url}{path} does not answer in JSON: no router that is known here") from error
        if not isinstance(value, dict):
            raise RouterAway(f"{self.url}{path} answers something else than an object")
        return value

    def text(self, method: str, path: str, body: Any = None, *, seconds: float = ANSWER_SECONDS) -> str:
        """The body of a good answer. Raises RouterAway and RouterRefused."""
        return self.data(method, path, body, seconds=seconds).decode("utf-8", "replace")

    def data(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        seconds: float = ANSWER_SECONDS,
        most_bytes: int = 0,
    ) -> bytes:
        """The bytes of a good answer, all of them; at most MAX_ANSWER_BYTES where no other bound is given.

        Raises RouterAway and RouterRefused.
        """
        if not is_sendable_key(self.key):
            raise RouterAway("the key holds characters that no header can carry")
        try:
            status, data = self._exchange(
                method, path, body, time.monotonic() + seconds, most_bytes or MAX_ANSWER_BYTES
            )
        except _TooLong as error:
            raise RouterAway(f"{self.url}: {error}") from error
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise RouterAway(f"{self.url} does not answer: {_why(error)}") from error
        if not 200 <= status < 300:
            text = data.decode("utf-8", "replace")
            raise RouterRefused(status, _reason_of(text), from_router=_is_marked(text))
        return data

    def _exchange(self, method: str, path: str, body: Any, end: float, most_bytes: int) -> tuple[int, bytes]:
        parts = urlsplit(self.url)
        connection = _opened(parts.scheme, parts.hostname or "", parts.port)
        try:
            connection.connect()
            headers = {"Accept": "application/json", "Connection": "close"}
            if self.key:
                headers["Authorization"] = f"Bearer {self.key}"
            data = None if body is None else json.dumps(body).encode()
            if data is not None:
                headers["Content-Type"] = "application/json"
            _limit(connection, end)
            connection.request(method, parts.path.rstrip("/") + path, body=data, headers=headers)
            answer = connection.getresponse()
            return answer.status, _read(connection, answer, end, most_bytes)
        finally:
            connection.close()


class _TooLong(ValueError):
    """More than anybody asked for."""


def _opened(scheme: str, host: str, port: int | None) -> http.client.HTTPConnection:
    if scheme == "https":
        return http.client.HTTPSConnection(host, port, timeout=CONNECT_SECONDS, context=ssl.create_default_context())
    return http.client.HTTPConnection(host, port, timeout=CONNECT_SECONDS)


def _limit(connection: http.client.HTTPConnection, end: float) -> None:
    left = end - time.monotonic()
    if left <= 0:
        raise TimeoutError("it took too long")
    if connection.sock is not None:
        connection.sock.settimeout(left)


def _read(
    connection: http.client.HTTPConnection, answer: http.client.HTTPResponse, end: float, most_bytes: int
) -> bytes:
    """All of an answer; a server that drips it out is left when the time is over. Raises AnswerCut."""
    parts: list[bytes] = []
    size = 0
    try:
        while chunk := answer.read1(_CHUNK_BYTES):
            parts.append(chunk)
            size += len(chunk)
            if size > most_bytes:
                raise _TooLong(f"its answer is longer than {most_bytes >> 20} MiB")
            _limit(connection, end)
    except (http.client.IncompleteRead, ConnectionResetError) as error:
        raise AnswerCut(_cut(size)) from error
    if answer.length:  # what its head announced and did not come: no error to `read1`
        raise AnswerCut(_cut(size))
    return b"".join(parts)


def _cut(size: int) -> str:
    return f"the connection ended in the middle of its answer, after {size:,} bytes"


def _why(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "it took too long"
    if isinstance(error, ConnectionRefusedError):
        return "nothing listens there"
    return printable(str(getattr(error, "strerror", None) or error) or type(error).__name__)


def printable(text: str) -> str:
    """Foreign text on one line, cut."""
    return _CONTROL.sub(" ", text).strip()[:MAX_REASON_CHARACTERS]


def _reason_of(text: str) -> str:
    """The message of an error answer: llama.cpp and llama-swap put it in the same place."""
    try:
        error = json.loads(text)["error"]
        return printable(str(error["message"] if isinstance(error, dict) else error))
    except (ValueError, LookupError, TypeError, RecursionError):
        return printable(text)


def _is_marked(text: str) -> bool:
    try:
        return "src" in json.loads(text)
    except (ValueError, TypeError, RecursionError):
        return False


def _in_words(status: int, reason: str) -> str:
    said = f": {reason}" if reason else ""
    if status == 401:
        return "the router wants a key, or another one than it was given (status 401): set it on the Router page"
    if status == 403:
        return f"the router refuses this address (status 403){said}: allow the worker's machine there"
    if 300 <= status < 400:
        return f"the router redirects (status {status}), which is not followed: set the address that it redirects to"
    return f"the router answers {status}{said}"
