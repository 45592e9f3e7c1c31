"""The way back in: sets a person's password and ends their sessions."""

from __future__ import annotations

from argparse import ArgumentParser
from getpass import getpass
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError

from quartermaster_site.access.services import set_password
from quartermaster_site.errors import Refused


class Command(BaseCommand):
    help = "Set a person's password, at once and for all sessions. Asks for it, or makes one with --generate."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("username")
        parser.add_argument("--generate", action="store_true", help="make a password and print it")

    def handle(self, *args: Any, **options: Any) -> None:
        user = get_user_model().objects.filter(username=options["username"]).first()
        if user is None:
            raise CommandError(f"There is nobody named {options['username']!r}.")
        given = None if options["generate"] else getpass("New password: ")
        try:
            password = set_password(user=user, password=given)
        except Refused as error:
            raise CommandError(" ".join(error.fields.values())) from error
        self.stdout.write(f"The password of {user.get_username()} is set; open sessions have ended.")
        if options["generate"]:
            self.stdout.write(password)
