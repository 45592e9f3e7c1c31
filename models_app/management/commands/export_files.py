"""`./quartermaster export`: what the page Export gives, on the command line."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError

from gpus_app.models import Host
from models_app.core.export.target import write_companion
from models_app.core.settings_files.archive import zip_of
from models_app.selectors.host_files import export_texts
from quartermaster_site.access.audit import Actor, record

PIPE = "-"
DJANGOS_OWN = {
    "--version",
    "--verbosity",
    "--settings",
    "--pythonpath",
    "--traceback",
    "--no-color",
    "--force-color",
    "--skip-checks",
}
"""Options of every command of Django, which mean nothing to a person here."""


class Command(BaseCommand):
    help = "What is set for a host as files: the router's file, generate file, sidecar, overrides as a table."
    requires_system_checks = ()
    suppressed_base_arguments = DJANGOS_OWN

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> Any:
        return super().create_parser("quartermaster", "export", **kwargs)

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("host", nargs="?", default="", help="the host's short name; may be left out where one is")
        parser.add_argument("--file", metavar="NAME", default="", help="this file alone")
        parser.add_argument("--with-secrets", action="store_true", help="keys and secrets are not masked")
        parser.add_argument(
            "-o", "--output", required=True, metavar="PLACE|-", help="a folder, or NAME.zip for an archive"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        with no_trace_of_a_closed_pipe():
            self._export(options)

    def _export(self, options: dict[str, Any]) -> None:
        try:
            host = the_host(options["host"])
            texts = export_texts(host, with_secrets=options["with_secrets"])
        except DatabaseError as error:
            raise CommandError(f"the database cannot be used ({error}): start ./quartermaster up once") from error
        if options["with_secrets"]:
            record(Actor(name="command line"), "config.export-secrets", subject=host, host_slug=host.slug)
        output, name = options["output"], options["file"]
        if name and name not in texts:
            raise CommandError(f"there is no file {name!r}: choose one of {', '.join(texts)}")
        if name or output == PIPE or output.endswith(".zip"):
            data = texts[name].encode() if name else zip_of({f"{host.slug}/{key}": text for key, text in texts.items()})
            self._write(output, data)
            return
        for file_name, text in texts.items():
            write_companion(str(Path(output) / file_name), text)
            self.stdout.write(str(Path(output) / file_name))

    def _write(self, output: str, data: bytes) -> None:
        if output == PIPE:
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
            return
        write_companion(output, data)
        self.stdout.write(output)


@contextmanager
def no_trace_of_a_closed_pipe() -> Iterator[None]:
    """Whoever read the answer has seen enough."""
    try:
        yield
    except BrokenPipeError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(1) from error


def the_host(slug: str) -> Host:
    """The host of that name, or the only one. Raises CommandError."""
    hosts = list(Host.objects.prefetch_related("settings", "devices").order_by("slug"))
    found = [host for host in hosts if host.slug == slug] if slug else hosts
    if len(found) == 1:
        return found[0]
    names = ", ".join(host.slug for host in hosts) or "there is none yet: start ./quartermaster up once"
    raise CommandError(f"{'there is no host ' + repr(slug) if slug else 'name the host'}: {names}")
