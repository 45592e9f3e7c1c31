"""Lets an editor write custom launch arguments, or takes that back."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from quartermaster_site.access.audit import Actor, record
from quartermaster_site.access.models import Account


class Command(BaseCommand):
    help = "Let an editor write custom launch arguments; --revoke takes it back. Admins may anyway."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("username")
        parser.add_argument("--revoke", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        account = Account.objects.select_related("user").filter(user__username=options["username"]).first()
        if account is None:
            raise CommandError(f"There is nobody named {options['username']!r}.")
        granted = not options["revoke"]
        if account.custom_args != granted:
            record(Actor(), "user.custom-args", subject=account, changes={"custom_args": [not granted, granted]})
            account.custom_args = granted
            account.save(update_fields=["custom_args"])
        self.stdout.write(f"{account.user.get_username()} {'may' if granted else 'may not'} write launch arguments.")
