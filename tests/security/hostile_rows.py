"""Every text of the database replaced by markup that says which column it came from.

This is a step further than an attacker gets: forms, readers and results refuse much of it on the way in. What pages do
with it must not depend on that.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from django.apps import apps
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.db import models
from django.utils import timezone

from gpus_app import telemetry
from gpus_app.models import Backend, Device, Host, HostSetting, Telemetry
from models_app.models import (
    ApiKey,
    Audition,
    Change,
    CheckProgram,
    Component,
    DiskVersion,
    Finding,
    FolderWatch,
    Fragment,
    HeaderFacts,
    ImportBatch,
    Override,
    Publishing,
    Revision,
    RevisionDetails,
    Router,
    Row,
    SpeechServer,
    StoredPlan,
    TargetWatch,
    Variant,
    Verification,
)
from quartermaster_site.access.models import ApiToken, AuditEntry, NetworkList
from quartermaster_site.jobs.models import Job
from tests.security.markup import MARK

APPS = ("models_app", "gpus_app", "access", "jobs")
CHOSEN_HERE = {
    "Host.slug", "Backend.slug", "Backend.kind", "Component.role", "Finding.kind", "Finding.level", "Root.category",
    "HostSetting.section", "ImportBatch.source", "ImportBatch.state", "Row.model_class", "Row.category",
    "StoredPlan.profile", "StoredPlan.verdict", "TargetWatch.case", "Router.kind", "Change.action",
    "HeaderFacts.error_code", "AuditEntry.host_slug", "Job.object_type", "Job.object_id", "Job.token",
    "AuditEntry.action", "AuditEntry.object_type", "AuditEntry.object_id", "Verification.version",
}  # fmt: skip
"""Words out of our own tables, which no file and no person chooses."""
NEVER_SHOWN = {
    "ApiKey.digest", "ApiKey.sealed", "ApiKey.form_token", "ApiToken.digest", "Backend.banner_sha256",
    "DiskVersion.sha256", "FolderWatch.fingerprint", "FolderWatch.scanned_for", "FolderWatch.token",
    "Host.worker_id", "Host.written_sha256", "ImportBatch.sha256", "ImportBatch.text",
    "Installation.setup_token_digest",
    "Revision.body_sha256", "Revision.sha256", "Router.key", "Router.token", "SpeechServer.served", "TargetWatch.later",
    "TargetWatch.sha256", "TargetWatch.taken", "TargetWatch.token", "Verification.launch", "Voice.sha256",
}  # fmt: skip
"""Digests and secrets: they stay as they are."""


def payload(mark: str, limit: int | None = None) -> str:
    """Markup that breaks out of text, attributes, scripts, comments and addresses, as much as fits."""
    parts = (f"\"'><{mark} zq=1>", "</title></textarea></script></svg>-->{{41|add:1}}<img src=x onerror=zq>")
    text = "javascript:zq//" + "".join(parts)
    return next((kind for kind in (text, "javascript:" + parts[0], parts[0]) if not limit or len(kind) <= limit), mark)


def columns() -> Iterator[tuple[type[models.Model], Any, str]]:
    """Every column with free text of ours, and its name in the tables above."""
    for model in apps.get_models():
        if model._meta.app_label in APPS:
            for field in model._meta.concrete_fields:
                name = f"{model.__name__}.{field.name}"
                is_text = isinstance(field, models.CharField | models.TextField) and not field.choices
                if is_text and name not in CHOSEN_HERE | NEVER_SHOWN:
                    yield model, field, name


RULES = 700_001
"""The numbers of tests/access begin here."""
MARKS = {name: f"{MARK}{number}z" for number, (_, _, name) in enumerate(columns())}
"""Column -> the element that its markup would make."""
JSON_MARKS = {
    name: f"{MARK}j{number}z"
    for number, name in enumerate(
        (
            "Job.result", "Job.phases", "Router.listed.id", "Router.listed.alias", "Router.listed.command",
            "SpeechServer.listed", "Audition.request", "Override.fields", "Variant.fields", "Change.changes",
            "Fragment.fields", "HostSetting.defaultVariants", "HostSetting.groups", "HostSetting.listeners",
            "HostSetting.loraDirs", "HostSetting.promptEnhancers", "HostSetting.enhancer text",
            "HeaderFacts.facts", "Row.found",
            "ImportBatch.report value", "ImportBatch.report source", "ImportBatch.findings", "Revision.findings",
            "Revision.summary", "AuditEntry.changes", "ApiKey.ids", "Backend.probe", "Verification.notes",
            "User.username", "Group.name", "NetworkList.note", "Telemetry.note", "Telemetry.process",
            "Telemetry.disk", "User.email",
        )
    )
}  # fmt: skip
"""The same for texts inside of JSON, and in the tables of Django and allauth."""


def word(name: str) -> str:
    return payload(JSON_MARKS[name], 300)


def fill(tree: dict[str, int]) -> None:
    """One row of every table, texts replaced."""
    _add_rows(tree)
    _fill_json(tree)
    for model, field, name in columns():
        text = payload(MARKS[name], field.max_length)
        unique = field.unique or any(field.name in item.fields for item in model._meta.total_unique_constraints)
        for number, row in enumerate(model._default_manager.all()):
            value = text if not (unique and number) else f"{text[: (field.max_length or 99) - 4]}{number}"
            model._default_manager.filter(pk=row.pk).update(**{field.name: value})
    _join(tree)


def break_things(tree: dict[str, int]) -> None:
    """The same rows where something is wrong: pages give reasons then, which are texts too."""
    row = Row.objects.get(pk=tree["model"])
    Row.objects.filter(pk=row.pk).update(state=Row.State.OFFLINE, model_class="")
    SpeechServer.objects.update(seen_at=None)
    StoredPlan.objects.update(verdict="skipped")
    Router.objects.update(problem="")
    Device.objects.all().delete()
    host = Host.objects.get(slug="local")
    TargetWatch.objects.update(case="edited", path=host.publish_path, sha256=DiskVersion.objects.get().sha256)
    for found in Finding.objects.all():
        Finding.objects.filter(pk=found.pk).update(seen_text=found.text)
    Job.objects.update(state="failed", finished_at=timezone.now())


def _join(tree: dict[str, int]) -> None:
    """Rows that find each other by a text still do."""
    path = f"/models/{Row.objects.get(pk=tree['model']).path}"
    Row.objects.filter(pk=tree["model"]).update(path=path)
    HeaderFacts.objects.filter(rows=tree["model"]).update(path=path)
    broken = f"/models/{Row.objects.get(pk=tree['talker']).path}"
    Row.objects.filter(pk=tree["talker"]).update(path=broken)
    HeaderFacts.objects.filter(rows=tree["talker"]).update(path=broken)
    TargetWatch.objects.update(path=Host.objects.get(slug="local").publish_path)
    Override.objects.filter(variants=tree["variant"]).update(match=path, quant="")
    Row.objects.filter(pk=tree["talker"]).update(architecture="qwen3-tts")
    Change.objects.filter(pk=tree["change"]).update(match=path, quant="", variant="")
    rules = Override.objects.filter(pk__gte=RULES)
    for rule in rules:
        rules.filter(pk=rule.pk).update(match=f"*{rule.pk}{rule.match}*")


def _add_rows(tree: dict[str, int]) -> None:
    host, now = Host.objects.get(slug="local"), timezone.now()
    row, person = Row.objects.get(pk=tree["model"]), get_user_model().objects.get(username="admin")
    Device.objects.create(host=host, index=0, name="GPU", total_bytes=24 << 30, free_bytes=20 << 30)
    Device.objects.create(host=host, index=1, name="GPU", eligible=False, eligible_reason="x")
    Router.objects.create(host=host, url="x", seen_at=now, kind="llama-server", problem="x", program_version="1")
    Publishing.objects.create(
        host=host, policy="approval", held="x", pinned_id=Revision.objects.get().pk, pinned_at=now
    )
    TargetWatch.objects.create(host=host, looked_at=now, problem="x", case="unreadable", since=now, by_hand_since=now)
    FolderWatch.objects.create(host=host)
    RevisionDetails.objects.create(revision=Revision.objects.get())
    Fragment.objects.create(host=host, served_id="x", fields={"cmd": "x"})
    Finding.objects.create(host=host, row=row, kind="unreadable", path="/x", text="x", code="bad-magic", seen_text="x")
    StoredPlan.objects.create(row=row, profile_id="y", verdict="skipped", skip_reason="x")
    program = CheckProgram.objects.create(host=host, server="llama-server", path="x", build="b1", looked_at=now)
    Verification.objects.create(row=row, program=program, profile_id="x", launch="x", build="b1", figures=[])
    Component.objects.create(host=host, path="/models/other.gguf", role="projector")
    ApiToken.objects.create(user=person, name="t", prefix="qmt-1234", digest="1" * 64)
    AuditEntry.objects.create(actor="x", action="user.change", user=person, host_slug="local", result="refused")
    ImportBatch.objects.create(host=host, name="x", state="failed", problem="x")
    base = {"host": host, "token": "t", "started_by": person, "started_at": now - timedelta(seconds=9)}
    Job.objects.create(kind="publish", state="running", object_label="x", unit="files", current="x", done=1, **base)
    Job.objects.create(kind="plan_host", state="waiting", state_reason="x", **base)
    Job.objects.create(kind="test_launch", state="failed", object_id=row.pk, finished_at=now, error="x", **base)
    Job.objects.create(kind="scan", state="succeeded", finished_at=now, result={"path": word("Job.result")}, **base)


def _fill_json(tree: dict[str, int]) -> None:
    host, now = Host.objects.get(slug="local"), timezone.now()
    get_user_model().objects.filter(pk=tree["person"]).update(
        username=payload(JSON_MARKS["User.username"], 150), email=payload(JSON_MARKS["User.email"], 254)
    )
    Job.objects.update(phases=[{"name": word("Job.phases"), "started": now.isoformat()}])
    listed = {"state": "loaded", "since": now.isoformat(), "id": word("Router.listed.id")}
    listed |= {"aliases": [word("Router.listed.alias")], "command": [word("Router.listed.command")]}
    Router.objects.update(listed=[listed, {**listed, "state": "unloaded"}])
    Group.objects.update(name=payload(JSON_MARKS["Group.name"], 150))
    note = {"network": "192.0.2.0/24", "admins_only": False, "note": payload(JSON_MARKS["NetworkList.note"], 100)}
    NetworkList.objects.update_or_create(pk=1, defaults={"rules": [note], "version": 1})
    Telemetry.objects.update_or_create(host=host, defaults={"received_at": now, "ordered_at": now, "sample": _sample()})
    SpeechServer.objects.update(listed=[{"name": word("SpeechServer.listed"), "kind": "registered"}])
    Audition.objects.update(request={"input": word("Audition.request"), "voice": "x"})
    Override.objects.update(fields={"aliases": [word("Override.fields")], "customArgs": word("Override.fields")})
    Variant.objects.update(fields={"chatTemplate": word("Variant.fields")})
    Change.objects.update(changes={"chatTemplate": [None, word("Change.changes")]})
    Fragment.objects.update(fields={"cmd": "x", "description": word("Fragment.fields")})
    AuditEntry.objects.update(changes={"name": [None, word("AuditEntry.changes")]})
    ApiKey.objects.update(everything=False, ids=[word("ApiKey.ids")])
    Backend.objects.update(probe={"problem": word("Backend.probe"), "devices": []}, probed_at=now)
    Verification.objects.update(notes=[word("Verification.notes")])
    Revision.objects.update(
        findings=[
            {"rule": "V-01", "severity": "warning", "where": "x", "line": 1, "message": word("Revision.findings")}
        ],
        summary={"entries": [], "skipped": [{"file": word("Revision.summary"), "reason": "x"}], "warnings": []},
    )
    facts = HeaderFacts.objects.get(rows=tree["model"])
    names = ("general_name", "base_name", "size_label", "fine_tune", "quant_label", "rope_scaling_type")
    facts.facts |= dict.fromkeys(names, word("HeaderFacts.facts"))
    facts.save()
    HeaderFacts.objects.create(host=host, path="/x", size_bytes=1, mtime_ns=1, error="x")
    Row.objects.filter(pk=tree["talker"]).update(header=HeaderFacts.objects.get(path="/x"))
    row = Row.objects.get(pk=tree["model"])
    row.found |= {"missing_parts": [word("Row.found")]}
    row.save()
    for section, values in {
        "variants": {"defaultVariants": [{"name": "all", "chatTemplate": word("HostSetting.defaultVariants")}]},
        "groups": {"groups": [{"name": word("HostSetting.groups"), "match": ["*"]}]},
        "advanced": {"listeners": [{"addr": word("HostSetting.listeners")}]},
        "loras": {"loraDirs": {"llm": word("HostSetting.loraDirs")}},
        "enhancers": {
            "promptEnhancers": [
                {"model": word("HostSetting.promptEnhancers"), "systemPrompt": word("HostSetting.enhancer text")}
            ]
        },
    }.items():
        HostSetting.objects.update_or_create(host=host, section=section, defaults={"values": values, "version": 1})
    _fill_import(ImportBatch.objects.get(pk=tree["batch"]))


def _sample() -> dict[str, Any]:
    """What a host reported of itself, stored as it is."""
    device = {"index": 0, "name": "x", "total_bytes": 2, "used_bytes": 1, "others": [[word("Telemetry.process"), 1]]}
    disk = {"path": word("Telemetry.disk"), "total_bytes": 2, "free_bytes": 1}
    sizes = {"total_bytes": 2, "available_bytes": 1}
    raw = {"devices": [device], "ram": sizes, "disks": [disk], "notes": [word("Telemetry.note")], "cpu_percent": 1}
    return telemetry.checked(raw)


def _fill_import(batch: ImportBatch) -> None:
    item = batch.report["items"][0] | {
        "source": word("ImportBatch.report source"),
        "value": word("ImportBatch.report value"),
    }
    batch.report = {"items": [item], "findings": [{"message": word("ImportBatch.findings"), "line": 1}]}
    batch.save()
