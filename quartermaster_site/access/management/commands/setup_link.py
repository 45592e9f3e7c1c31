"""Prints a fresh one-time setup link while there is no administrator."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from quartermaster_site.access.selectors import administrator_exists
from quartermaster_site.access.services import issue_setup_token
from quartermaster_site.preparation import noted_address


class Command(BaseCommand):
    help = "Print a fresh one-time setup link; an earlier one stops working."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--base", help="address of the site, for the link (where it was last started)")

    def handle(self, *args: Any, **options: Any) -> None:
        if administrator_exists():
            raise CommandError("There is an administrator already. To get back in, use the command set_password.")
        base = options["base"] or noted_address()
        self.stdout.write(f"{base.rstrip('/')}/setup/?token={issue_setup_token()}")
