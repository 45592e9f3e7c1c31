"""A small installation to look at: one host, one scanned folder, one text, one job."""

from __future__ import annotations

import pytest
from allauth.usersessions.models import UserSession
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.utils import timezone

from gpus_app.models import Backend, Host, HostSetting
from models_app.models import (
    ApiKey,
    Audition,
    Change,
    Component,
    DiskVersion,
    Finding,
    HeaderFacts,
    ImportBatch,
    Override,
    Revision,
    Root,
    Row,
    SpeechServer,
    StoredPlan,
    Voice,
)
from quartermaster_site.access.models import Account, Policy
from quartermaster_site.jobs.models import Job
from tests.speech_files import wav


@pytest.fixture(autouse=True)
def _nothing_is_sent(monkeypatch):
    monkeypatch.setattr("quartermaster_site.jobs.dispatch.send", lambda *args, **kwargs: None)


# Addresses in the tables name numbers far above what PostgreSQL's sequences reach in a run: they never go back.
TALKER = 800_001
FACTS = {
    "format": "gguf",
    "architecture": "llama",
    "file_size_bytes": 1 << 30,
    "block_count": 2,
    "context_length": 4096,
    "embedding_length": 64,
    "head_count": 4,
    "head_count_kv": 2,
    "key_length": 16,
    "value_length": 16,
}


def add_model(host: Host, root: Root, number: int, quant: str = "Q4_0") -> Row:
    name = f"model-{number}-{quant}.gguf"
    path = f"{root.path}/{name}"
    header = HeaderFacts.objects.create(host=host, path=path, size_bytes=1 << 30, mtime_ns=1, facts=FACTS)
    served = f"model-{number}-{quant.lower()}"
    row = Row.objects.create(
        host=host,
        root=root,
        header=header,
        path=path,
        served_id=served,
        base_id=f"model-{number}",
        quant=quant,
        file_name=name,
        size_bytes=1 << 30,
        model_class="llm",
        architecture="llama",
        model_key=f"model-{number}",
        family_key=f"model-{number}",
        found={"id": served, "full_path": path, "file_name": name, "model_class": "llm", "size_bytes": 1 << 30},
    )
    StoredPlan.objects.create(row=row, profile_id=served, verdict="fits", ctx_tokens=4096, est_ram_bytes=1 << 30)
    return row


def add_talker(host: Host, root: Root) -> dict[str, int]:
    """A speech model whose server answers at an address of its own, a voice, and something it spoke."""
    path = f"{root.path}/qwen-talker.gguf"
    row = Row.objects.create(
        pk=TALKER,
        host=host,
        root=root,
        path=path,
        served_id="qwen-talker",
        base_id="qwen-talker",
        file_name="qwen-talker.gguf",
        model_class="tts",
        architecture="qwen3-tts",
        found={"id": "qwen-talker", "full_path": path},
    )
    listed = [{"name": "guest", "kind": "registered"}]
    SpeechServer.objects.create(row=row, url="http://127.0.0.1:8080", listed=listed, seen_at=timezone.now())
    voice = Voice.objects.create(host=host, name="anna", form="wav", wav=wav(), size_bytes=48_044, seconds=1)
    audition = Audition.objects.create(row=row, request={"input": "Hello."}, audio=wav(), seconds=1)
    return {"talker": row.pk, "voice": voice.pk, "audition": audition.pk}


@pytest.fixture
def root(host):
    return Root.objects.create(host=host, path="/models", state="ok")


@pytest.fixture
def installation(host, root):
    """What the addresses of the tests name: model 1, job 1, revision 1, root."""
    return furnish(host, root)


def furnish(host: Host, root: Root) -> dict[str, int]:
    """One of everything that an address names, by the word for it in the tables of addresses."""
    row = add_model(host, root, 1)
    job = Job.objects.create(kind="scan", host=host, token="t", state="failed", error="broken")
    text = "# one\n# two\n# three\nmodels: {}\n"
    revision = Revision.objects.create(
        host=host, number=1, dialect="llama-swap", text=text, body_sha256="0" * 64, sha256="0" * 64, state="validated"
    )
    finding = Finding.objects.create(host=host, row=row, kind="not-servable", path=row.path, text="no engine")
    backend = Backend.objects.create(host=host, slug="llama", kind="llama", path="/opt/a/llama-server")
    vae = Component.objects.create(host=host, path="/models/ae.safetensors", role="vae", family="flux")
    override = Override.objects.create(host=host, match=row.path, fields={"temp": 0.5}, version=1)
    HostSetting.objects.create(host=host, section="variants", values={"defaultVariants": [{"name": "all"}]}, version=1)
    enhancers = {"promptEnhancers": [{"model": "pe", "systemPrompt": "Rewrite."}]}
    HostSetting.objects.create(host=host, section="enhancers", values=enhancers, version=1)
    variant = override.variants.create(name="fast", fields={"temp": 0.1}, version=1)
    change = Change.objects.create(
        host=host, match=row.path, action="save", changes={"temp": [None, 0.7]}, after={"temp": 0.7}, version=1
    )
    Override.objects.create(pk=700_001, host=host, match="*model-2*", fields={"temp": 0.5}, version=1, position=1)
    rule = Override.objects.create(
        pk=700_002, host=host, match="*model-3*", fields={"temp": 0.5}, version=1, position=2
    )
    shared = Change.objects.create(
        host=host,
        match=rule.match,
        rule=rule.pk,
        action="save",
        changes={"temp": [None, 0.7]},
        after={"match": rule.match, "temp": 0.7},
        version=1,
    )
    host.publish_path = "/srv/config.yaml"
    host.save()
    person = get_user_model().objects.create_user(username="somebody")
    Account.objects.create(user=person, role="viewer")
    found = DiskVersion.objects.create(host=host, sha256="1" * 64, text="models: {}", size_bytes=10)
    key = ApiKey.objects.create(name="lab", prefix="qm-12345", sealed="", digest="0" * 64)
    key.hosts.add(host)
    timeout = {"kind": "setting", "subject": "advanced", "variant": "", "field": "healthCheckTimeout"}
    item = {"source": "healthCheckTimeout", "line": 1, "target": timeout, "value": 90, "section": "top"}
    item |= {"needs": "edit", "status": "new"}
    batch = ImportBatch.objects.create(host=host, name="config.yaml", state="read", report={"items": [item]})
    applied = ImportBatch.objects.create(host=host, name="config.yaml", state="applied")
    session = UserSession.objects.create(user=person, ip="10.0.0.7", session_key="k" * 32, user_agent="Firefox")
    group = Group.objects.create(name="vision")
    policy = Policy.objects.create(group=group, model="*nothing*", level=1)
    pinned = {
        "group": group.pk,
        "policy": policy.pk,
        "rule": rule.pk,
        "shared": shared.pk,
        "variant": variant.pk,
        "change": change.pk,
        "person": person.pk,
        "key": key.pk,
        "found": found.pk,
        "session": session.pk,
        "batch": batch.pk,
        "applied": applied.pk,
    }
    return {
        "model": row.pk,
        "job": job.pk,
        "revision": revision.number,
        "root": root.pk,
        "component": vae.pk,
        "backend": backend.pk,
        "finding": finding.pk,
        **pinned,
        **add_talker(host, root),
    }
