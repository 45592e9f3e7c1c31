"""The app of job rows and their progress."""

from __future__ import annotations

from django.apps import AppConfig


class JobsConfig(AppConfig):
    name = "quartermaster_site.jobs"
    label = "jobs"
    verbose_name = "Jobs"
