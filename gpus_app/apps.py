"""The app of hosts, devices and budgets."""

from __future__ import annotations

from django.apps import AppConfig


class GpusConfig(AppConfig):
    name = "gpus_app"
    label = "gpus_app"
    verbose_name = "Hosts"
