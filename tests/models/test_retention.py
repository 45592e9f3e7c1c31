"""How many texts of a host are kept."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from gpus_app.services import request_plan, save_memory_settings
from models_app.models import Publishing, Revision
from models_app.services import start_write
from models_app.services.retention import prune_revisions, save_keeping
from quartermaster_site.access.audit import Actor
from quartermaster_site.access.models import AuditEntry
from quartermaster_site.errors import NotAllowed, Refused


def add(host, number, **values):
    hashes = {"sha256": str(number), "body_sha256": str(number)}
    return Revision.objects.create(host=host, number=number, dialect="llama-swap", text="# x", **hashes, **values)


def numbers(host):
    return sorted(Revision.objects.filter(host=host).values_list("number", flat=True))


@pytest.fixture
def few(host):
    """Ten are kept."""
    Publishing.objects.create(host=host, keep_revisions=10)
    return host


def test_the_newest_stay(few):
    for number in range(1, 26):
        add(few, number)
    assert prune_revisions(few) == 15
    assert numbers(few) == list(range(16, 26))
    assert prune_revisions(few) == 0
    assert AuditEntry.objects.get(action="config.purge").changes == {"revisions": [15, 0]}


def test_what_matters_stays_whatever_its_age(few):
    now = timezone.now()
    day = timedelta(days=1)
    add(few, 1, written_at=now - 800 * day)  # live for long, but not in the last year
    add(few, 2, written_at=now - 400 * day)  # until revision 3 came: within the year
    add(few, 3, written_at=now - 200 * day)  # for an hour
    add(few, 4, written_at=now - 200 * day + timedelta(hours=1))
    add(few, 5, written_at=now - 10 * day, state="written")
    live = add(few, 6, state="written", written_at=now)
    pinned = add(few, 7)
    add(few, 8, state="awaiting")
    Publishing.objects.update(pinned=pinned)
    few.written_sha256 = live.sha256
    few.save()
    for number in range(9, 31):
        add(few, number)
    prune_revisions(few)
    assert numbers(few) == [2, 4, 5, 6, 7, 8, *range(21, 31)]


def test_planning_prunes(scanned, host, actor, django_capture_on_commit_callbacks):
    Publishing.objects.create(host=host, keep_revisions=10)
    for number in range(2, 30):
        add(host, number)
    with django_capture_on_commit_callbacks(execute=True):
        request_plan(host=host, actor=actor)
    assert numbers(host) == list(range(21, 31))


def test_backups_are_limited_by_the_host(scanned, host, actor, tmp_path, django_capture_on_commit_callbacks):
    host.publish_path = str(tmp_path / "router.yaml")
    host.save()
    save_keeping(host=host, revisions=200, backups=2, actor=actor)
    for version, seconds in enumerate((5, 6, 7, 8, 9)):
        with django_capture_on_commit_callbacks(execute=True):
            save_memory_settings(host=host, values={"ttlSec": seconds}, version=version, actor=actor)
        with django_capture_on_commit_callbacks(execute=True):
            start_write(revision=Revision.objects.select_related("host").first(), actor=actor)
    assert len(list(tmp_path.glob("router.yaml.bak-*"))) == 2


def test_who_and_within_which_limits(host, actor, make_user):
    row = save_keeping(host=host, revisions=50, backups=3, actor=actor)
    assert (row.keep_revisions, row.keep_backups) == (50, 3)
    for revisions, backups in ((9, 5), (5001, 5), (50, 0), (50, 101), (-1, -1)):
        with pytest.raises(Refused):
            save_keeping(host=host, revisions=revisions, backups=backups, actor=actor)
    with pytest.raises(NotAllowed):
        save_keeping(host=host, revisions=50, backups=3, actor=Actor(user=make_user("editor")))
