"""Variants as entries of their own, the history of settings, and keeping a what-if."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from django.contrib.auth import get_user_model
from django.test import Client

from gpus_app.models import Host
from models_app.core.launch.tokens import split_command
from models_app.models import Change, Override, Revision, Row, StoredPlan, Variant
from models_app.services.fleet_variants import add_fleet_variant
from models_app.views import model_detail
from quartermaster_site.access.audit import Actor
from quartermaster_site.access.models import Account, AuditEntry
from quartermaster_site.rate import RateLimit
from tests.views.conftest import run

HTMX = {"HX-Request": "true", "HX-Target": "plan"}


@pytest.fixture(autouse=True)
def _fresh_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_detail, "PREVIEWS", RateLimit(per_second=5, burst=1000))


@pytest.fixture
def editor(as_role: Callable[[str], Client]) -> Client:
    return as_role("editor")


@pytest.fixture
def row(scanned: Host, row_named: Callable[[str], Row]) -> Row:
    return row_named("qwen3-8b")


@pytest.fixture
def post(editor: Client, row: Row, django_capture_on_commit_callbacks: Any) -> Callable[..., Any]:
    """`post("variants/", name="fast")` below the model's address, as an editor, with what that queues."""

    def send(path: str, client: Client = editor, **data: str) -> Any:
        return run(django_capture_on_commit_callbacks, lambda: client.post(f"/models/{row.pk}/{path}", data))

    return send


def _text(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html))


def actor_named(name: str) -> Actor:
    return Actor(user=get_user_model().objects.get(username=name), name=name)


def _entries() -> dict[str, Any]:
    revision = Revision.objects.order_by("-number").first()
    assert revision is not None
    models: dict[str, Any] = yaml.safe_load(revision.text)["models"]
    return models


def test_a_variant_is_an_entry_that_inherits(editor: Client, row: Row, post: Any) -> None:
    post("edit/", version="0", threads="3", kvK="q8_0")
    assert post("variants/", name="Short.Ctx").status_code == 302
    variant = Variant.objects.get()
    assert post(f"variants/{variant.pk}/", version="1", ctx="8k", temp="0", threads="3").status_code == 302
    variant.refresh_from_db()
    assert variant.fields == {"ctx": 8192, "temp": 0.0}, "what it would inherit anyway is not stored"
    words = split_command(_entries()[f"{row.served_id}-short-ctx"]["cmd"])
    assert words[words.index("-c") + 1] == "8192"
    assert words[words.index("-t") + 1] == "3"
    assert words[words.index("-ctk") + 1] == "q8_0"
    assert words[words.index("--temp") + 1] == "0"
    assert StoredPlan.objects.filter(row=row, profile="variant").count() == 1
    page = _text(editor.get(f"/models/{row.pk}/variants/").content.decode())
    assert "variant Short.Ctx 2 settings" in page
    assert "8,192" in page
    form = editor.get(f"/models/{row.pk}/variants/{variant.pk}/").content.decode()
    assert "inherited: 3" in form
    assert 'id="o-backend"' not in form


def test_a_variant_can_switch_off_what_the_model_says(row: Row, post: Any, editor: Client) -> None:
    Account.objects.filter(user__username="editor").update(custom_args=True)
    Override.objects.create(
        host=row.host, match=row.path, fields={"customArgs": "-t 12", "tensorSplit": "1"}, version=1
    )
    post("variants/", name="plain")
    variant = Variant.objects.get()
    form = editor.get(f"/models/{row.pk}/variants/{variant.pk}/").content.decode()
    assert "Inherit (-t 12)" in form
    assert post(f"variants/{variant.pk}/", version="1", **{"customArgs-mode": "none"}).status_code == 302
    variant.refresh_from_db()
    assert variant.fields == {"customArgs": "none"}
    words = split_command(_entries()[f"{row.served_id}-plain"]["cmd"])
    assert words[words.index("-t") + 1] == "7"
    own = {"customArgs-mode": "set", "customArgs": "-t 2\r\n"}
    post(f"variants/{variant.pk}/", version="2", **own)
    variant.refresh_from_db()
    assert variant.fields == {"customArgs": "-t 2\n"}


def test_a_doubtful_text_of_a_variant_is_asked_about(row: Row, post: Any) -> None:
    Account.objects.filter(user__username="editor").update(custom_args=True)
    post("variants/", name="odd")
    variant = Variant.objects.get()
    form = {"version": "1", "customArgs-mode": "set", "customArgs": "--host 0.0.0.0 -t 3"}
    asked = post(f"variants/{variant.pk}/", **form)
    assert asked.status_code == 422
    assert "Not saved yet" in asked.content.decode()
    assert "--host" in _text(asked.content.decode())
    assert Variant.objects.get().fields == {}
    assert post(f"variants/{variant.pk}/", confirm="--frob", **form).status_code == 422, "another one was confirmed"
    assert post(f"variants/{variant.pk}/", confirm="--host", **form).status_code == 302
    assert Variant.objects.get().fields == {"customArgs": "--host 0.0.0.0 -t 3"}
    entry = AuditEntry.objects.get(action="arguments.confirm")
    assert (entry.object_label, entry.reason) == (f"{row.served_id}-odd", "stored after a question: --host")
    assert post(f"variants/{variant.pk}/", **{**form, "version": "2", "ctx": "8k"}).status_code == 302


def test_previews_of_a_variant_show_its_own_plan(editor: Client, row: Row, post: Any) -> None:
    post("variants/", name="fast")
    variant = Variant.objects.get()
    address = f"/models/{row.pk}/variants/{variant.pk}/preview/"
    html = editor.post(address, {"ctx": "8k"}, headers=HTMX).content.decode()
    assert "context 8,192" in html
    assert f"{row.served_id}-fast" in html
    assert editor.post(address, {"ctx": "x"}, headers=HTMX).status_code == 422
    variant.refresh_from_db()
    assert variant.fields == {}


@pytest.mark.parametrize("name", ["", "a b", "x" * 41, "FAST", "f.a.s.t/", "vision", "…", "fa.st/../"])
def test_names_that_cannot_be_served_are_refused(post: Any, name: str) -> None:
    post("variants/", name="fast")
    answer = post("variants/", name=name)
    assert answer.status_code == 422
    assert "q-err" in answer.content.decode()
    assert Variant.objects.count() == 1


def test_rename_duplicate_and_delete(editor: Client, row: Row, post: Any) -> None:
    post("variants/", name="fast")
    variant = Variant.objects.get()
    post(f"variants/{variant.pk}/", version="1", ctx="8k")
    post("variants/", name="faster", like=str(variant.pk))
    assert Variant.objects.get(name="faster").fields == {"ctx": 8192}
    post(f"variants/{variant.pk}/rename/", name="quick")
    assert {f"{row.served_id}-quick", f"{row.served_id}-faster"} < set(_entries())
    assert post(f"variants/{variant.pk}/rename/", name="faster").status_code == 422
    assert "clients that use this id" in editor.get(f"/models/{row.pk}/variants/{variant.pk}/delete/").content.decode()
    assert post(f"variants/{variant.pk}/delete/", version="2").status_code == 409, "renamed since the question"
    assert post(f"variants/{variant.pk}/delete/", version="3").status_code == 302
    assert f"{row.served_id}-quick" not in _entries()
    deleted = Change.objects.get(action="delete")
    assert deleted.changes == {"ctx": [8192, None]}
    earlier = Change.objects.filter(variant="fast", action="save").get()
    post(f"history/{earlier.pk}/restore/", version="0")
    assert Variant.objects.get(name="fast").fields == {"ctx": 8192}


def test_a_shared_variant_is_named_and_hidden_for_one_model(
    editor: Client, row: Row, post: Any, django_capture_on_commit_callbacks: Any
) -> None:
    actor = actor_named("editor")
    run(
        django_capture_on_commit_callbacks,
        lambda: add_fleet_variant(host=row.host, name="fast", values={"ctx": 8192}, actor=actor),
    )
    page = _text(editor.get(f"/models/{row.pk}/variants/").content.decode())
    assert "shared variant fast" in page
    assert "Edit for all" in page
    assert post("variants/", hide="nothing").status_code == 404
    assert post("variants/", hide="fast").status_code == 302
    assert Variant.objects.get().fields == {"ctx": 8192, "unlisted": True}
    assert _entries()[f"{row.served_id}-fast"]["unlisted"] is True
    assert "shared variant fast" not in _text(editor.get(f"/models/{row.pk}/variants/").content.decode())
    others = [entry for name, entry in _entries().items() if name.endswith("-fast") and not name.startswith("qwen3-8b")]
    assert others
    assert not any(entry.get("unlisted") for entry in others)


def test_two_people_on_one_variant(as_role: Any, row: Row, post: Any) -> None:
    post("variants/", name="fast")
    variant = Variant.objects.get()
    post(f"variants/{variant.pk}/", version="1", ctx="8k")
    answer = post(f"variants/{variant.pk}/", client=as_role("admin"), version="1", ctx="16k")
    assert answer.status_code == 409
    assert re.search(r"Context\s+16384\s+8192\s+automatic", _text(answer.content.decode()))


def test_a_rename_hides_nobodys_changes(editor: Client, as_role: Any, row: Row, post: Any) -> None:
    post("variants/", name="fast")
    variant = Variant.objects.get()
    post(f"variants/{variant.pk}/", version="1", ctx="8k", temp="0.5")
    post(f"variants/{variant.pk}/rename/", name="faster")
    post("variants/", name="fast")  # another one, which takes the name that is free again
    answer = post(f"variants/{variant.pk}/", client=as_role("admin"), version="1", topK="5")
    assert answer.status_code == 409, "the form was opened before the save under the former name"
    assert re.search(r"Temperature\s+automatic\s+0.5", _text(answer.content.decode()))
    assert Variant.objects.get(pk=variant.pk).fields == {"ctx": 8192, "temp": 0.5}
    entries = editor.get(f"/models/{row.pk}/history/").context["entries"]
    named = {entry.name: entry for entry in reversed(entries)}
    assert [entry.is_latest for entry in entries] == [True, True, False, False]
    assert named["fast"].is_latest
    post(f"variants/{variant.pk}/", version="3", ctx="16k")
    saved = Change.objects.get(action="save", version=2)
    assert post(f"history/{saved.pk}/restore/", version="4").status_code == 302
    assert Variant.objects.get(pk=variant.pk).fields == {"ctx": 8192, "temp": 0.5}
    assert Variant.objects.get(name="fast").fields == {}


def test_history_shows_fields_and_restores(editor: Client, as_role: Any, row: Row, post: Any) -> None:
    post("edit/", version="0", ctx="8k", threads="3")
    post("edit/", version="1", ctx="16k", threads="3")
    html = editor.get(f"/models/{row.pk}/history/").content.decode()
    text = _text(html)
    assert re.search(r"editor changed settings .*Context 8192 16384", text)
    assert re.search(r"Threads automatic 3", text)
    one = _text(editor.get(f"/models/{row.pk}/history/?field=threads").content.decode())
    assert "1 change" in one
    assert "16384" not in one
    first = Change.objects.order_by("id").first()
    assert first is not None
    assert post(f"history/{first.pk}/restore/", version="1").status_code == 409, "somebody saved since"
    assert post(f"history/{first.pk}/restore/", version="2").status_code == 302
    assert Override.objects.get().fields == {"ctx": 8192, "threads": 3}
    viewer = as_role("viewer")
    assert "Restore this state" not in viewer.get(f"/models/{row.pk}/history/").content.decode()
    assert post(f"history/{first.pk}/restore/", client=viewer, version="3").status_code == 403


def test_secrets_in_the_history_are_masked(as_role: Any, row: Row, host: Host) -> None:
    secret = "--api-key sk-very-long-secret-value"
    Change.objects.create(
        host=host, match=row.path, action="save", changes={"customArgs": [None, secret]}, after={}, actor="ada"
    )
    assert "sk-very-long-secret" not in as_role("viewer").get(f"/models/{row.pk}/history/").content.decode()


def test_a_what_if_becomes_settings(editor: Client, as_role: Any, row: Row, post: Any) -> None:
    page = editor.get(f"/models/{row.pk}/").content.decode()
    assert "Save as settings" in page
    assert "Save as settings" not in as_role("viewer").get(f"/models/{row.pk}/").content.decode()
    assert post("adopt/", version="0", ctx="8k", parallel="2", ngl="10").status_code == 302
    assert Override.objects.get().fields == {"ctx": 8192, "parallel": 2, "cpuOffload": 27}
    placement = StoredPlan.objects.get(row=row, profile="base").placement_text
    assert placement.startswith("10/37"), placement
    stale = post("adopt/", version="0", ctx="16k")
    assert stale.status_code == 409
    wrong = post("adopt/", version="1", ub="x")
    assert wrong.status_code == 422
    assert 'value="x"' in wrong.content.decode()
    assert post("adopt/", version="1", ngl="0").status_code == 403, "only a launch argument can say this"
