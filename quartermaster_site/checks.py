"""System checks of the site, with stable ids. None stops a start: what would is refused in `env.py`."""

from __future__ import annotations

import stat
from collections.abc import Callable, Sequence
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Tags, Warning, register  # noqa: A004 - Django's own name
from django.db import connections

Check = Callable[..., list[CheckMessage]]


@register(Tags.security)
def allowed_hosts(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """qm.W001"""
    if "*" not in settings.ALLOWED_HOSTS:
        return []
    hint = "Name the addresses under which the site is reached."
    return [Warning("QM_ALLOWED_HOSTS accepts every host name.", hint=hint, id="qm.W001")]


@register(Tags.security)
def debug_off(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """qm.W002"""
    if not settings.DEBUG:
        return []
    hint = "Unset it wherever other people can reach the site."
    return [Warning("QM_DEBUG is on: error pages show code and settings.", hint=hint, id="qm.W002")]


@register(Tags.security)
def private_data_folder(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """qm.W003"""
    try:
        mode = stat.S_IMODE(settings.DATA_DIR.stat().st_mode)
    except OSError:
        return []
    if not mode & 0o077:
        return []
    message = f"Other users of this machine can look into the data folder {settings.DATA_DIR}."
    return [Warning(message, hint=f"chmod 700 {settings.DATA_DIR}", id="qm.W003")]


@register(Tags.database)
def sqlite_writes_ahead(
    app_configs: Sequence[AppConfig] | None, databases: Sequence[str] | None = None, **kwargs: Any
) -> list[CheckMessage]:
    """qm.W004"""
    connection = connections["default"]
    if "default" not in (databases or ()) or connection.vendor != "sqlite":
        return []
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA journal_mode")
        mode = str(cursor.fetchone()[0])
    if mode in ("wal", "memory"):
        return []
    hint = "The data folder is probably on a network share: put it on a local disk, or use PostgreSQL."
    return [Warning(f"SQLite runs in journal mode {mode}, so readers and writers block.", hint=hint, id="qm.W004")]


@register(Tags.security)
def trusted_proxies(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """qm.W005"""
    if all(network.prefixlen for network in settings.TRUSTED_PROXIES):
        return []
    message = "QM_TRUSTED_PROXIES trusts every address: anybody can claim to be at any other."
    return [Warning(message, hint="Name the addresses of the proxies.", id="qm.W005")]


CHECKS: tuple[Check, ...] = (allowed_hosts, debug_off, private_data_folder, sqlite_writes_ahead, trusted_proxies)
"""All of them; their ids are in the docstrings, and in docs/process.md."""
