"""`./quartermaster import`: what the pages of an import do, on the command line."""

from __future__ import annotations

import json
import time
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError

from gpus_app.models import Host
from models_app.core.export.dialects import BY_SLUG
from models_app.core.export.load import MAX_BYTES
from models_app.core.imports.allotting import EXACT
from models_app.core.imports.report import Item, Status, counts
from models_app.core.imports.settings_source import joined
from models_app.core.state.sidecar import FILE_NAME
from models_app.core.verbs.answers import shown as printable
from models_app.management.commands.export_files import DJANGOS_OWN, no_trace_of_a_closed_pipe, the_host
from models_app.models import ImportBatch
from models_app.pages.import_words import about, maps_to, shown
from models_app.services.import_applying import Choice, items_of_batch, start_apply
from models_app.services.import_undoing import undo_import
from models_app.services.importing import AUTO, CONFIG, SETTINGS, start_import
from quartermaster_site.access.audit import Actor
from quartermaster_site.access.models import Role
from quartermaster_site.errors import QuartermasterError, Refused

POLL_SECONDS = 0.3


class Command(BaseCommand):
    help = "Bring in a router's file, a generate file, a sidecar or an exported archive: report, take over, undo."
    requires_system_checks = ()
    suppressed_base_arguments = DJANGOS_OWN

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> Any:
        return super().create_parser("quartermaster", "import", **kwargs)

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", metavar="FILE", help="the file, or with --undo the number of an import")
        parser.add_argument("host", nargs="?", default="", help="the host's short name; may be left out where one is")
        parser.add_argument("--kind", choices=[AUTO, *BY_SLUG, SETTINGS], default=AUTO, help="what the file is")
        parser.add_argument("--sidecar", metavar="FILE", default="", help="the sidecar that goes with a generate file")
        parser.add_argument("--apply", action="store_true", help="take over what is new")
        parser.add_argument("--theirs", action="store_true", help="with --apply: what is set here already as well")
        parser.add_argument("--way", choices=["exact", "settings"], default=EXACT, help="how commands are taken over")
        parser.add_argument("--undo", action="store_true", help="take an import back")
        parser.add_argument("--as", dest="person", metavar="NAME", default="", help="the person who does it")
        parser.add_argument("--wait", type=int, default=300, metavar="SECONDS", help="for the workers, at most")
        parser.add_argument("--json", action="store_true", help="one JSON object and nothing else")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            with no_trace_of_a_closed_pipe():
                self._do(options)
        except DatabaseError as error:
            raise CommandError(f"the database cannot be used ({error}): start ./quartermaster up once") from error
        except Refused as error:
            raise CommandError(" ".join(dict.fromkeys([str(error), *filter(None, error.fields.values())]))) from error
        except QuartermasterError as error:
            raise CommandError(str(error)) from error

    def _do(self, options: dict[str, Any]) -> None:
        actor = the_actor(options["person"])
        if options["undo"]:
            self._undo(options["file"], actor)
        else:
            self._import(the_host(options["host"]), actor, options)

    def _import(self, host: Host, actor: Actor, options: dict[str, Any]) -> None:
        path, kind = Path(options["file"]), options["kind"]
        data, source = read(path), SETTINGS if kind == SETTINGS or options["sidecar"] else CONFIG
        if options["sidecar"]:
            data = joined(
                text_of(path, data), text_of(Path(options["sidecar"]), read(Path(options["sidecar"])))
            ).encode()
        elif kind == AUTO and looks_like_settings(path.name, data):
            source = SETTINGS
        dialect = AUTO if source == SETTINGS else kind
        batch = start_import(host=host, name=path.name, data=data, source=source, dialect=dialect, actor=actor)
        batch = finished(batch, options["wait"])
        if batch.state == ImportBatch.State.FAILED:
            raise CommandError(f"{path.name}: {batch.problem}")
        self._report(batch, options["json"])
        if options["apply"]:
            self._apply(batch, actor, options)

    def _report(self, batch: ImportBatch, as_json: bool) -> None:
        items = items_of_batch(batch)
        if as_json:
            answer = {"import": batch.pk, "counts": counts(items), "items": [_as_json(item) for item in items]}
            self.stdout.write(json.dumps(answer, separators=(",", ":")))
            return
        for item in items:
            self.stdout.write(_line(item))
        words = ", ".join(f"{number} {word}" for word, number in counts(items).items()) or "nothing in it"
        self.stdout.write(f"import {batch.pk}: {words}")

    def _apply(self, batch: ImportBatch, actor: Actor, options: dict[str, Any]) -> None:
        items = items_of_batch(batch)
        wanted = {Status.NEW, Status.CONFLICT} if options["theirs"] else {Status.NEW}
        models = batch.report.get("models", {})
        choice = Choice(
            sections=frozenset(item.section for item in items),
            ways={name: options["way"] if found["way"] == EXACT else found["way"] for name, found in models.items()},
            items=frozenset(
                number for number, item in enumerate(items) if item.status in wanted and item.section != "elsewhere"
            ),
        )
        start_apply(batch=batch, choice=choice, actor=actor)
        batch = finished(batch, options["wait"])
        if batch.state != ImportBatch.State.APPLIED:
            raise CommandError(f"nothing was taken over: {batch.problem or 'the job failed'}")
        if not options["json"]:
            self.stdout.write(f"taken over: {len(batch.applied)} rows; --undo {batch.pk} takes it back")

    def _undo(self, number: str, actor: Actor) -> None:
        known = number.isascii() and number.isdigit() and len(number) < 12
        batch = ImportBatch.objects.filter(pk=int(number)).first() if known else None
        if batch is None:
            raise CommandError(f"there is no import {number!r}")
        undo_import(batch=batch, actor=actor)
        self.stdout.write(f"import {batch.pk} is taken back")


def _line(item: Item) -> str:
    value = printable(shown(item.value, secret=item.secret))
    ours = f" (here: {printable(shown(item.ours, secret=item.secret))})" if item.status == Status.CONFLICT else ""
    note = f"  # {printable(item.note)}" if item.note else ""
    where = printable(f"{about(item.target)}{maps_to(item.target)}")
    return f"{item.line:>6}  {item.status.value:<18}{printable(item.source)} -> {where}: {value}{ours}{note}"


def _as_json(item: Item) -> dict[str, Any]:
    return {
        "source": item.source,
        "line": item.line,
        "status": item.status.value,
        "kind": item.target.kind.value,
        "subject": item.target.subject,
        "variant": item.target.variant,
        "field": item.target.field,
        "value": shown(item.value, secret=item.secret),
        "ours": shown(item.ours, secret=item.secret),
        "note": item.note,
    }


def looks_like_settings(name: str, data: bytes) -> bool:
    """A file of ours by its name, an archive, or a text that begins like a settings file and has no models."""
    if name == FILE_NAME or data[:2] == b"PK":
        return True
    keys = {line.partition(b":")[0] for line in data.splitlines() if line[:1].isalpha() and b":" in line}
    return bool(keys & {b"settings", b"overrides"}) and b"models" not in keys


def the_actor(name: str) -> Actor:
    """The person of that name, or the only administrator. Raises CommandError."""
    people = get_user_model().objects.filter(is_active=True)
    found = list(people.filter(username=name) if name else people.filter(account__role=Role.ADMIN))
    if len(found) == 1:
        return Actor(user=found[0], name=found[0].get_username())
    raise CommandError(f"there is nobody named {name!r}" if name else "say who does this with --as NAME")


def read(path: Path) -> bytes:
    """At most one byte more than is taken."""
    try:
        with path.open("rb") as stream:
            return stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror or error}") from error


def text_of(path: Path, data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise CommandError(f"{path}: not UTF-8 text (byte {error.start:,})") from error


def finished(batch: ImportBatch, seconds: int) -> ImportBatch:
    """The batch when its job is through. Raises CommandError where no worker takes it."""
    until = time.monotonic() + seconds
    while True:
        batch = ImportBatch.objects.select_related("host", "job").get(pk=batch.pk)
        working = batch.state in (ImportBatch.State.READING, ImportBatch.State.APPLYING)
        if not working or (batch.job is not None and batch.job.is_finished):
            return batch
        if time.monotonic() > until:
            raise CommandError(f"job {batch.job_id} is not done after {seconds:,} s: is ./quartermaster up running?")
        time.sleep(POLL_SECONDS)
