"""The editor of a speech model: flags of its server as the build that runs it has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from gpus_app.models import Backend, Host
from models_app.models import HeaderFacts, Override, Root, Row
from models_app.services.command_findings import command_findings
from models_app.services.plan_notes import PlanNotes
from models_app.services.planning import HostPlanner, host_facts

OLD = ["--model", "--codec", "--host", "--port", "--lang", "--no-fa", "--clamp-fp16", "--codec-left-dur"]
NEW = ["--model", "--codec", "--host", "--port", "--lang", "--no-fa", "--clamp-fp16", "--alias", "--max-batch"]


@pytest.fixture(autouse=True)
def _nothing_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quartermaster_site.jobs.dispatch.send", lambda *args, **kwargs: None)


@pytest.fixture
def talker(gpu_host: Host) -> Row:
    root = Root.objects.create(host=gpu_host, path="/m", state="ok")
    facts = {"format": "gguf", "architecture": "qwen3-tts"}
    path = "/m/qwen-talker.gguf"
    header = HeaderFacts.objects.create(host=gpu_host, path=path, size_bytes=1 << 30, mtime_ns=1, facts=facts)
    found = {"id": "qwen-talker", "full_path": path, "file_name": "qwen-talker.gguf", "model_class": "tts"}
    return Row.objects.create(
        host=gpu_host,
        found=found | {"size_bytes": 1 << 30},
        root=root,
        header=header,
        path=path,
        served_id="qwen-talker",
        base_id="qwen-talker",
        file_name="qwen-talker.gguf",
        size_bytes=1 << 30,
        category="tts",
        model_class="tts",
        architecture="qwen3-tts",
    )


@pytest.fixture
def server(gpu_host: Host) -> Callable[[list[str]], Backend]:
    def probed(flags: list[str], **more: Any) -> Backend:
        probe = {"problem": "", "kind": "tts", "flags": flags, "devices": None, "notes": []}
        return Backend.objects.create(
            host=gpu_host, slug="tts", kind="tts", path="/opt/tts-server", probe=probe, probed_at=timezone.now(), **more
        )

    return probed


def page(client: Client, row: Row) -> str:
    return client.get(f"/models/{row.pk}/edit/").content.decode()


def test_unasked_builds_are_offered_the_oldest_flags(talker: Row, admin: Client) -> None:
    html = page(admin, talker)
    assert 'name="ttsLang"' in html
    assert 'name="ttsNoFa"' in html
    assert 'name="ttsMaxBatch"' not in html
    assert "Speech server" in html


def test_a_build_is_offered_what_its_help_names(talker: Row, admin: Client, server: Any) -> None:
    server(NEW)
    html = page(admin, talker)
    assert 'name="ttsMaxBatch"' in html
    assert 'name="ttsAlias"' in html
    for gone in ("ttsCodecLeftDur", "ttsCodecFused", "ttsVoicesDir"):
        assert f'name="{gone}"' not in html


def test_saving_one_goes_into_the_command_and_the_figure(talker: Row, admin: Client, server: Any) -> None:
    server(NEW)
    sent = {"version": "0", "ttsMaxBatch": "3"}
    assert admin.post(f"/models/{talker.pk}/edit/", sent).status_code == 302
    assert Override.objects.get().fields["ttsMaxBatch"] == 3
    launch = admin.get(f"/models/{talker.pk}/launch/").content.decode()
    assert "--max-batch" in launch
    assert "Cache of 3 requests side by side" in page(admin, talker)


def test_out_of_range_is_said(talker: Row, admin: Client, server: Any) -> None:
    server(NEW)
    answer = admin.post(f"/models/{talker.pk}/edit/", {"version": "0", "ttsMaxBatch": "65"})
    assert answer.status_code == 422
    assert "Requests side by side" in answer.content.decode()


def test_a_setting_outlives_its_flag_and_can_be_cleared(talker: Row, admin: Client, server: Any) -> None:
    backend = server(OLD)
    admin.post(f"/models/{talker.pk}/edit/", {"version": "0", "ttsCodecLeftDur": "2"})
    Backend.objects.filter(pk=backend.pk).update(probe={**backend.probe, "flags": NEW})
    html = page(admin, talker)
    assert 'name="ttsCodecLeftDur"' in html
    assert "--codec-left-dur left out" in html
    admin.post(f"/models/{talker.pk}/edit/", {"version": "1", "ttsCodecLeftDur": ""})
    assert 'name="ttsCodecLeftDur"' not in page(admin, talker)


def test_a_flag_that_the_build_refuses_is_a_finding(talker: Row, admin: Client, server: Any) -> None:
    from models_app import convert

    server(NEW)
    Override.objects.create(host=talker.host, match=talker.path, fields={"extraArgs": "--codec-fused"}, version=1)
    facts = host_facts(talker.host)
    notes = PlanNotes()
    planner = HostPlanner(facts, convert.header_lookup(talker.host, [talker.path]), notes.take)
    row = convert.core_row(talker)
    planner(row, convert.header_lookup(talker.host, [talker.path])(talker.path), facts.overrides[0])
    (finding,) = command_findings(notes.refused)
    assert "does not name --codec-fused" in finding.text
