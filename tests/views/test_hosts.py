"""A host's pages: devices, memory with its version, folders."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from gpus_app.core.units import GIB
from gpus_app.models import Device, Host, HostSetting
from gpus_app.selectors import device_settings_of, get_host
from models_app.device_form import DeviceForm, reserve_key
from models_app.drift_rows import TargetWatch
from models_app.models import Revision, Root
from models_app.pages.host_page import device_bar, device_rows
from models_app.pages.model_row import HostScale
from quartermaster_site.access.models import AuditEntry
from quartermaster_site.jobs.models import Job

MEMORY = "/hosts/local/settings/memory/"


def test_devices_with_bar_and_table(gpu_host: Host, viewer: Client) -> None:
    html = viewer.get("/hosts/local/").content.decode()
    assert "GPU 0 · RTX 3090" in html
    assert "1.00 used, 23.00 free" in html
    assert 'aria-label="Memory in use on Local machine.' in html
    part = viewer.get("/hosts/local/", headers={"HX-Request": "true", "HX-Target": "devices"})
    assert part.content.decode().lstrip().startswith('<section class="q-sec" id="devices"')


def test_an_apu_is_drawn_with_the_memory_that_it_borrows(host: Host) -> None:
    """Its carve-out alone is neither what plans may use of it nor what is in use."""
    Device.objects.create(
        host=host,
        index=0,
        name="AMD Radeon 780M",
        integrated=True,
        total_bytes=2 * GIB,
        free_bytes=GIB,
        shared_total_bytes=16 * GIB,
        shared_free_bytes=12 * GIB,
        ours_bytes=4 * GIB,
    )
    [row] = device_rows(get_host("local"))
    assert (row.total, row.used, row.free) == ("18.00", "5.00", "13.00")
    bar = device_bar(get_host("local"))
    assert bar is not None
    assert "4.00 loaded, 1.00 other, 13.00 free" in bar.label
    assert bar.rows[0].width == "100%"
    assert HostScale.of(get_host("local")).capacity_bytes == 18 * GIB
    HostSetting.objects.create(host=host, section="gpu", values={"sharedMemory": "off"}, version=1)
    [row] = device_rows(get_host("local"))
    assert (row.total, row.used, row.free) == ("2.00", "1.00", "1.00"), "it counts for nothing"
    form = DeviceForm(stored=device_settings_of(get_host("local")), devices=get_host("local").devices.all())
    assert form.fields[reserve_key(0)].maximum == 18, "for the case that it counts"


def test_a_host_without_a_gpu_says_what_to_do(host: Host, viewer: Client) -> None:
    for page in ("/hosts/local/", "/hosts/local/settings/gpu/", "/hosts/", "/"):
        html = viewer.get(page).content.decode()
        assert "ot measured yet" in html, page
        assert not re.search("No GPU (was )?seen|none seen|CPU only</td>|no GPU, plans", html), page
    Host.objects.update(probed_at=timezone.now())
    html = viewer.get("/hosts/local/").content.decode()
    assert "No GPU seen" in html
    assert "Set the budget by hand" in html
    assert "none seen" in viewer.get("/hosts/").content.decode()
    assert "No GPU was seen" in viewer.get("/").content.decode()


@pytest.mark.parametrize(
    ("state", "ended", "words"),
    [
        ("waiting", None, "waiting"),
        ("running", None, "running"),
        ("lost", 5, "lost 5 min ago"),
        ("succeeded", 5, "5 min ago"),
    ],
)
def test_the_overview_says_how_the_newest_scan_stands(
    host: Host, viewer: Client, state: str, ended: int | None, words: str
) -> None:
    finished = None if ended is None else timezone.now() - timedelta(minutes=ended)
    Job.objects.create(kind="scan", host=host, state=state, finished_at=finished)
    html = viewer.get("/").content.decode()
    assert re.search(rf'<dt>Last scan</dt><dd><a href="[^"]*">{words}</a>', html)


def test_saving_memory(gpu_host: Host, as_role: Callable[[str], Client]) -> None:
    editor = as_role("editor")
    answer = editor.post(MEMORY, {"version": "1", "targetVramGB": "20,5", "maxRamGB": "48", "ttlSec": "0"})
    assert answer.status_code == 302
    saved = HostSetting.objects.get(section="memory")
    assert saved.values == {"targetVramGB": 20.5, "maxRamGB": 48.0, "ttlSec": 0}
    assert saved.version == 2
    entry = AuditEntry.objects.get(action="settings.memory")
    assert entry.changes["targetVramGB"] == [22.5, 20.5]


def test_an_untouched_form_changes_nothing(gpu_host: Host, as_role: Callable[[str], Client]) -> None:
    editor = as_role("editor")
    html = editor.get(MEMORY).content.decode()
    assert 'value="22.5"' in html
    editor.post(MEMORY, {"version": "1", "targetVramGB": "22.5", "maxRamGB": "48"})
    assert HostSetting.objects.get().version == 1
    assert not AuditEntry.objects.filter(action="settings.memory").exists()


@pytest.mark.parametrize("typed", ["0", "-1", "1e", "'", "９", "1,500", "x" * 9999, "99999999999"])
def test_bad_numbers_are_refused_beside_their_field(
    gpu_host: Host, as_role: Callable[[str], Client], typed: str
) -> None:
    answer = as_role("editor").post(MEMORY, {"version": "1", "targetVramGB": typed})
    assert answer.status_code == 422
    assert "VRAM target takes a number above 0" in answer.content.decode()
    assert HostSetting.objects.get().version == 1


def test_two_people_at_once(gpu_host: Host, as_role: Callable[[str], Client]) -> None:
    first, second = as_role("admin"), as_role("editor")
    first.post(MEMORY, {"version": "1", "targetVramGB": "20", "maxRamGB": "48"})
    answer = second.post(MEMORY, {"version": "1", "targetVramGB": "10", "maxRamGB": "48", "was-targetVramGB": "22.5"})
    assert answer.status_code == 409
    html = answer.content.decode()
    assert "admin saved these settings" in html
    assert all(value in html for value in (">10<", ">20<", ">22.5<"))
    assert 'name="version" value="2"' in html, "applying again stores these values over the saved ones"
    assert second.post(MEMORY, {"version": "2", "targetVramGB": "10", "maxRamGB": "48"}).status_code == 302


def test_a_target_above_the_cards_is_kept_with_a_warning(gpu_host: Host, as_role: Callable[[str], Client]) -> None:
    editor = as_role("editor")
    editor.post(MEMORY, {"version": "1", "targetVramGB": "30"})
    assert "The devices seen have 24 GiB together." in editor.get(MEMORY).content.decode()


def test_folders_are_added_and_removed_after_a_question(gpu_host: Host, admin: Client) -> None:
    assert admin.post("/hosts/local/folders/add/", {"path": "/srv/models/", "category": ""}).status_code == 302
    root = Root.objects.get()
    assert root.path == "/srv/models"
    assert "will be scanned" in admin.get("/hosts/local/folders/").content.decode()
    question = admin.get(f"/hosts/local/folders/{root.pk}/remove/")
    assert "Remove this folder?" in question.content.decode()
    assert Root.objects.exists()
    admin.post(f"/hosts/local/folders/{root.pk}/remove/")
    assert not Root.objects.exists()


def test_a_folder_that_this_machine_lets_nobody_see_is_said_to_be_one(
    gpu_host: Host, admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QM_BROWSE_ROOTS", "/mnt/models")
    answer = admin.post("/hosts/local/folders/add/", {"path": "/srv/models"}, follow=True)
    assert "seems to lie outside the folders that this host lets people see" in answer.content.decode()


@pytest.mark.parametrize("path", ["models", "", "/srv/models/sub", "/srv\x00", "/" + "x" * 2000])
def test_folders_that_cannot_be_scanned(gpu_host: Host, admin: Client, path: str) -> None:
    Root.objects.create(host=gpu_host, path="/srv/models")
    answer = admin.post("/hosts/local/folders/add/", {"path": path, "category": ""})
    assert answer.status_code == 422
    assert 'class="q-err"' in answer.content.decode()
    assert Root.objects.count() == 1


def test_the_list_tells_version_revision_and_drift(scanned: Host, admin: Client) -> None:
    Host.objects.update(worker_version="9.8.7", publish_path="/srv/router/config.yaml")
    page = admin.get("/hosts/")
    html = page.content.decode()
    assert "· version 9.8.7</span>" in html
    number = Revision.objects.latest("number").number
    assert f'data-l="Config file"><a href="/config/local/review/">rev {number} not written</a>' in html
    TargetWatch.objects.create(host=scanned, path="/srv/router/config.yaml", case="edited", sha256="0" * 64)
    html = admin.get("/hosts/", headers={"HX-Request": "true"}).content.decode()
    assert 'href="/config/local/drift/"' in html
    assert "edited by hand" in html


def test_an_offline_worker_holds_the_buttons_back(gpu_host: Host, admin: Client) -> None:
    Host.objects.update(last_seen_at=None)
    html = admin.get("/hosts/local/").content.decode()
    assert "no worker has answered yet" in html
    assert 'aria-disabled="true"' in html


def test_scan_leads_to_its_job(scanned: Host, as_role: Callable[[str], Client]) -> None:
    answer: Any = as_role("operator").post("/hosts/local/scan/")
    assert answer.status_code == 302
    assert answer["Location"].startswith("/jobs/")


def test_overview_shows_the_host_and_what_people_did(gpu_host: Host, as_role: Callable[[str], Client]) -> None:
    editor = as_role("editor")
    editor.post(MEMORY, {"version": "1", "targetVramGB": "20", "maxRamGB": "48"})
    html = editor.get("/").content.decode()
    assert "Local machine" in html
    assert "VRAM target" in html
    card = editor.get("/hosts/local/card/", headers={"HX-Request": "true"}).content.decode()
    assert card.lstrip().startswith('<article class="q-card" id="host-local"')
    assert Device.objects.count() == 1
    Device.objects.update(eligible=False)
    assert "no GPU used, " in editor.get("/").content.decode()
