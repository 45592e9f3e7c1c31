"""The app of accounts, roles and the audit log."""

from __future__ import annotations

from django.apps import AppConfig


class AccessConfig(AppConfig):
    name = "quartermaster_site.access"
    label = "access"
    verbose_name = "Access"
