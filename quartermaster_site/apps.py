"""The app of the site itself: system checks and template tags."""

from __future__ import annotations

from django.apps import AppConfig


class SiteConfig(AppConfig):
    name = "quartermaster_site"
    label = "site"
    verbose_name = "Quartermaster"

    def ready(self) -> None:
        from quartermaster_site import checks  # noqa: F401 - registers the system checks
