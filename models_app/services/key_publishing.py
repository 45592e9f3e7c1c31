"""Keys-only writes (web.md 8.5): the live text with other keys, without whatever else is waiting to be reviewed."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from django.db import transaction
from django.db.models import Max
from django.utils import timezone

from gpus_app.models import Dialect, Host
from gpus_app.services import request_plan
from models_app.core.export.dialects import BY_SLUG
from models_app.core.export.findings import BLOCK
from models_app.core.export.key_blocks import KEY_LIST, KEY_SCOPES
from models_app.core.export.keys import (
    ExportKey,
    Served,
    joined_fields,
    key_fields,
    keys_by_hand,
    with_key_fields,
    with_withheld,
)
from models_app.core.export.presets.convert import KEYS_SUFFIX
from models_app.core.export.revisions.outline import Outline, flattened
from models_app.core.export.stamp import content_digest, stamped, unstamped
from models_app.core.launch.tokens import rules_for
from models_app.models import ApiKey, Revision, RevisionDetails
from models_app.selectors.comparing import live_revision, outline_of_revision, watch_of
from models_app.services.key_export import companions_of, export_keys, numbers_held, sha256_to_write
from models_app.services.writing import queue_write
from quartermaster_site.access.audit import Actor, record
from quartermaster_site.errors import QuartermasterError
from quartermaster_site.jobs.models import UNFINISHED, Job
from quartermaster_site.jobs.services import Started

log = logging.getLogger(__name__)
_settled: dict[int, tuple[str, tuple[ExportKey, ...]]] = {}
"""Host -> the bytes and the keys that were found to agree: large texts are not looked at every half minute."""


@dataclass(frozen=True, slots=True)
class KeysText:
    """A text that differs from the live one in its keys alone. `fields` are its key blocks."""

    text: str
    companions: Sequence[Mapping[str, str]]
    fields: Mapping[str, Any]


def served_by(revision: Revision, outline: Outline) -> list[Served]:
    """The entries of a text with the files behind them."""
    files = {str(item.get("id")): str(item.get("file", "")) for item in revision.summary.get("entries", [])}
    served = []
    for name, model in outline.models.items():
        aliases = model.keys.get("aliases", ())
        names = tuple(aliases) if isinstance(aliases, list) else ()
        served.append(Served(name, files.get(name) or model.path, names))
    return served


def with_keys_of_today(revision: Revision, keys: Sequence[ExportKey]) -> KeysText | None:
    """What a text would say with these keys; None where it says so already."""
    details = RevisionDetails.objects.filter(revision=revision).first()
    companions = companions_of(details)
    plain = unstamped(revision.text)
    if revision.dialect == Dialect.LLAMA_SERVER:
        full = "".join(f"{key.placeholder}\n" for key in keys if key.everything)
        changed = [{**item, "text": full} if item["name"].endswith(KEYS_SUFFIX) else item for item in companions]
        return KeysText(plain, changed, {}) if changed != companions and full else None
    served = served_by(revision, outline_of_revision(revision))
    dialect = BY_SLUG[revision.dialect]
    fields = joined_fields(key_fields(keys, served, scopes=dialect.scopes_keys), keys_by_hand(plain))
    text = with_key_fields(plain, fields)
    if not dialect.scopes_keys:
        text = with_withheld(text, len(key_fields(keys, served, scopes=True).get(KEY_SCOPES, ())))
    return KeysText(text, companions, fields) if text != plain else None


def publish_due_keys() -> None:
    """Every host whose file holds other keys than it should: new, changed, revoked and expired ones."""
    note_expired()
    for host in Host.objects.filter(api_keys__isnull=False).exclude(publish_path="").distinct():
        if _settled.get(host.pk) == (host.written_sha256, tuple(export_keys(host))):
            continue
        try:
            publish_keys(host=host, actor=Actor())
        except QuartermasterError as error:
            log.warning("%s: its keys wait: %s", host.slug, error)
    forget_secrets()


def publish_keys(*, host: Host, actor: Actor) -> Started | None:
    """Write the keys of now into the live text of a host. None where there is nothing to write, or it has to wait."""
    with transaction.atomic():
        host = Host.objects.select_for_update().get(pk=host.pk)
        live, watch = live_revision(host), watch_of(host)
        waits = watch.has_drifted or watch.is_by_hand or live is None or live.dialect != host.publish_dialect
        if live is None or waits or Job.objects.filter(host=host, kind="publish", state__in=UNFINISHED).exists():
            return None
        keys = export_keys(host)
        wanted = with_keys_of_today(live, keys)
        if wanted is None:
            _settled[host.pk] = (host.written_sha256, tuple(keys))
        if wanted is None or _failed_before(host, wanted):
            return None
        revision = _store(host, live, wanted)
        if revision.state == Revision.State.BLOCKED:
            return None
        started = queue_write(host=host, revision=revision, message="Keys only", actor=actor)
        record(actor, "config.keys", subject=revision, host_slug=host.slug)
        request_plan(host=host, actor=actor)  # what else is waiting becomes the newest text again
    return started


def _failed_before(host: Host, wanted: KeysText) -> bool:
    """The same keys were tried and not written: that is not tried again and again."""
    body = content_digest(wanted.text, wanted.companions)
    last = Revision.objects.filter(host=host, origin=Revision.Origin.KEYS).order_by("-number").first()
    return (
        last is not None and last.state in (Revision.State.FAILED, Revision.State.BLOCKED) and last.body_sha256 == body
    )


def _store(host: Host, live: Revision, wanted: KeysText) -> Revision:
    number = (Revision.objects.filter(host=host).aggregate(last=Max("number"))["last"] or 0) + 1
    text = stamped(wanted.text, host=host.slug, revision=number)
    findings = [asdict(item) for item in BY_SLUG[live.dialect].check(text.encode(), rules_for(host.os_family))]
    blocked = any(item["severity"] == BLOCK for item in findings)
    revision = Revision.objects.create(
        host=host,
        number=number,
        origin=Revision.Origin.KEYS,
        state=Revision.State.BLOCKED if blocked else Revision.State.VALIDATED,
        dialect=live.dialect,
        text=text,
        body_sha256=content_digest(wanted.text, wanted.companions),
        sha256=sha256_to_write(text),
        findings=findings,
        summary=live.summary,
        inputs={**live.inputs, "keys": numbers_held(text, wanted.companions)},
        parent=live,
    )
    outline = outline_of_revision(live)
    top = {name: value for name, value in outline.top.items() if name.split(".")[0] not in (KEY_LIST, KEY_SCOPES)}
    details = RevisionDetails.objects.filter(revision=live).first()
    RevisionDetails.objects.create(
        revision=revision,
        outline=replace(outline, top={**top, **flattened(wanted.fields)}).as_json(),
        inputs=details.inputs if details else {},
        companions=[dict(item) for item in wanted.companions],
    )
    return revision


def note_expired() -> None:
    """Keys whose time is over are told once."""
    for key in ApiKey.objects.filter(expires_at__lte=timezone.now(), revoked_at=None, expiry_noted=False):
        with transaction.atomic():
            ApiKey.objects.filter(pk=key.pk).update(expiry_noted=True)
            record(Actor(), "access-key.expire", subject=key)
            for host in key.hosts.all():
                request_plan(host=host, actor=Actor())


def forget_secrets() -> None:
    """Secrets of keys that are over and that no live file holds any more are erased."""
    now = timezone.now()
    over = [key for key in ApiKey.objects.exclude(sealed="") if key.is_over(now)]
    if not over:
        return
    lives = [live_revision(host) for host in Host.objects.exclude(written_sha256="")]
    held = {number for live in lives if live for number in live.inputs.get("keys", [])}
    gone = [key.pk for key in over if key.pk not in held]
    ApiKey.objects.filter(pk__in=gone).update(sealed="")
