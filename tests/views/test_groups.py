"""Groups of a host: their order, who falls where, and two people at once."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from django.test import Client

from gpus_app.models import Host, HostSetting
from models_app.models import Revision
from tests.views.conftest import run

SMALL = {"place-1": "2", "name-1": "rest", "match-1": "*", "place-2": "1", "name-2": "small", "match-2": "*0.6b*, x"}


@pytest.fixture
def post(admin: Client, scanned: Host, django_capture_on_commit_callbacks: Any) -> Callable[..., Any]:
    """`post(version="0", **{"name-1": "small", ...})` as an administrator, with what that queues."""

    def send(client: Client = admin, **data: str) -> Any:
        return run(django_capture_on_commit_callbacks, lambda: client.post("/hosts/local/settings/groups/", data))

    return send


def _text(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html))


def test_groups_are_ordered_and_written(admin: Client, post: Any) -> None:
    assert post(version="0", **SMALL).status_code == 302
    stored = HostSetting.objects.get(section="groups").values["groups"]
    assert [group["name"] for group in stored] == ["small", "rest"]
    revision = Revision.objects.order_by("-number").first()
    assert revision is not None
    groups = yaml.safe_load(revision.text)["groups"]
    assert [name.startswith("qwen3-0.6b") for name in groups["small"]["members"]] == [True]
    assert len(groups["rest"]["members"]) == 3
    page = _text(admin.get("/hosts/local/settings/groups/").content.decode())
    assert "small 1 entry" in page
    assert "rest 3 entries" in page
    assert post(version="1", **SMALL).status_code == 302
    assert HostSetting.objects.get(section="groups").version == 1, "the same again changes nothing"
    assert post(version="1").status_code == 302
    assert HostSetting.objects.get(section="groups").values == {}


def test_who_would_fall_where_stores_nothing(post: Any) -> None:
    answer = post(version="0", intent="impact", **{"name-1": "chat", "match-1": "*qwen3*"})
    text = _text(answer.content.decode())
    assert "chat 2 entries" in text
    assert "default 2 entries, made by the export" in text
    assert not HostSetting.objects.filter(section="groups").exists()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ({"match-1": "*"}, "Give the group a name"),
        ({"name-1": "a"}, "Give one or more patterns"),
        ({"name-1": "a", "match-1": "*", "name-2": "A", "match-2": "x"}, "There is a group A above"),
        ({"name-1": "a", "match-1": "*", "listen-1": "nowhere"}, "host:port"),
        ({"name-1": "a" * 65, "match-1": "*"}, "at most 64"),
        ({"name-1": "a\x00", "match-1": "*"}, "Give the group a name"),
        ({"place-1": "first", "name-1": "a", "match-1": "*"}, "Give the place as a number"),
        ({"place-1": "1e309", "name-1": "a", "match-1": "*"}, "Give the place as a number"),
    ],
)
def test_what_cannot_be_used_is_named_beside_its_line(post: Any, line: dict[str, str], words: str) -> None:
    answer = post(version="0", **line)
    assert answer.status_code == 422
    assert words in _text(answer.content.decode())
    assert not HostSetting.objects.filter(section="groups").exists()


def test_two_people_see_each_others_groups(post: Any) -> None:
    post(version="0", **{"name-1": "a", "match-1": "*"})
    answer = post(version="0", **{"name-1": "b", "match-1": "x*"})
    assert answer.status_code == 409
    assert re.search(r"Groups b: x\* a: \* -", _text(answer.content.decode()))
    assert 'value="b"' in answer.content.decode()
    assert post(version="1", **{"name-1": "b", "match-1": "x*"}).status_code == 302


def test_editors_read_only(as_role: Any, post: Any) -> None:
    editor = as_role("editor")
    assert post(client=editor, version="0", **SMALL).status_code == 403
    assert "needs the role admin" in editor.get("/hosts/local/settings/groups/").content.decode()
