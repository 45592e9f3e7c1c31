"""The power user's way: a command line of forty flags is pasted, each flag says where it comes from, it is saved, and
the entry of every router runs exactly that.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.test import Client

from gpus_app.models import Backend, Host
from models_app.core.export.presets import reading
from models_app.core.export.presets.options import option_of_flag
from models_app.core.export.router.command import spawned_argv
from models_app.core.launch.flag_table import read_words
from models_app.core.launch.help import parse_help
from models_app.core.launch.llama_flags import LLAMA
from models_app.core.launch.tokens import split_command
from models_app.models import Override, Revision, Row
from models_app.services import preview_plan
from tests.views.conftest import run
from tests.views.test_launch import FORTY_FLAGS, HTMX

HELP = (Path(__file__).parents[1] / "data" / "llama-server-help.txt").read_text(encoding="utf-8")
PASTED = f"/opt/llama.cpp/llama-server -m /models/other.gguf --port 8080 \\\n{FORTY_FLAGS}"


@pytest.fixture
def row(scanned: Host, row_named: Callable[[str], Row]) -> Row:
    """A chat model on a llama-server whose help was read."""
    probe = {"kind": "llama", "flags": list(parse_help(HELP).spellings)}
    Backend.objects.create(host=scanned, slug="own", kind="llama", path="/opt/own/llama-server", probe=probe)
    return row_named("qwen3-8b")


def text_of(answer: Any) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", answer.content.decode()))


def lines(html: str) -> list[tuple[str, str, str]]:
    """(class, where from, argument with its values) of each line of the final command."""
    found = re.findall(r"<li(?: class=\"(\w)\")?><em>(.*?)</em>(.*?)</li>", html, re.DOTALL)
    shown = [(css, note, re.sub(r"<span[^>]*>.*?</span>|<[^>]+>", "", text)) for css, note, text in found]
    return [(css, unescape(note), unescape(text)) for css, note, text in shown]


def arguments(words: list[str]) -> list[str]:
    """Each flag with its values, as one text."""
    joined: list[str] = []
    for word in read_words(LLAMA, words):
        if word.is_value or (word.flag is None and joined):
            joined[-1] += f" {word.text}"
        else:
            joined.append(word.text)
    return joined


def knob_of(argument: str) -> str:
    row = LLAMA.lookup(argument.split(" ")[0])
    return row.knob if row else ""


def test_what_cannot_stay_in_a_pasted_command_is_said(admin: Client, row: Row) -> None:
    form = {"version": "0", "customArgs": PASTED, "apply": "1"}
    asked = admin.post(f"/models/{row.pk}/launch/", form)
    assert asked.status_code == 422
    assert "leave the program out" in text_of(asked)
    assert "the entry would serve another file" in text_of(asked)
    refused = admin.post(f"/models/{row.pk}/launch/", {**form, "confirm": "-m /opt/llama.cpp/llama-server"})
    assert refused.status_code == 422
    assert "--port takes the port from the router" in text_of(refused)
    assert not Override.objects.exists()


@pytest.mark.parametrize("dialect", ["quartermaster", "llama-swap", "llama-server"])
def test_forty_flags_are_explained_saved_and_run_as_pasted(
    admin: Client, row: Row, scanned: Host, dialect: str, django_capture_on_commit_callbacks: Any
) -> None:
    Host.objects.filter(pk=scanned.pk).update(publish_dialect=dialect)
    generated = arguments(list(preview_plan(row=row).base.argv))
    form = {"version": "0", "customArgs": FORTY_FLAGS.replace("\n", "\r\n"), "apply": "1"}
    shown = lines(admin.post(f"/models/{row.pk}/launch/preview/", form, headers=HTMX).content.decode())
    pasted = arguments(split_command(FORTY_FLAGS))
    assert len(pasted) > 40
    custom = [line for line in shown if line[0] == "c"]
    assert [text.replace('"', "") for _, _, text in custom] == pasted
    assert all(note == "custom, added" or note.startswith("custom, replaces -") for _, note, _ in custom)
    replaced = [text for css, _, text in shown if css == "x"]
    assert all(note.startswith("replaced by -") for css, note, _ in shown if css == "x")
    kept = [text for css, _, text in shown if not css]
    owned = {knob_of(text) for text in pasted} - {""}
    assert sorted(replaced) == sorted(text for text in generated if knob_of(text) in owned), "as they were before"
    assert len(replaced) == 15
    assert not {knob_of(text) for text in kept} & owned
    assert not [text for css, note, text in shown if css != "x" and not note], "each says where it comes from"

    answer = run(django_capture_on_commit_callbacks, lambda: admin.post(f"/models/{row.pk}/launch/", form))
    assert answer.status_code == 302
    revision = Revision.objects.order_by("-number").first()
    assert revision is not None
    expected = [word for text in kept for word in split_command(text)] + split_command(FORTY_FLAGS)
    if dialect == "llama-server":
        check_section(reading.read(revision.text).models[row.served_id], expected[1:])
        return
    command = yaml.safe_load(revision.text)["models"][row.served_id]["cmd"]
    spawned = spawned_argv("folded", command.splitlines(), 5800)
    assert spawned == [word.replace("${PORT}", "5800") for word in expected]


def check_section(given: Any, words: list[str]) -> None:
    """The options of a section are those of the command; the router owns host and port."""
    passed = reading.passed(given)
    for text in arguments(words):
        flag, *values = text.split(" ", 1)
        option = option_of_flag(flag)
        assert option is not None
        if option.name not in ("host", "port", "alias"):
            assert passed[option.name] == (values[0] if values else "false" if flag in option.negated else "true"), text
