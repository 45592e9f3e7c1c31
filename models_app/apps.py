"""The app of roots, rows, plans and revisions."""

from __future__ import annotations

from django.apps import AppConfig


class ModelsConfig(AppConfig):
    name = "models_app"
    label = "models_app"
    verbose_name = "Models"

    def ready(self) -> None:
        from models_app.services import routers, sampling, target_looks, voice_jobs, watching  # noqa: F401  connects signals
