"""The config file: text with numbered lines, findings, dialect, download, writing."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.test import Client

from gpus_app.models import Host
from models_app.core.export.stamp import Stamp, read_stamp
from models_app.models import Revision
from quartermaster_site.access.models import AuditEntry
from quartermaster_site.jobs.models import Job
from tests.views.conftest import run


def test_text_with_numbered_lines_and_verdict(scanned: Host, viewer: Client) -> None:
    html = viewer.get("/config/local/").content.decode()
    assert '<a href="#L1">1</a># Quartermaster export' in html
    assert "Valid for llama-swap" in html
    assert "4 entries, 1 left out" in html
    assert "embedding" in html, "what was left out, and why"


def test_a_plan_that_waits_is_not_said_to_be_made(scanned: Host, viewer: Client) -> None:
    job = Job.objects.create(kind="plan_host", host=scanned, token="x")

    def told() -> str:
        return re.sub(r"<[^>]*>", "", viewer.get("/config/local/").content.decode())

    assert f"is to be planned. One host is planned at a time; its turn comes. Job {job.pk}" in told()
    Job.objects.filter(pk=job.pk).update(state_reason="Redis does not answer. It is sent as soon as there is a queue.")
    assert "is to be planned. Redis does not answer. It is sent as soon as there is a queue." in told()
    Job.objects.filter(pk=job.pk).update(state="running", state_reason="")
    assert "Planning Local machine. A new text follows." in told()


def test_secrets_of_raw_keys_are_masked(scanned: Host, viewer: Client, admin: Client) -> None:
    Revision.objects.update(text="peers:\n  far:\n    apiKey: sk-peer-in-clear\n")
    html = viewer.get("/config/local/").content.decode()
    assert "sk-p…" in html
    assert "sk-peer-in-clear" not in html
    path = "/config/local/1/download/"
    assert b"sk-peer-in-clear" not in viewer.get(path).content
    assert b"sk-peer-in-clear" in admin.get(path).content, "a router could not read it masked"
    assert AuditEntry.objects.filter(action="config.secrets").count() == 1


def test_download_is_the_text_byte_for_byte(scanned: Host, viewer: Client) -> None:
    answer = viewer.get("/config/local/1/download/")
    assert answer["Content-Disposition"] == 'attachment; filename="config.yaml"'
    assert answer.content.decode() == Revision.objects.get().text


def test_findings_link_to_their_line(scanned: Host, viewer: Client) -> None:
    finding = {
        "rule": "V-15",
        "severity": "warn",
        "where": "models.x.cmd",
        "line": 12,
        "message": "looks like a <secret>",
    }
    Revision.objects.update(findings=[finding])
    html = viewer.get("/config/local/").content.decode()
    assert 'href="#L12">line 12' in html
    assert 'id="L12" class="w"' in html
    assert "&lt;secret&gt;" in html
    assert "Valid, with 1 warning" in html


def test_a_blocked_text_is_not_written(scanned: Host, admin: Client) -> None:
    Host.objects.update(publish_path="/tmp/x/config.yaml")  # noqa: S108
    Revision.objects.update(
        state=Revision.State.BLOCKED,
        findings=[
            {"rule": "V-20", "severity": "warn", "message": "the same command"},
            {"rule": "V-03", "severity": "block", "message": "two models, one id"},
        ],
    )
    html = admin.get("/config/local/").content.decode()
    assert "Not to be written: 1 finding blocks it" in html
    assert html.index("two models, one id") < html.index("the same command"), "what blocks is not hidden below warnings"
    assert "Findings block it." in html
    assert admin.post("/config/local/1/write/").status_code == 422


def test_nothing_rendered_yet(gpu_host: Host, viewer: Client) -> None:
    assert "Nothing rendered yet" in viewer.get("/config/local/").content.decode()


def test_choosing_the_router_makes_the_text_anew(
    scanned: Host, admin: Client, django_capture_on_commit_callbacks: Any
) -> None:
    run(
        django_capture_on_commit_callbacks,
        lambda: admin.post("/config/local/target/", {"dialect": "quartermaster"}),
    )
    html = admin.get("/config/local/").content.decode()
    assert "Valid for Quartermaster router" in html


def test_llama_servers_own_router_gets_its_presets(
    scanned: Host, admin: Client, django_capture_on_commit_callbacks: Any
) -> None:
    sent = {"path": "/srv/models.ini", "dialect": "llama-server"}
    run(django_capture_on_commit_callbacks, lambda: admin.post("/config/local/target/", sent))
    revision = Revision.objects.order_by("number").last()
    assert revision is not None
    assert "; RUN: llama-server --models-preset /srv/models.ini --models-max" in revision.text
    assert read_stamp(revision.text) == Stamp("local", revision.number, revision.body_sha256, intact=True)
    html = admin.get("/config/local/").content.decode()
    assert "Valid for llama-server (router mode)" in html
    answer = admin.get(f"/config/local/{revision.number}/download/")
    assert answer["Content-Disposition"] == 'attachment; filename="models.ini"'
    assert answer["Content-Type"].startswith("text/plain")
    assert "GET /models?reload=1" in admin.get(f"/config/local/{revision.number}/write/").content.decode()
    assert "Revision 2" in html
    assert "Revision 1" in html
    assert "llama-swap" in admin.get("/config/local/?revision=1").content.decode()


def test_bad_targets_are_refused_beside_their_field(scanned: Host, admin: Client) -> None:
    for path in ("config.yaml", "/etc/router/", "/" + "x" * 2000):
        answer = admin.post("/config/local/target/", {"path": path, "dialect": "llama-swap"})
        assert answer.status_code == 422, path
        assert 'class="q-err"' in answer.content.decode()
    assert admin.post("/config/local/target/", {"path": "", "dialect": "nonsense"}).status_code == 422


def test_of_two_browsers_that_set_the_path_the_second_is_asked(scanned: Host, admin: Client) -> None:
    form = {"was-path": ""}
    assert admin.post("/config/local/target/", form | {"path": "/srv/a.yaml"}).status_code == 302
    answer = admin.post("/config/local/target/", form | {"path": "/srv/b.yaml"})
    html = answer.content.decode()
    assert answer.status_code == 409
    assert "It is now /srv/a.yaml, for llama-swap" in html
    assert 'name="was-path" value="/srv/a.yaml"' in html
    assert 'value="/srv/b.yaml"' in html, "what was typed stays"
    assert admin.post("/config/local/target/", {"was-dialect": "quartermaster", "dialect": "x"}).status_code == 422
    Host.objects.update(publish_path="/srv/c.yaml")
    assert admin.post("/config/local/1/write/", {"path": "/srv/a.yaml"}).status_code == 409


def test_writing_asks_first_and_replaces_foreign_files_only_when_told(
    scanned: Host, admin: Client, tmp_path: Path, django_capture_on_commit_callbacks: Any
) -> None:
    target = tmp_path / "config.yaml"
    target.write_text("models: {}  # by hand\n")

    def post(address: str, **values: str) -> Any:
        return run(django_capture_on_commit_callbacks, lambda: admin.post(address, values))

    post("/config/local/target/", path=str(target), dialect="llama-swap")
    question = admin.get("/config/local/1/write/").content.decode()
    assert "Write revision 1" in question
    assert "adopt" not in question
    post("/config/local/1/write/")
    assert target.read_text() == "models: {}  # by hand\n"
    assert Job.objects.get(kind="publish").state == "failed"
    assert 'name="adopt"' in admin.get("/config/local/1/write/").content.decode()
    post("/config/local/1/write/", adopt="1")
    assert target.read_text() == Revision.objects.get().text
    page = admin.get("/config/local/").content.decode()
    assert "This text was written to the host" in page


def test_an_operator_cannot_have_foreign_files_replaced(scanned: Host, as_role: Callable[[str], Client]) -> None:
    Host.objects.update(publish_path="/tmp/x/config.yaml")  # noqa: S108
    assert as_role("operator").post("/config/local/1/write/", {"adopt": "1"}).status_code == 403


def test_polls_while_a_plan_runs(scanned: Host, viewer: Client) -> None:
    job = Job.objects.create(kind="plan_host", host=scanned, state="running", token="x")
    html = viewer.get("/config/local/").content.decode()
    assert 'hx-trigger="every 2s"' in html
    assert '<noscript><meta http-equiv="refresh"' in html
    part = {"HX-Request": "true", "HX-Target": "config-text"}
    assert viewer.get("/config/local/", headers=part).status_code == 200
    job.state = "succeeded"
    job.save()
    assert viewer.get("/config/local/", headers=part).status_code == 286


def test_a_file_edited_by_hand_shows_until_it_is_settled(
    scanned: Host, admin: Client, tmp_path: Path, django_capture_on_commit_callbacks: Any
) -> None:
    target, other = tmp_path / "config.yaml", tmp_path / "other.yaml"

    def post(address: str, **values: str) -> Any:
        return run(django_capture_on_commit_callbacks, lambda: admin.post(address, values))

    post("/config/local/target/", path=str(target), dialect="llama-swap")
    post("/config/local/1/write/")
    target.write_text(target.read_text() + "# mine\n")
    post("/config/local/1/write/")
    html = admin.get("/config/local/").content.decode()
    assert "edited by hand" in html
    assert "The file there is not as Quartermaster left it" in html
    assert "This text was written to the host" not in html
    assert "rev 1 written" in admin.get("/").content.decode()
    job = Job.objects.filter(kind="publish").first()
    assert job is not None
    assert "<strong>Drift.</strong>" in admin.get(f"/jobs/{job.pk}/").content.decode()
    post("/config/local/target/", path=str(other), dialect="llama-swap")
    assert "adopt" not in admin.get("/config/local/1/write/").content.decode(), "that was another file"
    assert "edited by hand" not in admin.get("/").content.decode()


def test_the_same_text_under_another_number_counts_as_written(
    scanned: Host, admin: Client, tmp_path: Path, django_capture_on_commit_callbacks: Any
) -> None:
    def post(address: str, **values: str) -> Any:
        return run(django_capture_on_commit_callbacks, lambda: admin.post(address, values))

    post("/config/local/target/", path=str(tmp_path / "config.yaml"), dialect="llama-swap")
    post("/config/local/1/write/")
    for dialect in ("quartermaster", "llama-swap"):
        post("/config/local/target/", path=str(tmp_path / "config.yaml"), dialect=dialect)
    html = admin.get("/").content.decode()
    assert Revision.objects.count() == 3
    assert "rev 1 written" in html
    assert re.search(r"rev 1, \d+ s ago", html)
