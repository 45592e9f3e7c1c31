"""The way back in for those whom the network list keeps out."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from quartermaster_site.access.allow_list import clear_list
from quartermaster_site.access.audit import Actor


class Command(BaseCommand):
    help = "Empty the network list, from the next request on: every address may reach the sign-in page again."

    def handle(self, *args: Any, **options: Any) -> None:
        gone = clear_list(actor=Actor())
        for rule in gone:
            self.stdout.write(str(rule))
        self.stdout.write(
            f"{len(gone)} rows are gone; every address may reach the sign-in page."
            if gone
            else "The list was empty already: every address may reach the sign-in page."
        )
