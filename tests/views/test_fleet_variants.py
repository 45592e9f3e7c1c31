"""Variants that all chat models of a host share."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from django.test import Client

from gpus_app.models import Host, HostSetting
from models_app.core.launch.tokens import split_command
from models_app.models import Change, Override, Revision, Row
from quartermaster_site.access.models import Account, AuditEntry
from tests.views.conftest import run


@pytest.fixture
def editor(as_role: Callable[[str], Client]) -> Client:
    return as_role("editor")


@pytest.fixture
def post(editor: Client, scanned: Host, django_capture_on_commit_callbacks: Any) -> Callable[..., Any]:
    """`post("fast/", ctx="8k")` below the address of the host's shared variants."""

    def send(path: str = "", client: Client = editor, **data: str) -> Any:
        address = f"/fleet-variants/{scanned.slug}/{path}"
        return run(django_capture_on_commit_callbacks, lambda: client.post(address, data))

    return send


def _text(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html))


def _entries() -> dict[str, Any]:
    revision = Revision.objects.order_by("-number").first()
    assert revision is not None
    models: dict[str, Any] = yaml.safe_load(revision.text)["models"]
    return models


def test_every_chat_model_gets_it_and_its_own_wins(editor: Client, post: Any, row_named: Callable[[str], Row]) -> None:
    row = row_named("qwen3-8b")
    own = Override.objects.create(host=row.host, match=row.path, version=1)
    own.variants.create(name="FAST", fields={"ctx": 4096}, version=1)
    assert post(name="fast").status_code == 302
    assert post("fast/", version="1", ctx="8k", parallel="2").status_code == 302
    entries = {name: entry for name, entry in _entries().items() if name.endswith("-fast")}
    assert len(entries) == 3, "the embedding model gets none"
    windows = {name: split_command(entry["cmd"]) for name, entry in entries.items()}
    for name, words in windows.items():
        assert words[words.index("-c") + 1] == ("4096" if name.startswith("qwen3-8b") else "16384")
    page = _text(editor.get(f"/fleet-variants/{row.host.slug}/").content.decode())
    assert re.search(r"fast 2 2 1 Edit", page)
    assert post("fast/delete/", version="1").status_code == 409, "somebody changed it since the question"
    assert post("fast/delete/", version="2").status_code == 302
    assert [name for name in _entries() if name.endswith("-fast")] == [f"{row.served_id}-fast"]


def test_the_impact_is_planned_and_stores_nothing(as_role: Any, post: Any, scanned: Host) -> None:
    post(name="fast")
    before = HostSetting.objects.get(section="variants").values
    answer = post("fast/", client=as_role("viewer"), version="1", ctx="8k", intent="impact")
    text = _text(answer.content.decode())
    assert answer.status_code == 200
    assert "3 entries would change" in text
    assert "All fit" in text or "keeps parts in RAM" in text
    assert HostSetting.objects.get(section="variants").values == before
    assert post("fast/", client=as_role("operator"), version="1", ctx="8k").status_code == 403


def test_typing_shows_the_impact_alone(as_role: Any, post: Any) -> None:
    post(name="fast")
    htmx = {"HX-Request": "true", "HX-Target": "impact"}
    viewer = as_role("viewer")
    answer = viewer.post("/fleet-variants/local/fast/", {"ctx": "8k", "seq": "2"}, headers=htmx)
    text = _text(answer.content.decode())
    assert answer["X-Sequence"] == "2"
    assert "3 entries would change" in text
    assert "1 setting not saved" in text
    assert viewer.post("/fleet-variants/local/fast/", {"ctx": "x"}, headers=htmx).status_code == 422


def test_bad_values_and_names_are_named(post: Any) -> None:
    post(name="fast")
    answer = post("fast/", version="1", ub="x")
    assert answer.status_code == 422
    assert "You typed “x”" in answer.content.decode()
    for name in ("", "a b", "FAST", ".."):
        assert post(name=name).status_code == 422
    assert post("other/", version="1").status_code == 404


def test_two_people_and_untouched_forms(as_role: Any, post: Any) -> None:
    post(name="fast")
    post("fast/", version="1", ctx="8k")
    entries = AuditEntry.objects.count()
    assert post("fast/", version="1", ctx="8192").status_code == 302
    assert AuditEntry.objects.count() == entries
    answer = post("fast/", client=as_role("admin"), version="1", ctx="16k")
    assert answer.status_code == 409
    assert re.search(r"Context\s+16384\s+8192\s+automatic", _text(answer.content.decode()))
    assert post("fast/", client=as_role("operator"), version="2", ctx="4k").status_code == 403


def test_another_shared_variant_is_no_conflict(as_role: Any, post: Any, scanned: Host) -> None:
    post(name="fast")
    post(name="long")
    post("fast/", version="2", ctx="8k")
    assert post("long/", client=as_role("admin"), version="2", parallel="2").status_code == 302
    stored = HostSetting.objects.get(section="variants").values["defaultVariants"]
    assert stored == [{"name": "fast", "ctx": 8192}, {"name": "long", "parallel": 2}]


def test_history_restores_a_state_and_a_deleted_one(editor: Client, as_role: Any, post: Any, scanned: Host) -> None:
    post(name="fast")
    post("fast/", version="1", ctx="8k")
    post("fast/", version="2", ctx="16k")
    post(name="long")
    text = _text(editor.get("/hosts/local/history/?variant=FAST").content.decode())
    assert re.search(r"editor changed the shared variant fast .*?Context 8192 16384 .*Context automatic 8192", text)
    assert "added the shared variant long" not in text
    first = Change.objects.get(action="save", version=2)

    def restore(version: str, client: Client = editor) -> Any:
        return client.post(f"/hosts/local/history/{first.pk}/restore/", {"version": version})

    assert restore("2").status_code == 409, "somebody saved since"
    assert restore("4").status_code == 302
    section = HostSetting.objects.get(section="variants")
    assert section.values["defaultVariants"][0] == {"name": "fast", "ctx": 8192}
    post("fast/delete/", version="5")
    assert restore("6").status_code == 302
    names = [item["name"] for item in HostSetting.objects.get(section="variants").values["defaultVariants"]]
    assert names == ["long", "fast"]
    assert restore("7", as_role("operator")).status_code == 403


def test_a_doubtful_text_is_asked_about(editor: Client, post: Any) -> None:
    Account.objects.filter(user__username="editor").update(custom_args=True)
    post(name="odd")
    form = {"version": "1", "customArgs-mode": "set", "customArgs": "--host 0.0.0.0"}
    asked = post("odd/", **form)
    assert asked.status_code == 422
    assert "Not saved yet" in asked.content.decode()
    assert post("odd/", confirm="--host", **form).status_code == 302
    [stored] = HostSetting.objects.get(section="variants").values["defaultVariants"]
    assert stored == {"name": "odd", "customArgs": "--host 0.0.0.0"}
    assert AuditEntry.objects.filter(action="arguments.confirm").count() == 1


def test_an_empty_field_says_where_it_comes_from(editor: Client, post: Any, scanned: Host) -> None:
    post(name="fast")
    html = editor.get(f"/fleet-variants/{scanned.slug}/fast/").content.decode()
    origins = {key: _text(text).strip() for key, text in re.findall(r'id="o-(\w+)"[^>]*>(.*?)</', html, re.DOTALL)}
    assert {key: origins[key] for key in ("ctx", "vramTargetGB", "temp", "dry")} == {
        "ctx": "planner",  # never inherited
        "vramTargetGB": "host setting",
        "temp": "each model",
        "dry": "each model",
    }
    assert "nothing set" in html
    assert "all automatic" not in html
