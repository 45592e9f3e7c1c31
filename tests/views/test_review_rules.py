"""V-08, V-10 and V-11 on the Review page and in the API: what is ticked, what is linked, what a policy hides."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from gpus_app.models import Device, Host
from gpus_app.selectors import get_host
from gpus_app.services import request_plan
from models_app.models import Publishing, Revision, RevisionDetails, Row
from quartermaster_site.access.audit import Actor
from quartermaster_site.access.models import Policy
from quartermaster_site.access.tokens import create_token
from tests.views.conftest import GIB, run
from tests.views.test_review import text_of


@pytest.fixture
def target(scanned: Host, tmp_path: Path) -> Path:
    """The newest text has a flag to confirm, one model that spills and two that stay loaded."""
    Host.objects.update(publish_path=str(tmp_path / "config.yaml"))
    revision, details = Revision.objects.get(), RevisionDetails.objects.get()
    for item in revision.summary["entries"]:
        model = details.outline["models"][item["id"]]
        if item["id"].startswith("mixtral"):
            item["concerns"] = ["spills"]
        else:
            item.pop("concerns", None)
        if item["id"].startswith("qwen3-8b"):
            item["doubtful"] = ["--odd"]
            model["flags"]["--odd"] = "1"
        if item["id"].startswith("qwen3"):
            model["keys"]["ttl"], model["vram_gb"] = "0", 12.0
    qwen = [name for name in details.outline["models"] if name.startswith("qwen3")]
    details.outline["top"] = {"groups.q.members": qwen, "groups.q.swap": "false", "groups.q.persistent": "true"}
    revision.save()
    details.save()
    return tmp_path / "config.yaml"


def test_findings_lead_to_their_models(target: Path, admin: Client, row_named: Callable[[str], Row]) -> None:
    html, page = admin.get("/config/local/review/").content.decode(), text_of(admin.get("/config/local/review/"))
    assert "V-08 1 model has flags that its server does not know, or that belong to the router: qwen3-8b" in page
    assert "V-10 1 model lies partly in RAM and is slower: mixtral-8x7b-q4_0" in page
    assert "V-11 2 models are always loaded and need together 24.0 GiB of VRAM, where 22.5 are planned: qwen3" in page
    mixtral = row_named("mixtral")
    assert f'<a href="/models/{mixtral.pk}/">models.{mixtral.served_id}</a>' in html


def test_a_flag_is_ticked_before_the_text_is_written(target: Path, admin: Client, post: Any) -> None:
    html = admin.get("/config/local/review/").content.decode()
    assert re.search(r'<label[^>]*><input[^>]* name="confirm" value="V-08">', html)
    answer = post(admin, "/config/local/1/write/", message="look")
    assert answer.status_code == 422
    assert "Confirm V-08 first" in text_of(answer)
    assert not target.exists()
    assert post(admin, "/config/local/1/write/", confirm="V-08").status_code == 302
    assert target.exists()
    page = text_of(admin.get("/config/local/review/"))
    assert "qwen3-8b-q4_k_m (--odd); confirmed" in page
    assert 'name="confirm"' not in admin.get("/config/local/review/").content.decode()
    assert post(admin, "/config/local/1/write/").status_code == 302, "it was confirmed"


def test_a_flag_is_ticked_before_the_text_is_submitted(
    target: Path, admin: Client, as_role: Callable[[str], Client], post: Any
) -> None:
    Publishing.objects.create(host=Host.objects.get(), policy="approval")
    editor = as_role("editor")
    assert 'name="confirm"' in editor.get("/config/local/review/").content.decode()
    assert post(editor, "/config/local/1/submit/").status_code == 422
    post(editor, "/config/local/1/submit/", confirm="V-08")
    assert 'name="confirm"' not in admin.get("/config/local/review/").content.decode()
    post(admin, "/config/local/1/write/")
    assert target.exists()


def test_a_mass_change_is_kept_with_the_text_as_well(target: Path, admin: Client, post: Any) -> None:
    Host.objects.get().roots.update(state="missing")
    assert post(admin, "/config/local/1/write/", confirm="V-08", slug="local").status_code == 302
    kept = Revision.objects.get().confirmed
    assert [(item["rule"], item["by"]) for item in kept] == [("V-08", "admin"), ("V-18", "admin")]


def test_scripts_confirm_by_the_rule(target: Path, make_user: Callable[..., Any]) -> None:
    _, secret = create_token(name="script", days=30, actor=Actor(user=make_user("operator", "script")))
    script = Client(headers={"authorization": f"Bearer {secret}"})
    path = "/api/v1/hosts/local/publish/"
    refused = script.post(path, {"revision": 1}, content_type="application/json")
    assert refused.status_code == 422
    assert "Confirm V-08 first: 1 model has flags" in str(refused.json())
    taken = script.post(path, {"revision": 1, "confirm": ["V-08"]}, content_type="application/json")
    assert taken.status_code == 202


def test_a_policy_hides_models_from_lines_and_counts(target: Path, viewer: Client) -> None:
    Policy.objects.create(model="qwen3-8b*", level=0)
    page = text_of(viewer.get("/config/local/review/"))
    assert "V-10 1 model lies partly in RAM" in page
    assert "qwen3-8b" not in page
    assert "V-08" not in page
    assert "V-11" not in page


def test_groups_and_idle_times_of_the_settings_say_what_is_always_loaded(
    scanned: Host, admin: Client, django_capture_on_commit_callbacks: Any
) -> None:
    """Planned as in the product: everything together, and nothing ever unloaded."""
    groups = {"groups": [{"name": "all", "match": ["*"], "coexist": True}]}
    scanned.settings.create(section="groups", values=groups, version=1)
    memory = scanned.settings.get(section="memory")
    run(django_capture_on_commit_callbacks, lambda: request_plan(host=scanned, actor=Actor()))
    assert "V-11" not in text_of(admin.get("/config/local/review/"))
    memory.values |= {"ttlSec": 0}
    memory.save()
    run(django_capture_on_commit_callbacks, lambda: request_plan(host=scanned, actor=Actor()))
    page = text_of(admin.get("/config/local/review/"))
    assert re.search(r"V-11 4 models are always loaded and need together [\d.]+ GiB of VRAM, where 22\.5 are", page)
    Host.objects.update(publish_dialect="quartermaster")
    run(django_capture_on_commit_callbacks, lambda: request_plan(host=get_host("local"), actor=Actor()))
    assert "V-11" not in text_of(admin.get("/config/local/review/")), "that router makes room by its budget"


def test_planning_notes_what_each_device_holds(scanned: Host, django_capture_on_commit_callbacks: Any) -> None:
    """By the names that the host's program has for its devices."""
    listed = []
    for index, (name, size) in enumerate((("RTX 3090", 24), ("RTX 3060", 12))):
        sizes = {"total_bytes": size * GIB, "free_bytes": size * GIB}
        Device.objects.update_or_create(host=scanned, index=index, defaults={"name": name, "vendor": "nvidia", **sizes})
        listed.append({"id": f"CUDA{index}", "name": name, "total_bytes": size * GIB, "tag": ""})
    probe = {"kind": "llama", "flags": ["-m"], "problem": "", "devices": listed, "notes": []}
    scanned.backends.create(slug="l", kind="llama", path="/opt/llama-server", probe=probe, probed_at=timezone.now())
    run(django_capture_on_commit_callbacks, lambda: request_plan(host=get_host("local"), actor=Actor()))
    summary = Revision.objects.latest("number").summary
    assert sum(summary["budget"]["devices"].values()) == pytest.approx(summary["budget"]["vram_gib"], abs=0.02)
    assert set(summary["budget"]["devices"]) == {"CUDA0", "CUDA1"}
    for entry in summary["entries"]:
        assert sum(entry["est_device_gib"].values()) == pytest.approx(entry["est_vram_gib"], abs=0.02), entry
