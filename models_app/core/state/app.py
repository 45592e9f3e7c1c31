"""Process settings: layers, the form, what a page may see (state.md 10)."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from models_app.core.settings import AppSettings, record_from_mapping

TOKEN_VARIABLES = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HUGGINGFACE_TOKEN")
"""Environment variables that win over the stored token, in this order."""


@dataclass(frozen=True, slots=True)
class AppForm:
    """What a page shows of a stored block: the token never, only whether there is one."""

    settings: AppSettings
    admin_open: bool
    watch_models: bool
    update_check: bool
    hf_token_set: bool


def layer_app(*layers: AppSettings | None) -> AppSettings:
    """Effective settings, the strongest layer first: arguments, sidecar, file, built-in.

    Blank, 0 and None inherit; an explicit false is a value.
    """
    values: dict[str, Any] = {}
    for item in fields(AppSettings):
        for layer in layers:
            value = None if layer is None else getattr(layer, item.name)
            if value is False or value:
                values[item.name] = value
                break
    return AppSettings(**values)


def shown_app(stored: AppSettings) -> AppForm:
    """Unset switches read as what they do: dashboard closed, watching on, update check on."""
    return AppForm(
        settings=replace(stored, hf_token=""),
        admin_open=stored.admin_open is True,
        watch_models=stored.watch_models is not False,
        update_check=stored.update_check is not False,
        hf_token_set=bool(stored.hf_token),
    )


def save_app(stored: AppSettings, body: Mapping[str, Any]) -> tuple[AppSettings, dict[str, str]]:
    """The block to store and the errors by key; with errors the stored block comes back unchanged.

    The form sends everything and replaces the block. A blank token keeps the stored one; `hfTokenClear` empties it and
    beats a token sent with it.
    """
    sent = record_from_mapping(AppSettings, {key: value for key, value in body.items() if key != "hfTokenClear"})
    errors = app_errors(sent)
    if errors:
        return stored, errors
    token = "" if body.get("hfTokenClear") is True else sent.hf_token.strip() or stored.hf_token
    return (
        replace(
            sent,
            listen=sent.listen.strip(),
            playground_listen=sent.playground_listen.strip(),
            admin_allow=sent.admin_allow.strip(),
            hf_token=token,
        ),
        {},
    )


def app_errors(form: AppSettings) -> dict[str, str]:
    """What is wrong with a form, by YAML key."""
    errors: dict[str, str] = {}
    for key, address in (("listen", form.listen), ("playgroundListen", form.playground_listen)):
        if address.strip() and not is_address(address.strip()):
            errors[key] = "Give an address as host:port, for example 127.0.0.1:1250."
    for item in filter(None, (part.strip() for part in form.admin_allow.split(","))):
        try:
            ipaddress.ip_network(item, strict=False)
        except ValueError:
            errors["adminAllow"] = f"{item[:64]} is neither an IP address nor a network such as 10.0.0.0/8."
    if form.watch_models_interval_sec < 0:
        errors["watchModelsIntervalSec"] = "The interval is 0 or more seconds."
    return errors


def is_address(text: str) -> bool:
    """`host:port`; the host may be blank (all addresses) or an IPv6 address in brackets."""
    host, mark, port = text.rpartition(":")
    if not mark or not (port.isascii() and port.isdigit()) or int(port[:6]) > 65535:
        return False
    if host.startswith("["):
        return host.endswith("]")
    return ":" not in host and not any(char.isspace() for char in host)


def restart_needed(stored: AppSettings, running: AppSettings) -> bool:
    """Whether the running process still uses other settings."""
    return stored != running
