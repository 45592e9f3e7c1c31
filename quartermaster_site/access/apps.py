"""The app of accounts, roles and the audit log."""

from __future__ import annotations

from django.apps import AppConfig


class AccessConfig(AppConfig):
    name = "quartermaster_site.access"
    label = "access"
    verbose_name = "Access"

    def ready(self) -> None:
        from quartermaster_site.access import sign_ins  # noqa: F401 - connects the signals
