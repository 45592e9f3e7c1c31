"""The Drift page: what differs, who may decide, and how every other page tells of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from gpus_app.models import Host
from gpus_app.services import note_heartbeat
from models_app.models import Revision, TargetWatch
from tests.views.conftest import run


@pytest.fixture
def target(scanned: Host, admin: Client, tmp_path: Path, django_capture_on_commit_callbacks: Any) -> Path:
    path = tmp_path / "router.yaml"
    for address, values in (
        ("/config/local/target/", {"path": str(path), "dialect": "llama-swap"}),
        ("/config/local/1/write/", {}),
    ):
        run(django_capture_on_commit_callbacks, lambda address=address, values=values: admin.post(address, values))
    return path


@pytest.fixture
def beat(django_capture_on_commit_callbacks: Any) -> Callable[[], None]:
    """A heartbeat a minute later."""

    def later() -> None:
        TargetWatch.objects.update(looked_at=timezone.now() - timedelta(minutes=1))
        run(
            django_capture_on_commit_callbacks,
            lambda: note_heartbeat(slug="local", worker="w", version="1", sent_at=time.time()),
        )

    return later


def page(client: Client, address: str) -> str:
    return client.get(address).content.decode()


def test_a_file_as_we_left_it(target: Path, viewer: Client, beat: Callable[[], None]) -> None:
    beat()
    html = page(viewer, "/config/local/drift/")
    assert "The file matches revision 1" in html
    assert "Checked " in html
    assert "Keep ours" not in html
    assert '<dd id="s-drift">-</dd>' in page(viewer, "/")


def test_every_page_tells_of_an_edit(target: Path, admin: Client, beat: Callable[[], None]) -> None:
    target.write_text(target.read_text().replace("ttl: 600", "ttl: 5", 1))
    beat()
    for address in ("/config/local/", "/config/local/review/", "/config/local/revisions/", "/hosts/local/"):
        assert "was edited by hand.</strong>" in page(admin, address), address
    overview = page(admin, "/")
    assert "edited by hand" in overview
    assert "nothing is written until somebody decides" in overview, "among what needs attention"
    assert "Router&#x27;s file changed" in page(admin, "/issues/")


def test_what_differs_by_model_and_as_text(target: Path, admin: Client, beat: Callable[[], None]) -> None:
    target.write_text(target.read_text().replace("ttl: 600", "ttl: 5", 1))
    beat()
    html = page(admin, "/config/local/drift/")
    assert "1 model changed" in html
    assert "The file was edited by hand" in html
    text = page(admin, "/config/local/drift/?tab=text")
    assert "1 line removed, 1 added" in text


def test_a_file_that_no_router_reads_is_compared_as_text(target: Path, admin: Client, beat: Callable[[], None]) -> None:
    target.write_text("models: [\n")
    beat()
    html = page(admin, "/config/local/drift/")
    assert "it is compared as text" in html
    assert "By model" not in html


def test_keep_ours_later_and_by_hand(
    target: Path, admin: Client, beat: Callable[[], None], django_capture_on_commit_callbacks: Any
) -> None:
    def choose(choice: str) -> Any:
        finding = TargetWatch.objects.get().finding
        values = {"choice": choice, "finding": finding}
        address = "/config/local/drift/choose/"
        return run(django_capture_on_commit_callbacks, lambda: admin.post(address, values))

    target.write_text(target.read_text() + "# mine\n")
    beat()
    assert choose("nothing").status_code == 422
    assert choose("later").status_code == 302
    assert "was edited by hand.</strong>" not in page(admin, "/config/local/")
    assert "edited by hand" in page(admin, "/config/local/"), "the strip goes on to say it"
    assert admin.post("/config/local/1/write/").status_code == 422
    choose("hand")
    assert "managed by hand" in page(admin, "/")
    choose("resume")
    assert choose("keep").status_code == 302
    assert target.read_text() == Revision.objects.get().text
    assert "The file matches revision 1" in page(admin, "/config/local/drift/")


def test_looking_now_stays_on_the_page(target: Path, admin: Client, django_capture_on_commit_callbacks: Any) -> None:
    target.write_text("models: {}\n")
    answer = run(django_capture_on_commit_callbacks, lambda: admin.post("/config/local/look/", {"next": "drift"}))
    assert answer["Location"] == "/config/local/drift/"
    assert "replaced by something" in page(admin, "/config/local/drift/")


def test_a_viewer_sees_and_decides_nothing(target: Path, viewer: Client, beat: Callable[[], None]) -> None:
    target.write_text("models: {}\n")
    beat()
    html = page(viewer, "/config/local/drift/")
    assert "replaced by something" in html
    assert "<form" not in html.split('id="drift-state"')[1].split("</aside>")[0]


def test_the_polled_part(target: Path, viewer: Client, beat: Callable[[], None]) -> None:
    beat()
    part = viewer.get("/config/local/drift/", headers={"HX-Request": "true"}).content.decode()
    assert part.lstrip().startswith('<aside class="q-plan q-side" id="drift-state"')


def test_what_was_found_before_can_be_had(target: Path, viewer: Client, beat: Callable[[], None]) -> None:
    whole = target.read_text()
    target.write_text(whole + "# mine\n")
    beat()
    target.write_text(whole)
    beat()
    html = page(viewer, "/config/local/drift/")
    assert "Found before" in html
    address = html.split(" download title")[0].rpartition('href="')[2].partition('"')[0]
    answer = viewer.get(address)
    assert answer.content.decode() == whole + "# mine\n"
    assert 'filename="found-' in answer["Content-Disposition"]
