"""Failures as pages: a status, a sentence, a way on; never a trace."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.cache import caches
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import InterfaceError, OperationalError
from django.test import Client, RequestFactory
from redis import RedisError

from gpus_app.models import Host
from models_app.models import Row
from models_app.views import model_detail, overview
from quartermaster_site import error_pages
from quartermaster_site.errors import Unavailable
from quartermaster_site.rate import RateLimit
from quartermaster_site.version import product_version

HTMX = {"HX-Request": "true"}


def test_too_large_a_form_is_413(gpu_host: Host, admin: Client) -> None:
    answer = admin.post("/hosts/local/folders/add/", {"path": "x" * (23 << 20)})
    assert answer.status_code == 413
    assert "at most 22 MiB" in answer.content.decode()


def test_a_large_file_is_refused_before_it_is_written_to_disk(gpu_host: Host, finished_setup: None) -> None:
    """No page takes one of this size; Django would keep it in the temporary folder, for anybody who asks."""
    upload = SimpleUploadedFile("x", b"x" * (23 << 20))
    assert Client().post("/login/", {"login": "x", "password": "x", "file": upload}).status_code == 413


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OperationalError("database is locked"), "What you sent was not stored"),
        (OperationalError("disk is full"), "What you sent was not stored"),
        (InterfaceError("closed"), "What you sent was not stored"),
        (RedisError("connection refused"), "Redis does not answer"),
    ],
)
def test_a_database_or_broker_that_does_not_answer_is_503(
    gpu_host: Host, viewer: Client, monkeypatch: pytest.MonkeyPatch, error: Exception, words: str
) -> None:
    def locked(*_: Any) -> Any:
        raise error

    monkeypatch.setattr(overview.selectors, "overview", locked)
    viewer.raise_request_exception = False
    answer = viewer.get("/")
    assert answer.status_code == 503
    assert words in answer.content.decode()


def test_sign_in_on_a_full_disk_is_not_called_too_many_attempts(
    gpu_host: Host, make_user: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The counters of the limits live in the database, and their failure to be stored is silent."""
    make_user("admin")
    monkeypatch.setattr(type(caches["default"]), "add", lambda *_, **__: False)
    answer = Client().post("/login/", {"login": "x", "password": "x"})
    assert answer.status_code == 503
    assert "no room left" in answer.content.decode()


def test_a_session_that_cannot_be_stored_is_no_bad_request(
    gpu_host: Host, viewer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its renewal is all that a page stores."""

    def full(*_: Any, **__: Any) -> None:
        raise OperationalError("database or disk is full")

    monkeypatch.setattr("django.contrib.sessions.models.Session.save", full)
    answer = viewer.get("/hosts/")
    assert answer.status_code == 503
    assert "no room left" in answer.content.decode()


BROKEN = {
    "fields": ({f"f{number}": "" for number in range(4001)}, {}),
    "no boundary": (b"x", {"content_type": "multipart/form-data"}),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_cannot_be_read_leaves_one_line(
    gpu_host: Host, make_user: Any, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    client = Client()
    client.force_login(make_user("admin"))
    data, more = BROKEN[name]
    answer = client.post("/hosts/local/folders/add/", data, **more)  # type: ignore[arg-type]
    assert answer.status_code == (413 if name == "fields" else 400)
    assert "<h1" in answer.content.decode()
    assert not any(record.exc_info for record in caplog.records)
    assert len(caplog.records) <= 2


def test_a_host_name_that_is_not_ours(gpu_host: Host, caplog: pytest.LogCaptureFixture) -> None:
    answer = Client().get("/login/", headers={"Host": "evil.example"})
    assert answer.status_code == 400
    assert "QM_ALLOWED_HOSTS" in answer.content.decode()
    assert not any(record.exc_info for record in caplog.records)


def test_addresses_in_the_log_stay_on_their_line(caplog: pytest.LogCaptureFixture) -> None:
    request = RequestFactory().get("/x")
    request.path = "/x\nERROR forged"
    error_pages.server_error(request)
    assert "\n" not in caplog.records[-1].getMessage()


def test_a_broken_view_is_500_with_a_reference_and_no_trace(
    gpu_host: Host, viewer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> Any:
        raise ValueError("secret detail")

    monkeypatch.setattr(overview.selectors, "overview", broken)
    viewer.raise_request_exception = False
    answer = viewer.get("/")
    html = answer.content.decode()
    assert answer.status_code == 500
    assert "Reference" in html
    assert "secret detail" not in html
    assert "Traceback" not in html


def test_a_part_that_is_down_says_what_still_works(
    gpu_host: Host, viewer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: Any) -> Any:
        raise Unavailable("Redis does not answer.")

    monkeypatch.setattr(overview.selectors, "overview", away)
    answer = viewer.get("/")
    assert answer.status_code == 503
    assert "Reading, previewing and downloading go on" in answer.content.decode()


def test_pages_need_no_broker(gpu_host: Host, viewer: Client, settings: Any) -> None:
    """Sessions least of all: with a copy of them in it no page would answer while it is away."""
    backend = "django.core.cache.backends.redis.RedisCache"
    settings.CACHES = {"default": {"BACKEND": backend, "LOCATION": "redis://127.0.0.1:1/0"}}
    assert settings.SESSION_ENGINE == "django.contrib.sessions.backends.db"
    for address in ("/", "/hosts/", "/jobs/", "/models/"):
        assert viewer.get(address).status_code == 200


def test_a_limit_keeps_the_panel(scanned: Host, viewer: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_detail, "PREVIEWS", RateLimit(per_second=5, burst=0, clock=lambda: 0.0))
    row = Row.objects.exclude(model_class="").first()
    assert row is not None
    answer = viewer.post(f"/models/{row.pk}/preview/", {}, headers=HTMX)
    assert (answer.status_code, answer["HX-Reswap"]) == (429, "none")


def test_an_expired_form_says_so(gpu_host: Host, viewer: Client) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = viewer.cookies
    answer = strict.post("/account/", {"theme": "dark", "density": "compact"})
    assert answer.status_code == 403
    assert "This form has expired" in answer.content.decode()


def test_fragments_get_a_panel_not_a_page(gpu_host: Host, viewer: Client) -> None:
    answer = viewer.get("/models/999999/", headers=HTMX)
    html = answer.content.decode()
    assert answer.status_code == 404
    assert html.lstrip().startswith('<div class="q-empty" id="error-panel"')


def test_config_without_a_name_finds_its_host(gpu_host: Host, viewer: Client) -> None:
    assert viewer.get("/config/")["Location"] == "/config/local/"


@pytest.mark.parametrize("address", ["/models/1/preview/", "/config/local/render/", "/hosts/local/scan/"])
def test_an_address_that_only_forms_go_to_has_a_page(gpu_host: Host, viewer: Client, address: str) -> None:
    answer = viewer.get(address)
    assert (answer.status_code, answer["Allow"]) == (405, "POST")
    assert "only takes what a form sends" in answer.content.decode()


def test_a_form_sent_after_the_session_ended_leads_back_to_the_form(gpu_host: Host, admin: Client) -> None:
    form = "http://testserver/models/1/?ctx=8k"
    answer = Client().post("/models/1/preview/", {"ctx": "8k"}, headers={"Referer": form})
    assert answer["Location"] == "/login/?next=%2Fmodels%2F1%2F%3Fctx%3D8k"
    answer = Client().post("/models/1/preview/", headers={"Referer": "https://elsewhere.example/x"})
    assert answer["Location"] == "/login/?next=%2F"


def test_the_footer_names_the_version(gpu_host: Host, viewer: Client) -> None:
    assert f"Quartermaster {product_version()}" in viewer.get("/jobs/").content.decode()


@pytest.mark.parametrize(
    ("claimed", "path"),
    [
        ("http://testserver/models/?q=a", "%2Fmodels%2F%3Fq%3Da"),
        ("http://[", "%2F"),
        ("http://testserver//evil.example/x", "%2Fevil.example%2Fx"),
        ("javascript:alert(1)", "%2Falert%281%29"),
    ],
)
def test_where_the_browser_says_it_is_is_not_believed(gpu_host: Host, admin: Client, claimed: str, path: str) -> None:
    answer = Client().get("/models/", headers={**HTMX, "HX-Current-URL": claimed})
    assert answer["HX-Redirect"] == f"/login/?next={path}"
