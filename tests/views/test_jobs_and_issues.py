"""Jobs with live progress, and the table of findings."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.http import QueryDict
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from gpus_app.models import Host
from models_app.models import Finding, Root
from models_app.selectors import ModelFilter
from quartermaster_site.jobs import views as job_views
from quartermaster_site.jobs.models import Job, State
from quartermaster_site.jobs.pages import _outcome

HTMX = {"HX-Request": "true"}


def _job(host: Host, **columns: Any) -> Job:
    values: dict[str, Any] = {"kind": "scan", "state": "running", "token": "x", "started_at": timezone.now()}
    return Job.objects.create(host=host, **{**values, **columns})


def test_nothing_has_run_yet(gpu_host: Host, viewer: Client) -> None:
    assert "Nothing has run yet" in viewer.get("/jobs/").content.decode()


def test_the_frame_counts_the_jobs_that_the_list_shows(gpu_host: Host, viewer: Client) -> None:
    _job(gpu_host, kind="find_checker", state="queued")
    assert "s-jobs-link" not in viewer.get("/jobs/").content.decode()
    _job(gpu_host)
    assert "1 unfinished</a>" in viewer.get("/jobs/").content.decode()


def test_a_job_that_waits_has_not_started(gpu_host: Host, viewer: Client) -> None:
    job = _job(gpu_host, state="waiting", started_at=None)
    page = f"/jobs/{job.pk}/"
    assert "asked 0 s ago" in viewer.get("/jobs/").content.decode()
    assert "asked for by system" in viewer.get(page).content.decode()
    Job.objects.update(state="running", started_at=timezone.now(), created_at=timezone.now() - timedelta(minutes=5))
    assert "asked" not in viewer.get("/jobs/").content.decode()
    assert "started by system 0 s ago" in viewer.get(page).content.decode()


def test_a_running_job_polls_until_it_is_over(gpu_host: Host, viewer: Client) -> None:
    job = _job(gpu_host, phase="Reading headers", done=412, total=1280, unit="files", warnings=3)
    html = viewer.get(f"/jobs/{job.pk}/").content.decode()
    assert "412 of 1,280 files · 3 problems" in html
    assert '<progress id="job-progress" max="1280" value="412"' in html
    assert 'hx-trigger="every 2s"' in html
    assert "<noscript>" in html
    assert viewer.get(f"/jobs/{job.pk}/panel/", headers=HTMX).status_code == 200
    Job.objects.update(state="succeeded", finished_at=timezone.now(), result={"models": 35, "files": 41})
    answer = viewer.get(f"/jobs/{job.pk}/panel/", headers=HTMX)
    assert answer.status_code == 286
    part = answer.content.decode()
    assert part.lstrip().startswith('<section class="q-card" id="job-panel"')
    assert "hx-trigger" not in part
    assert "<dt>Problems</dt><dd>3</dd>" in part
    assert 'href="/models/?host=local">Models</a>' in part


def test_an_open_page_follows_the_log(gpu_host: Host, viewer: Client) -> None:
    job = _job(gpu_host)
    html = viewer.get(f"/jobs/{job.pk}/").content.decode()
    assert "The log is empty." in html
    poll = re.search(r'hx-get="([^"]*/panel/[^"]*)"', html)
    assert poll
    assert "job-log" not in viewer.get(poll[1], headers=HTMX).content.decode()
    Job.objects.update(log="read a.gguf")
    part = viewer.get(poll[1], headers=HTMX).content.decode()
    assert '<div id="job-log" hx-swap-oob="true">' in part
    assert "read a.gguf</pre>" in part
    poll = re.search(r'hx-get="([^"]*/panel/[^"]*)"', part)
    assert poll
    assert "job-log" not in viewer.get(poll[1], headers=HTMX).content.decode()
    Job.objects.update(log="read b.gguf")  # a log at its cap has the same length for ever
    assert "read b.gguf</pre>" in viewer.get(poll[1], headers=HTMX).content.decode()
    Job.objects.update(state="succeeded", finished_at=timezone.now(), log="read a.gguf")
    assert "read a.gguf</pre>" in viewer.get(poll[1], headers=HTMX).content.decode()


def test_an_unknown_total_is_an_unfilled_bar(gpu_host: Host, viewer: Client) -> None:
    job = _job(gpu_host, phase="Listing files", done=836, total=None, unit="files")
    html = viewer.get(f"/jobs/{job.pk}/").content.decode()
    assert '<progress id="job-progress">' in html
    assert "836 files" in html


def test_cancelling_and_running_again(gpu_host: Host, as_role: Callable[[str], Client]) -> None:
    admin = as_role("admin")
    job = _job(gpu_host, state="waiting", started_at=None)
    assert 'data-press="c">Cancel</button>' in admin.get(f"/jobs/{job.pk}/").content.decode()
    assert admin.post(f"/jobs/{job.pk}/cancel/").status_code == 302
    html = admin.get(f"/jobs/{job.pk}/").content.decode()
    assert "cancelled" in html
    assert "Run again" in html
    answer = admin.post(f"/jobs/{job.pk}/retry/")
    assert answer["Location"] != f"/jobs/{job.pk}/"
    viewer = as_role("viewer")
    assert "Run again" not in viewer.get(f"/jobs/{job.pk}/").content.decode()


def test_a_failed_job_says_why_and_shows_its_log(gpu_host: Host, viewer: Client) -> None:
    job = _job(
        gpu_host, state="failed", error="the disk is gone", error_kind="OSError", advice="Mount it.", log="one\n<two>"
    )
    html = viewer.get(f"/jobs/{job.pk}/").content.decode()
    assert "the disk is gone" in html
    assert "Mount it." in html
    assert "&lt;two&gt;" in html


def test_a_lost_job_leads_to_the_one_that_was_started_in_its_place(gpu_host: Host, viewer: Client) -> None:
    lost = _job(gpu_host, state="lost")
    again = _job(gpu_host, state="waiting", retry_of=lost)
    _job(gpu_host, kind="plan_host", state="succeeded", result={"models": 5, "entries": 5, "revision": 2})
    html = viewer.get(f"/jobs/{lost.pk}/").content.decode()
    assert f"again as scan job {again.pk}" in re.sub(r"<[^>]*>", "", html)
    assert "5 quants, 5 entries, revision 2" in viewer.get("/jobs/").content.decode()


def test_the_same_work_twice_is_said_with_its_time(gpu_host: Host, as_role: Callable[[str], Client]) -> None:
    operator = as_role("operator")
    begun = timezone.now() - timedelta(minutes=9)
    job = _job(gpu_host, kind="probe_devices", started_at=begun)
    html = operator.post("/hosts/local/probe/", follow=True).content.decode()
    assert f"This is already running, since {timezone.localtime(begun):%H:%M}" in html
    Job.objects.update(state="queued", started_at=None, created_at=begun)
    html = operator.post("/hosts/local/probe/", follow=True).content.decode()
    assert f"This is already queued, since {timezone.localtime(begun):%H:%M}" in html
    assert Job.objects.get() == job


def test_the_list_says_what_each_job_is_about(gpu_host: Host, viewer: Client) -> None:
    _job(gpu_host, kind="verify_memory", state="succeeded", object_label="alpha-1b:q4_0")
    html = viewer.get("/jobs/").content.decode()
    assert '<th scope="col" role="columnheader">Object</th>' in html
    assert '<td role="cell" data-l="Object" class="q-break">alpha-1b:q4_0</td>' in html


def test_the_list_filters_by_host_and_keeps_what_else_is_chosen(gpu_host: Host, viewer: Client) -> None:
    other = Host.objects.create(slug="gpu-b", name="Box B")
    _job(gpu_host)
    _job(other, kind="probe_devices")
    html = viewer.get("/jobs/?host=gpu-b&kind=probe_devices&state=unfinished").content.decode()
    assert '<option value="gpu-b" selected>Box B</option>' in html
    assert '<input type="hidden" name="state" value="unfinished">' in html
    assert "Probe devices</a>" in html
    assert "Scan</a>" not in html
    assert 'href="/jobs/?state=failed&amp;kind=probe_devices&amp;host=gpu-b"' in html
    mine = viewer.get("/jobs/?mine=1&host=gpu-b").content.decode()
    assert '<input type="hidden" name="mine" value="1">' in mine
    other.delete()
    assert 'name="host"' not in viewer.get("/jobs/").content.decode(), "one host needs no choice"


def test_the_list_filters(gpu_host: Host, viewer: Client) -> None:
    _job(gpu_host, kind="probe_devices", state="failed", error="no driver")
    _job(gpu_host)
    everything = viewer.get("/jobs/").content.decode()
    assert "Probe devices" in everything
    assert 'hx-trigger="every 2s"' in everything
    failed = viewer.get("/jobs/?state=failed").content.decode()
    assert "no driver" in failed
    assert 'hx-trigger="every 2s"' not in failed
    assert "No job matches" in viewer.get("/jobs/?mine=1").content.decode()
    assert viewer.get("/jobs/?state=zzz&kind=zzz&page=zzz").status_code == 200


def test_findings_explain_themselves(scanned: Host, viewer: Client) -> None:
    html = viewer.get("/issues/").content.decode()
    assert "broken.gguf" in html
    assert "Header unreadable" in html
    assert "Download the file again" in html
    assert "No finding matches" in viewer.get("/issues/?q=zzz").content.decode()
    assert "broken.gguf" in viewer.get("/issues/?level=error&q=broken").content.decode()


def test_findings_are_escaped_and_the_empty_table_says_so(gpu_host: Host, viewer: Client) -> None:
    assert "No findings" in viewer.get("/issues/").content.decode()
    Finding.objects.create(host=gpu_host, kind="odd", path="/m/<b>.gguf", text="<script>alert(1)</script>")
    html = viewer.get("/issues/").content.decode()
    assert "<script>alert" not in html
    assert "<b>" not in html


def test_an_acknowledged_finding_comes_back_when_it_changes(gpu_host: Host, as_role: Callable[[str], Client]) -> None:
    operator = as_role("operator")
    finding = Finding.objects.create(host=gpu_host, kind="incomplete", path="/m/a.gguf", text="half of it")
    page = operator.get("/issues/").content.decode()
    assert "Acknowledge<" in page
    assert "all 1</a>" in page
    answer = operator.post(f"/issues/{finding.pk}/acknowledge/", {"next": "/issues/?q=a"})
    assert answer["Location"] == "/issues/?q=a"
    assert "No findings" in operator.get("/issues/").content.decode()
    assert "acknowledged 1" in operator.get("/issues/").content.decode()
    seen = operator.get("/issues/?level=acknowledged").content.decode()
    assert "seen by operator" in seen
    Finding.objects.update(text="a third of it")
    assert "a third of it" in operator.get("/issues/").content.decode()
    operator.post(f"/issues/{finding.pk}/acknowledge/")
    operator.post(f"/issues/{finding.pk}/acknowledge/", {"off": "1"})
    assert "a third of it" in operator.get("/issues/").content.decode()


def test_errors_stay_until_they_are_mended(gpu_host: Host, as_role: Callable[[str], Client]) -> None:
    operator = as_role("operator")
    finding = Finding.objects.create(host=gpu_host, kind="header-unreadable", path="/m/a.gguf", text="x", level="error")
    assert "stays until fixed" in operator.get("/issues/").content.decode()
    assert operator.post(f"/issues/{finding.pk}/acknowledge/").status_code == 422
    assert "header-unreadable" in operator.get("/issues/export/").content.decode()


def test_findings_as_csv_start_no_formula(gpu_host: Host, viewer: Client) -> None:
    Finding.objects.create(host=gpu_host, kind="odd", path="/m/a.gguf", text='=HYPERLINK("x")', level="warning")
    Finding.objects.create(host=gpu_host, kind="odd", path="/m/b.gguf", text="two, words", level="info")
    answer = viewer.get("/issues/export/?level=warning")
    assert answer["Content-Disposition"] == 'attachment; filename="issues.csv"'
    lines = answer.content.decode().splitlines()
    assert lines[0] == "severity,kind,what,text,path,host,how to fix,since"
    assert lines[1].startswith('warning,odd,Odd,"\'=HYPERLINK(""x"")",/m/a.gguf,')
    assert len(lines) == 2


def test_findings_of_one_host(gpu_host: Host, viewer: Client) -> None:
    """Of several hosts each finding says where; of one there is nothing to choose."""
    Finding.objects.create(host=gpu_host, kind="odd", path="/m/alpha.gguf", text="x", level="warning")
    assert 'name="host"' not in viewer.get("/issues/").content.decode()
    other = Host.objects.create(slug="gpu-b", name="Second box")
    Finding.objects.create(host=other, kind="odd", path="/m/beta.gguf", text="x", level="warning")
    whole, one = (viewer.get(f"/issues/{query}").content.decode() for query in ("", "?host=gpu-b&level=warning"))
    assert "on Second box" in whole
    assert ("alpha.gguf" in whole, "alpha.gguf" in one, "beta.gguf" in one) == (True, False, True)
    assert '<option value="gpu-b" selected>' in one
    assert "/issues/?host=gpu-b" in one, "chips keep it"
    assert "all 2</a>" in whole
    assert "all 1</a>" in one
    lines = viewer.get("/issues/export/?host=gpu-b").content.decode().splitlines()
    assert ["beta.gguf" in line for line in lines] == [False, True]
    assert "Clear filters" in viewer.get("/issues/?host=nobody").content.decode()


def test_themes_are_kept(gpu_host: Host, viewer: Client) -> None:
    assert "data-bs-theme" not in viewer.get("/").content.decode()
    assert viewer.post("/account/", {"theme": "dark", "density": "compact"}).status_code == 302
    assert 'data-bs-theme="dark"' in viewer.get("/").content.decode()
    assert viewer.post("/account/", {"theme": "purple", "density": "compact"}).status_code == 422


def test_findings_do_not_say_everything_twice(scanned: Host, viewer: Client) -> None:
    root = Root.objects.get()
    Finding.objects.create(
        host=scanned, kind="root-missing", path="/srv/gone", text="this models folder is not a folder", level="error"
    )
    Finding.objects.create(
        host=scanned, kind="file-unreadable", path=f"{root.path}/link.gguf", text="file cannot be read: broken link"
    )
    overview, issues = viewer.get("/").content.decode(), viewer.get("/issues/").content.decode()
    assert "header unreadable: unreadable" not in overview
    assert "folder missing: it is not a folder" in overview
    assert 'href="/hosts/local/folders/">Look' in overview
    assert "file unreadable: broken link" in overview
    assert "See the text" not in issues


def test_a_finding_does_not_drag_its_scan_along(scanned: Host, viewer: Client) -> None:
    """The job of a scan holds a megabyte of known files; a page of findings sorts thousands of lines."""
    with CaptureQueriesContext(connection) as queries:
        viewer.get("/issues/")
    findings = [query["sql"] for query in queries if 'FROM "models_app_finding"' in query["sql"]]
    assert findings
    assert not any("inputs" in sql or '"found"' in sql for sql in findings)


def test_no_query_holds_a_nul(gpu_host: Host, viewer: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """PostgreSQL takes none, not even to compare with."""
    asked: list[Any] = []
    monkeypatch.setattr(job_views.selectors, "jobs", lambda user, **wanted: asked.append(wanted) or Job.objects.none())
    assert viewer.get("/jobs/?host=a%00b&state=%00&kind=%00").status_code == 200
    assert [(wanted["host"], wanted["state"], wanted["kind"]) for wanted in asked] == [("ab", "", "")]
    wanted = ModelFilter.from_query(QueryDict("host=a%00b&q=c%00d&cat=%00&state=%00"))
    assert (wanted.host, wanted.q, wanted.cat, wanted.state) == ("ab", "cd", "", "")


def test_a_job_that_nobody_hears_of_has_no_time_left(host: Host, admin: Client) -> None:
    now = timezone.now()
    values: dict[str, Any] = {"done": 40, "total": 100, "rate": 10.0, "samples": 9, "current": "a.gguf"}
    job = _job(host, heartbeat_at=now, **values)
    page = f"/jobs/{job.pk}/"
    assert "10 a second · about 00:06 left" in admin.get(page).content.decode()
    Job.objects.update(heartbeat_at=now - timedelta(seconds=41))
    html = admin.get(page).content.decode()
    assert "nothing heard for 00:41" in html
    assert "no longer reports. If that goes on, the job counts as lost within two minutes, and is started again" in html
    assert "left" not in re.sub(r"<[^>]*>", "", html)
    assert "a.gguf" not in html


@pytest.mark.parametrize(
    ("result", "told"),
    [
        ({"devices": 1}, "1 device"),
        ({"devices": 0}, "0 devices"),
        ({"entries": 1, "revision": 4}, "1 entry, revision 4"),
        ({"models": 1, "files": 2, "missing": 1}, "1 quant, 2 files, 1 missing"),
    ],
)
def test_a_list_counts_in_words(result: dict[str, int], told: str) -> None:
    job = Job(kind="scan", state=State.SUCCEEDED, result=result)
    assert _outcome(job) == told
