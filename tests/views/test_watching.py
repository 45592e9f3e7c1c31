"""Watching on the pages of a host: what it says, and who may set it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from gpus_app.models import HostSetting
from models_app.models import FolderWatch

FOLDERS = "/hosts/local/folders/"
WATCHING = "/hosts/local/folders/watching/"


@pytest.fixture
def admin(scanned, as_role):
    return as_role("admin")


def text_of(client, page=FOLDERS) -> str:
    return " ".join(client.get(page).content.decode().split())


@pytest.mark.parametrize("page", [FOLDERS, "/hosts/local/"])
def test_both_pages_say_when_the_last_look_was(admin, page):
    assert "Folders are watched every 30 s; last look never" not in text_of(admin, page)
    FolderWatch.objects.update(looked_at=timezone.now() - timedelta(seconds=90), growing=2)
    assert "Folders are watched every 30 s; last look 1 min ago; 2 files still being written." in text_of(admin, page)


def test_before_the_first_scan(admin):
    FolderWatch.objects.all().delete()
    assert "Folders are watched every 30 s after the first scan." in text_of(admin)


def test_the_form_can_be_sent(admin):
    """Every form that posts carries its token; one without is refused by a real server."""
    html = admin.get(FOLDERS).content.decode()
    form = html.partition(f'action="{WATCHING}"')[2].partition("</form>")[0]
    assert 'name="csrfmiddlewaretoken"' in form


def test_setting_it(admin):
    assert admin.post(WATCHING, {"version": "0", "pollSec": "120"}).status_code == 302
    assert HostSetting.objects.get(section="watching").values == {"pollSec": 120}
    page = text_of(admin)
    assert "Folders are watched every 120 s" in page
    assert 'value="120"' in page
    admin.post(WATCHING, {"version": "1", "pollSec": "0"})
    assert "Folders are not watched: scans start by hand." in text_of(admin)
    admin.post(WATCHING, {"version": "2", "pollSec": ""})
    assert HostSetting.objects.get(section="watching").values == {}


@pytest.mark.parametrize("typed", ["5", "-1", "9e9", "often", "100000", "1.5"])
def test_what_is_not_accepted(admin, typed):
    answer = admin.post(WATCHING, {"version": "0", "pollSec": typed})
    assert answer.status_code == 422
    assert f'value="{typed}"' in answer.content.decode()
    assert not HostSetting.objects.filter(section="watching").exists()


def test_somebody_saved_meanwhile(admin):
    admin.post(WATCHING, {"version": "0", "pollSec": "120"})
    answer = admin.post(WATCHING, {"version": "0", "pollSec": "60"})
    assert answer.status_code == 409
    page = answer.content.decode()
    assert "saved 120 seconds meanwhile" in page
    assert '<input type="hidden" name="version" value="1"' in page
    assert admin.post(WATCHING, {"version": "1", "pollSec": "60"}).status_code == 302


def test_others_see_it_only(scanned, as_role):
    client = as_role("editor")
    assert 'name="pollSec"' not in text_of(client)
    assert client.post(WATCHING, {"version": "0", "pollSec": "60"}).status_code == 403
