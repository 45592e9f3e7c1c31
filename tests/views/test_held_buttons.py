"""Buttons that need the queue or a host's worker say so while they cannot have it (J-10)."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.utils import timezone

from gpus_app.models import Backend, Host
from models_app.models import Router, Row
from quartermaster_site.jobs.models import Job

GONE = "The queue folder is gone."
BUTTONS = {
    "/hosts/local/backends/": ("Test", "Test all", "Look for programs"),
    "/hosts/local/folders/browse/?for=folder&back=/hosts/": ("Look",),
    "/router/local/": ("Load",),
    "/config/local/review/": ("Write",),
    "/models/{model}/test/": ("Test launch",),
    "/models/{model}/files/": ("Re-read header",),
    "/jobs/{job}/": ("Run again",),
}


@pytest.fixture
def pages(scanned):
    """Everything that a page needs to show its buttons; addresses with the numbers filled in."""
    Backend.objects.create(host=scanned, slug="sd", kind="sd", path="/opt/sd-server")
    Host.objects.update(publish_path="/srv/router/config.yaml")
    entry = {"id": "a", "state": "unloaded", "since": timezone.now().isoformat(), "aliases": [], "command": []}
    more = {"exit_code": None, "window_tokens": None, "from_file": True}
    now = timezone.now()
    Router.objects.create(
        host=scanned, url="http://127.0.0.1:1", seen_at=now, answered_at=now, kind="llama-server", listed=[entry | more]
    )
    numbers = {"model": Row.objects.get(served_id__startswith="qwen3-8b").pk, "job": Job.objects.get(kind="scan").pk}
    return {page.format(**numbers): words for page, words in BUTTONS.items()}


def held(client, page):
    """The buttons that are held back, with the reason, and whether it stands on the page as well."""
    html = client.get(page).content.decode()
    found = re.findall(r'<button [^>]*aria-disabled="true" title="([^"]*)"[^>]*>(.*?)</button>', html, re.S)
    words = {re.sub(r"<span.*|<svg.*?</svg>", "", text, flags=re.S).strip(): reason for reason, text in found}
    return words, re.sub(r"<[^>]*>", "", html)


def test_they_name_what_is_missing(pages, admin, monkeypatch):
    for page in pages:
        assert not held(admin, page)[0], page
    monkeypatch.setattr("models_app.pages.host_page.broker_problem", lambda: GONE)
    for page, wanted in pages.items():
        words, text = held(admin, page)
        assert GONE in text, page
        for name in wanted:
            assert any(word.startswith(name) and reason == GONE for word, reason in words.items()), (page, name, words)


def test_an_offline_worker_holds_them_back_too(pages, admin):
    Host.objects.update(last_seen_at=timezone.now() - timedelta(minutes=5))
    for page in pages:
        words, text = held(admin, page)
        assert "The worker is offline; a new job waits for it" in words.values(), page
        assert "he worker is offline; a new job waits for it" in text, page
