"""What an agent asks its server over HTTP. Imports no Django; no redirects, no proxies, bounded answers."""

from __future__ import annotations

import http.client
import json
import platform
import ssl
import time
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import urlsplit

from gpus_app.core.errors import QuartermasterError, UsageError
from quartermaster_site.agent.identity import Identity
from quartermaster_site.version import PROTOCOL, product_version

_SECONDS = 10.0
_MOST_BYTES = 1 << 18
_API = "/api/v1/agents"


class Unreachable(QuartermasterError):
    """The server gives no usable answer: it may be away for a while."""


class Rejected(QuartermasterError):
    """The server knows this machine, its code or its version and does not want it; the sentence is its own."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None


def checked_server(text: str) -> str:
    """The address without a slash at its end. Raises UsageError."""
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise UsageError(f"--server {text}: write the address of the pages, like https://quartermaster.example.")
    return text.rstrip("/")


def about_this_machine() -> dict[str, Any]:
    return {"worker": platform.node()[:64], "version": product_version()[:32], "protocol": PROTOCOL}


def enrol(server: str, code: str, public_key: str, ca: str) -> dict[str, Any]:
    """The server's answer to a code. Raises Unreachable, Rejected."""
    return _post(server, "/enrol/", {"code": code, "public_key": public_key, **about_this_machine()}, ca, (403, 422))


def check(identity: Identity, instance: str, *, leaving: bool = False) -> dict[str, Any]:
    """What the server wants of this machine; an empty instance asks without claiming to run. The same errors.

    `leaving`: this agent stops by request, and another may take its place at once.
    """
    who = {"enrolment": identity.enrolment, "instance": instance, "leaving": leaving, "sent_at": time.time()}
    body = json.dumps({**who, **about_this_machine()})
    sent = {"body": body, "signature": identity.sign(body.encode())}
    # Any other refusal (a list of networks, say) may be over in a while: the agent goes on.
    return _post(identity.server, "/check/", sent, identity.server_ca, (410,))


def _post(server: str, path: str, data: dict[str, Any], ca: str, final: tuple[int, ...]) -> dict[str, Any]:
    request = urllib.request.Request(  # noqa: S310 - the scheme was checked
        server + _API + path, json.dumps(data).encode(), {"Content-Type": "application/json"}
    )
    try:
        with _opener(ca).open(request, timeout=_SECONDS) as response:
            answer = json.loads(response.read(_MOST_BYTES))
    except urllib.error.HTTPError as error:
        raise _refusal(server, error, final) from error
    except (OSError, ValueError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        raise Unreachable(f"{server} does not answer: {reason}.") from error
    if not isinstance(answer, dict):
        raise Unreachable(f"{server} gives an answer that is no object: is it a Quartermaster?")
    return answer


def _opener(ca: str) -> urllib.request.OpenerDirector:
    try:
        context = ssl.create_default_context(cafile=ca or None)
    except OSError as error:
        raise UsageError(f"--ca {ca}: cannot be used: {error}.") from error
    handlers = (urllib.request.ProxyHandler({}), _NoRedirects(), urllib.request.HTTPSHandler(context=context))
    return urllib.request.build_opener(*handlers)


def _refusal(server: str, error: urllib.error.HTTPError, final: tuple[int, ...]) -> QuartermasterError:
    try:
        problem = json.loads(error.read(_MOST_BYTES))["error"]
        message = str(problem["message"])
    except (OSError, ValueError, KeyError, TypeError):
        hint = ""
        if error.code == 400:
            hint = " Is its name among the server's QM_ALLOWED_HOSTS?"
        elif error.code in (301, 302, 307, 308):
            hint = f" It leads to {error.headers.get('Location')}: write that address."
        elif error.code == 403:
            hint = " Does its list of networks admit this machine?"
        return Unreachable(f"{server} answered {error.code}.{hint}")
    if error.code in final:
        return Rejected(message, error.code)
    return Unreachable(f"{server} answered {error.code}: {message}")
