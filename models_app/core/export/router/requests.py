"""How the routers resolve and scope requests, and what they answer (router-api.md 3, 4, 7)."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from models_app.core.errors import ExportError

CTX_MARK = "?ctx="
MIN_CTX = 512
MAX_CTX = 4_194_304
DIGITS = re.compile(r"[+-]?[0-9]{1,19}", re.ASCII)


class CtxRequest(NamedTuple):
    """A request name taken apart. `ok` is false for an ordinary name, which is then `base`."""

    base: str
    ctx: int
    ok: bool


def parse_ctx_request(name: str) -> CtxRequest:
    """`<id or alias>?ctx=<n>` of the reference router; n is an integer from 512 to 4194304."""
    base, mark, figure = name.rpartition(CTX_MARK)
    if mark and base and DIGITS.fullmatch(figure.strip()):
        ctx = int(figure)
        if MIN_CTX <= ctx <= MAX_CTX:
            return CtxRequest(base, ctx, True)
    return CtxRequest(name, 0, False)


def real_model(models: Collection[str], aliases: Mapping[str, str], name: str) -> str:
    """The id behind a plain name, "" for none. An id beats an alias of the same text."""
    return name if name in models else aliases.get(name, "")


def resolve_ctx_request(models: Collection[str], aliases: Mapping[str, str], name: str) -> str:
    """The model that a `?ctx=` name resolves to, "" for none and for an ordinary name."""
    request = parse_ctx_request(name)
    return real_model(models, aliases, request.base) if request.ok else ""


class Scope(NamedTuple):
    """What a client sees and gets."""

    listed: list[str]
    status: int


def scope_check(
    models: Sequence[str],
    unlisted: Collection[str],
    request_model: str,
    *,
    key_models: Collection[str] = (),
    listener_models: Collection[str] | None = None,
) -> Scope:
    """Catalogue and dispatch under a key's scope (empty: every model) and a listener's (None: every model).

    Both must pass. They look at the real id, so a `?ctx=` name cannot widen them.
    """

    def in_key(model: str) -> bool:
        return not key_models or model in key_models

    def on_listener(model: str) -> bool:
        return listener_models is None or model in listener_models

    listed = [model for model in models if model not in unlisted and in_key(model) and on_listener(model)]
    known = {*models, *unlisted}
    request = parse_ctx_request(request_model)
    real = request.base if request.ok and request_model not in known else request_model
    if real not in known or not on_listener(real):
        return Scope(listed, 404)
    return Scope(listed, 200 if in_key(real) else 403)


MODALITY_FLAGS = (
    ("audio", "text", "audio_transcriptions"),
    ("text", "audio", "audio_speech"),
    ("text", "image", "image_generation"),
    ("image", "image", "image_to_image"),
)
"""Input, output -> the flag that llama-swap shows for the pair."""


def v1_models_record(capabilities: Mapping[str, Any]) -> dict[str, Any]:
    """The part of llama-swap's `/v1/models` record that comes from a capabilities block."""
    ins, outs = list(capabilities.get("in") or ()), list(capabilities.get("out") or ())
    record: dict[str, Any] = {}
    architecture = {name: items for name, items in (("input_modalities", ins), ("output_modalities", outs)) if items}
    if ins and outs:
        architecture["modality"] = f"{'+'.join(ins)}->{'+'.join(outs)}"  # type: ignore[assignment]
    if architecture:
        record["architecture"] = architecture
    flags = {flag: True for first, last, flag in MODALITY_FLAGS if first in ins and last in outs}
    if "image" in ins:
        flags["vision"] = True
    if capabilities.get("tools"):
        flags["function_calling"] = True
        record["supported_parameters"] = ["tools", "tool_choice"]
    if capabilities.get("reranker"):
        flags["reranker"] = True
    if flags or architecture:
        record["capabilities"] = flags
    if context := capabilities.get("context") or 0:
        record["context_length"] = context
        record["meta"] = {"n_ctx": context}
    return record


def upstream_split(models: Collection[str], path: str) -> tuple[str, str]:
    """Model and rest of an `/upstream/…` path; the longest leading part that names a model wins, ("", "") for none."""
    parts = path.strip().removeprefix("/upstream").split("/")
    found = ("", "")
    name = ""
    for index, part in enumerate(parts):
        if not part:
            continue
        name = f"{name}/{part}" if name else part
        if name in models:
            found = (name, "/" + "/".join(parts[index + 1 :]))
    return found


def decode_event(text: str) -> tuple[str, Any]:
    """Type and data of one server-sent event of `/api/events`: JSON inside JSON. Raises `ExportError`."""
    payload = "\n".join(
        line.partition(":")[2].removeprefix(" ") for line in text.splitlines() if line.startswith("data:")
    )
    try:
        event = json.loads(payload)
        return str(event["type"]), json.loads(event["data"])
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise ExportError("this is not an event of the router") from error
