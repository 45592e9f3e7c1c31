"""One change for many models: chosen on the list, previewed, applied row by row."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from gpus_app.models import Host
from models_app.models import Change, HeaderFacts, Override, Row
from models_app.services.bulk import apply_change, preview_change
from models_app.views import model_edit
from quartermaster_site.access.audit import Actor
from quartermaster_site.access.models import AuditEntry
from quartermaster_site.jobs.models import Job
from quartermaster_site.rate import RateLimit
from tests.core.test_gguf_hostile import slowness
from tests.seer import seer
from tests.views.conftest import run

URL = "/models/bulk/"


@pytest.fixture
def rows(scanned: Host) -> list[Row]:
    return list(Row.objects.filter(host=scanned).exclude(model_class="").select_related("host").order_by("served_id"))


@pytest.fixture
def post(admin: Client, rows: list[Row], django_capture_on_commit_callbacks: Any) -> Callable[..., Any]:
    """`post("apply", ctx="8k")` for all models."""

    def send(intent: str, carried: str = "", **typed: str) -> Any:
        data = {"rows": carried or ",".join(f"{row.pk}:0" for row in rows), "intent": intent}
        for number, (key, text) in enumerate(typed.items(), 1):
            data |= {f"key-{number}": key, f"value-{number}": text}
        return run(django_capture_on_commit_callbacks, lambda: admin.post(URL, data))

    return send


def _text(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html))


def _carried(html: str) -> str:
    found = re.search(r'name="rows" value="([^"]*)"', html)
    assert found
    return found[1]


def test_models_are_chosen_on_the_list(admin: Client, viewer: Client, rows: list[Row]) -> None:
    html = admin.get("/models/").content.decode()
    assert f'name="row" value="{rows[0].pk}"' in html
    assert 'name="row"' not in viewer.get("/models/").content.decode()
    two = admin.get(URL, {"row": [rows[0].pk, rows[1].pk, "x", "99999"]}).content.decode()
    assert "Edit 2 models at once" in _text(two)
    everything = re.search(r'href="(/models/bulk/\?[^"]*all=1)"', html)
    assert everything
    assert f"Edit {len(rows)} models" in _text(admin.get(everything[1].replace("&amp;", "&")).content.decode())
    only = admin.get(URL, {"all": "1", "q": "mixtral"}).content.decode()
    assert "Edit 1 model at once" in _text(only)
    assert "No model chosen" in admin.get(URL).content.decode()


def test_a_preview_shows_the_effect_and_stores_nothing(post: Any) -> None:
    answer = post("preview", ctx="8k", kvK="q8_0", kvV="q8_0")
    text = _text(answer.content.decode())
    assert answer.status_code == 200
    assert re.search(r"qwen3-8b\S* would change 40,960 → 8,192", text)
    assert "has no setting" in text, "an embedding model has no cache types"
    assert "Nothing is stored yet" in text
    assert not Override.objects.exists()


def test_apply_changes_each_model_that_can_take_it(post: Any, rows: list[Row]) -> None:
    jobs = Job.objects.filter(kind="plan_host").count()
    answer = post("apply", threads="3", temp="0,5")
    text = _text(answer.content.decode())
    assert "3 models changed" in text
    assert "1 cannot take it" in text
    stored = {item.match: item.fields for item in Override.objects.all()}
    assert set(map(str, stored.values())) == {str({"threads": 3, "temp": 0.5})}
    assert Change.objects.filter(action="bulk").count() == 3
    assert AuditEntry.objects.filter(action="override.bulk").count() == 3
    assert Job.objects.filter(kind="plan_host").count() == jobs + 1, "one new plan for all"
    again = post("apply", _carried(answer.content.decode()), threads="3", temp="0.5")
    assert "3 stay as they are" in _text(again.content.decode())
    assert Change.objects.filter(action="bulk").count() == 3
    cleared = post("apply", _carried(again.content.decode()), temp="", threads="")
    assert "3 models changed" in _text(cleared.content.decode())
    assert {str(item.fields) for item in Override.objects.all()} == {"{}"}


def test_what_others_saved_meanwhile_is_a_conflict_of_its_row(post: Any, rows: list[Row], scanned: Host) -> None:
    seen = _carried(post("preview", threads="3").content.decode())
    chat = next(row for row in rows if row.served_id.startswith("qwen3-8b"))
    actor = Actor()
    theirs = Override.objects.create(host=scanned, match=chat.path, fields={"threads": 5}, version=1)
    Change.objects.create(
        host=scanned, match=chat.path, action="save", changes={"threads": [None, 5]}, after={"threads": 5}, version=1
    )
    text = _text(post("apply", seen, threads="3").content.decode())
    assert "changed by others" in text
    assert "saved this meanwhile" in text
    theirs.refresh_from_db()
    assert theirs.fields == {"threads": 5}
    assert Override.objects.filter(fields={"threads": 3}).count() == 3
    assert actor.user is None


def test_owned_and_bad_values_are_said_per_row(post: Any, rows: list[Row], scanned: Host) -> None:
    chat = next(row for row in rows if row.served_id.startswith("qwen3-8b"))
    Override.objects.create(host=scanned, match=chat.path, fields={"customArgs": "-t 9"}, version=1)
    text = _text(post("preview", threads="3").content.decode())
    assert "Its custom launch arguments own Threads (-t 9)" in text
    for rubbish in ("'", "1e309", "NaN", "1" + "0" * 30, "-5", "١٢", "1,2,3"):
        answer = post("apply", threads=rubbish)
        assert answer.status_code == 200
        assert f"{len(rows)} cannot take it" in _text(answer.content.decode()), rubbish
    assert Override.objects.count() == 1


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ({}, "at least one setting"),
        ({"nope": "1"}, "no such setting"),
        ({"customArgs": "-t 3"}, "no such setting"),
        ({"ctx": "x" * 1001}, "1,000 characters"),
        ({"*": "", "ctx": "1"}, "stands alone"),
    ],
)
def test_forms_that_mean_nothing_are_refused(post: Any, typed: dict[str, str], words: str) -> None:
    answer = post("apply", **typed)
    assert answer.status_code == 422
    assert words in answer.content.decode()


def test_everything_can_be_made_automatic(post: Any, rows: list[Row]) -> None:
    carried = _carried(post("apply", threads="3", temp="0.5").content.decode())
    assert "3 models changed" in _text(post("apply", carried, **{"*": ""}).content.decode())
    assert {str(item.fields) for item in Override.objects.all()} == {"{}"}


@pytest.fixture
def five_hundred(rows: list[Row]) -> list[Row]:
    """A chat model five hundred times."""
    chat = next(row for row in rows if row.served_id.startswith("qwen3-8b"))
    facts = HeaderFacts.objects.get(host=chat.host, path=chat.path)
    copies, heads = [], []
    for number in range(500):
        path = f"/srv/models/model-{number}.gguf"
        found = {**chat.found, "full_path": path, "id": f"model-{number}"}
        copy = Row.objects.get(pk=chat.pk)
        copy.pk, copy.path, copy.served_id, copy.found = None, path, f"model-{number}", found
        copies.append(copy)
        head = HeaderFacts.objects.get(pk=facts.pk)
        head.pk, head.path = None, path
        heads.append(head)
    Row.objects.bulk_create(copies)
    HeaderFacts.objects.bulk_create(heads)
    return list(Row.objects.filter(served_id__startswith="model-").select_related("host"))


def test_five_hundred_models_in_five_seconds(five_hundred: list[Row], make_user: Any) -> None:
    user = make_user("editor")
    started = time.process_time()
    with CaptureQueriesContext(connection) as queries:
        seen = preview_change(five_hundred, {"ctx": "8192", "threads": "3"}, user=seer(), seconds=60)
    previewed = time.process_time()
    versions = {item.row.pk: item.version for item in seen}
    done = apply_change(five_hundred, {"ctx": "8192", "threads": "3"}, versions=versions, actor=Actor(user=user))
    applied = time.process_time()
    assert {item.word for item in [*seen, *done]} == {"saved"}
    assert len(queries) < 30
    print(f"preview {previewed - started:.2f} s, apply {applied - previewed:.2f} s of CPU, {len(queries)} queries")
    assert previewed - started < 5
    assert applied - previewed < 5


@pytest.mark.once  # a figure: coverage, which the other interpreter measures, costs time of its own
def test_a_preview_among_five_hundred_overrides_and_four_hosts(
    admin: Client, five_hundred: list[Row], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_edit, "PREVIEWS", RateLimit(per_second=5, burst=1000))
    for number in range(3):
        Host.objects.create(slug=f"more-{number}", name=f"more {number}")
    Override.objects.bulk_create(
        Override(
            host=row.host,
            match=row.path if number % 10 else f"*{row.served_id}-*",
            fields={"threads": 3, "ctx": 8192},
            version=1,
        )
        for number, row in enumerate(five_hundred)
    )
    url = f"/models/{five_hundred[77].pk}/edit/preview/"
    cpu_seconds = []
    for number in range(25):
        started = time.process_time()
        data = {"version": "1", "ctx": str(4096 * (1 + number % 8)), "threads": "3"}
        assert admin.post(url, data, headers={"HX-Request": "true", "HX-Target": "plan"}).status_code == 200
        cpu_seconds.append(time.process_time() - started)
    # The better rounds: a neighbour on the same core makes all others slower than the product is.
    fifth = sorted(cpu_seconds)[4]
    print(f"{1000 * fifth:.0f} ms of CPU")
    assert fifth < 0.08 * slowness()


def test_a_preview_that_takes_long_says_what_it_left_out(rows: list[Row]) -> None:
    words = {item.word for item in preview_change(rows, {"ttlSec": "5"}, user=seer(), seconds=0)}
    assert words == {"not planned"}
