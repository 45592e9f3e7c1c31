"""A person's own page: look, time zone, shortcuts, address, and what they did last."""

from __future__ import annotations

import pytest

from quartermaster_site.access.models import AuditEntry
from quartermaster_site.jobs.models import Job

GOOD = {"theme": "dark", "density": "compact", "time_zone": "Asia/Tokyo", "shortcuts": "on", "email": ""}


@pytest.fixture
def person(make_user, client, installation):
    make_user("admin", "first")
    user = make_user("viewer", "vera")
    client.force_login(user)
    return user


def test_times_stand_in_the_chosen_zone_with_utc_in_the_title(person, client, installation):
    job = Job.objects.get()
    Job.objects.update(created_at="2026-01-31T22:30:05Z")
    page = f"/jobs/{job.pk}/"
    assert '<time title="2026-01-31 22:30:05 UTC">2026-01-31 22:30 UTC</time>' in client.get(page).content.decode()
    assert client.post("/account/", GOOD).status_code == 302
    assert '<time title="2026-01-31 22:30:05 UTC">2026-02-01 07:30 JST</time>' in client.get(page).content.decode()
    html = client.get("/account/").content.decode()
    assert 'data-density="compact"' in html
    assert 'data-bs-theme="dark"' in html
    assert "data-shortcuts" not in html


def test_shortcuts_can_be_off(person, client):
    client.post("/account/", {key: value for key, value in GOOD.items() if key != "shortcuts"})
    assert 'data-shortcuts="off"' in client.get("/").content.decode()


@pytest.mark.parametrize(
    "wrong", [{"time_zone": "Mars/Base"}, {"theme": "purple"}, {"density": "x"}, {"email": "nowhere"}, {"theme": ""}]
)
def test_a_value_that_is_none_changes_nothing(person, client, wrong):
    answer = client.post("/account/", GOOD | wrong)
    assert answer.status_code == 422
    assert 'aria-invalid="true"' in answer.content.decode()
    person.account.refresh_from_db()
    assert person.account.time_zone == ""


def test_a_zone_that_the_system_lost_is_utc(person, client):
    person.account.time_zone = "Gone/Away"
    person.account.save()
    assert client.get("/jobs/").status_code == 200


def test_the_address_is_ones_own_and_on_record(person, client):
    client.post("/account/", GOOD | {"email": "vera@example.org"})
    person.refresh_from_db()
    assert person.email == "vera@example.org"
    assert AuditEntry.objects.get(action="user.change").changes == {"email": ["", "vera@example.org"]}
    assert "user.change" in client.get("/account/").content.decode()
