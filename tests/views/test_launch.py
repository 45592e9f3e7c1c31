"""The Launch tab: the text as typed, who may write it, where each argument comes from, remarks."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from django.test import Client

from gpus_app.models import Backend, Host
from models_app.core.launch.tokens import split_command
from models_app.core.settings import override_from_mapping
from models_app.models import Override, Revision, Row
from models_app.services import host_facts, preview_plan
from models_app.views import model_detail
from quartermaster_site.access.models import Account
from quartermaster_site.rate import RateLimit
from tests.views.conftest import run

HTMX = {"HX-Request": "true", "HX-Target": "launch"}
FORTY_FLAGS = """\
# measured on the long prompts
-c 16384 -ngl 30 -ub 256 -b 1024 -t 6 -tb 8
--parallel 2   -fa on -ctk q8_0 -ctv q8_0
--temp 0.7 --top-k 40 --top-p 0.95 --min-p 0.01 --presence-penalty 0.2
--dry-multiplier 0.8\t--dry-base 1.75 --dry-allowed-length 4
--cache-reuse 256 -cram 4096 -sps 0.3 --prio 2 -lv 1
--ctx-checkpoints 8 -cms 512 --spec-type ngram-mod
--rope-freq-base 1000000 --chat-template-file "/srv/templates/my template.jinja"
--reasoning-format deepseek --reasoning-budget 2048 -sm layer -mg 0
--no-repack --no-op-offload --swa-full --context-shift --cache-idle-slots
--numa distribute --seed 42 --log-timestamps --alias mine
"""


@pytest.fixture(autouse=True)
def _fresh_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_detail, "PREVIEWS", RateLimit(per_second=5, burst=1000))


@pytest.fixture
def row(scanned: Host, row_named: Callable[[str], Row]) -> Row:
    return row_named("qwen3-8b")


@pytest.fixture
def save(admin: Client, row: Row, django_capture_on_commit_callbacks: Any) -> Callable[..., Any]:
    def post(text: str, version: int = 0, client: Client = admin, **more: str) -> Any:
        data = {"version": str(version), "customArgs": text, "apply": "1", **more}
        return run(django_capture_on_commit_callbacks, lambda: client.post(f"/models/{row.pk}/launch/", data))

    return post


def _text(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html))


def test_forty_pasted_flags_run_exactly_as_pasted(admin: Client, row: Row, save: Any) -> None:
    assert save(FORTY_FLAGS.replace("\n", "\r\n")).status_code == 302
    assert Override.objects.get().fields == {"customArgs": FORTY_FLAGS}
    entry = yaml.safe_load(Revision.objects.order_by("-number").first().text)["models"][row.served_id]  # type: ignore[union-attr]
    words = split_command(entry["cmd"])
    pasted = split_command(FORTY_FLAGS)
    assert words[-len(pasted) :] == pasted
    flags = [word for word in words if re.fullmatch(r"--?[a-z][\w-]*", word)]
    assert len(flags) == len(set(flags)), "no flag stands twice"
    html = admin.get(f"/models/{row.pk}/launch/").content.decode()
    assert FORTY_FLAGS.replace('"', "&quot;") in html
    assert "custom, replaces -t 7" in _text(html)
    assert "custom, added" in _text(html)
    assert re.search(r"replaced by -c 16384", _text(html))


@pytest.mark.parametrize(
    "text", ["\n\n-t 3", "-t\t3", "  -t 3  ", "-t 3 # half", "--alias 'it''s \\\\ \"x\"'", "-t 3\n"]
)
def test_texts_keep_their_bytes(admin: Client, row: Row, save: Any, text: str) -> None:
    save(text.replace("\n", "\r\n"), confirm="# half")
    assert Override.objects.get().fields["customArgs"] == text
    version = Override.objects.get().version
    assert save(text.replace("\n", "\r\n"), version=version).status_code == 302
    assert Override.objects.get().version == version


def test_line_ends_of_a_stored_text_survive_an_untouched_form(row: Row, host: Host, save: Any) -> None:
    Override.objects.create(host=host, match=row.path, fields={"customArgs": "-t 3\r\n--prio 1"}, version=1)
    save("-t 3\r\n--prio 1", version=1)
    assert Override.objects.get().version == 1


def test_only_those_with_the_grant_write(as_role: Any, row: Row, save: Any) -> None:
    editor = as_role("editor")
    assert save("-t 3", client=editor).status_code == 403
    assert "need a grant" in editor.get(f"/models/{row.pk}/launch/").content.decode()
    Account.objects.filter(user__username="editor").update(custom_args=True)
    assert save("-t 3", client=editor).status_code == 302
    assert save("-t 4", client=as_role("viewer")).status_code == 403


def test_a_text_that_is_off_is_kept_and_not_applied(admin: Client, row: Row, save: Any) -> None:
    save("-t 3")
    assert save("-t 3", version=1, apply="").status_code == 302
    assert Override.objects.get().fields == {"customArgs": "-t 3", "customArgsOff": True}
    html = admin.get(f"/models/{row.pk}/launch/").content.decode()
    assert "-t 3" in html
    assert 'class="c"' not in html


def test_a_preview_swaps_command_and_findings(admin: Client, row: Row) -> None:
    data = {"customArgs": "-t 12 --port 9 --no-such-flga 1 -c 8192 > log", "apply": "1", "seq": "7"}
    answer = admin.post(f"/models/{row.pk}/launch/preview/", data, headers=HTMX)
    html, text = answer.content.decode(), _text(answer.content.decode())
    assert (answer.status_code, answer["X-Sequence"]) == (200, "7")
    assert html.lstrip().startswith('<div id="launch">')
    assert 'id="findings" hx-swap-oob="true"' in html
    assert "router probes the port it assigned" in text
    assert "custom, unverified argument" in text
    assert "No shell reads this" in text
    assert "-t -c Owns “Threads”, “Context”: these settings are locked" in text, "one remark for all of them"
    assert re.search(r"Context, tokens\s+40,960\s+8,192", text)
    assert not Override.objects.exists()


@pytest.fixture
def probed(host: Host) -> Backend:
    """A registered executable whose help was read."""
    flags = ["-m", "--port", "--threads", "--ctx-size", "--brand-new"]
    return Backend.objects.create(
        host=host, slug="l", kind="llama", path="/opt/llama-server", probe={"kind": "llama", "flags": flags}
    )


def test_a_save_asks_about_flags_that_nobody_knows(admin: Client, row: Row, probed: Backend, save: Any) -> None:
    answer = save("--thraeds 3 --brand-new 1 -fa on")
    html = answer.content.decode()
    assert answer.status_code == 422
    assert not Override.objects.exists()
    assert "Not saved yet" in html
    assert 'name="confirm" value="--thraeds"' in html
    assert "Did you mean --threads" in _text(html)
    assert "older build" in _text(html)
    assert save("--thraeds 3 --other 1", confirm="--thraeds").status_code == 422
    assert save("--thraeds 3 --brand-new 1 -fa on", confirm="--thraeds").status_code == 302
    assert Override.objects.get().fields == {"customArgs": "--thraeds 3 --brand-new 1 -fa on"}


def test_what_belongs_to_the_router_is_asked_about_and_its_port_refused(row: Row, save: Any) -> None:
    assert save("--host 0.0.0.0").status_code == 422
    assert save("--host 0.0.0.0", confirm="--host").status_code == 302
    answer = save("--port 9", version=1)
    assert answer.status_code == 422
    assert "takes the port from the router" in answer.content.decode()
    both = _text(save("--port 9 --thraeds 3", version=1).content.decode())
    assert "takes the port from the router" in both
    assert re.search(r"--thraeds .*help of this build was not read", both), "all that is wrong is said at once"
    assert save("--port ${PORT} -t 3", version=1).status_code == 302
    text = Revision.objects.order_by("-number").first().text  # type: ignore[union-attr]
    assert text.count("--port ${PORT} -t 3") == 1


def test_windows_hosts_split_by_their_own_rules(admin: Client, row: Row, host: Host) -> None:
    Host.objects.filter(pk=host.pk).update(os_family="windows")
    text = r"--chat-template-file C:\templates\new.jinja -c 8192 --numa 'isolate"
    data = {"customArgs": text, "apply": "1"}
    html = admin.post(f"/models/{row.pk}/launch/preview/", data, headers=HTMX).content.decode()
    assert r"C:\templates\new.jinja" in html
    assert re.search(r"Context, tokens\s+40,960\s+8,192", _text(html)), "an apostrophe opens no quotation there"
    assert "cannot be taken apart" not in html
    plan = preview_plan(
        row=row, override=override_from_mapping({"customArgs": text}), facts=host_facts(Host.objects.get())
    )
    assert r"C:\templates\new.jinja" in plan.base.argv
    assert plan.base.argv[-1] == "'isolate"


def test_broken_and_oversized_texts_are_said(admin: Client, row: Row, save: Any) -> None:
    data = {"customArgs": '-t "3', "apply": "1"}
    broken = admin.post(f"/models/{row.pk}/launch/preview/", data, headers=HTMX)
    assert "cannot be taken apart" in broken.content.decode()
    refused = save('--temp "0.5')
    assert refused.status_code == 422, "a file with it would never be valid"
    assert "no config could be written" in refused.content.decode()
    assert save('--temp "0.5', apply="").status_code == 302, "kept for later, not applied"
    assert Override.objects.get().fields == {"customArgs": '--temp "0.5', "customArgsOff": True}
    Override.objects.all().delete()
    remark = admin.post(f"/models/{row.pk}/launch/preview/", {**data, "customArgs": "# later: -t 3"}, headers=HTMX)
    assert "Nothing to remark" in _text(remark.content.decode()), "a text of comments is no broken one"
    assert save("# later: -t 3").status_code == 302
    Override.objects.all().delete()
    answer = save("x" * 20_000)
    assert answer.status_code == 422
    assert "at most 16,384 characters" in answer.content.decode()
    assert not Override.objects.exists()


def test_secrets_are_masked_for_those_who_only_look(as_role: Any, row: Row, save: Any) -> None:
    save("--api-key sk-very-long-secret-value")
    viewer = as_role("viewer")
    for address in ("launch", "edit", "history"):
        if address != "history":
            assert "sk-very-long-secret-value" not in viewer.get(f"/models/{row.pk}/{address}/").content.decode()


def test_older_extra_arguments_can_be_moved(admin: Client, row: Row, host: Host, save: Any) -> None:
    Override.objects.create(host=host, match=row.path, fields={"extraArgs": "-t 3"}, version=1)
    assert "Move to custom arguments" in admin.get(f"/models/{row.pk}/launch/").content.decode()
    save("", version=1, intent="move")
    assert Override.objects.get().fields == {"customArgs": "-t 3"}


def test_two_people_lose_no_text(admin: Client, as_role: Any, row: Row, save: Any) -> None:
    save("-t 3")
    answer = save("-t 5", version=0)
    html = answer.content.decode()
    assert answer.status_code == 409
    assert re.search(r"Custom launch arguments\s+-t 5\s+-t 3\s+automatic", _text(html))
    assert "\n-t 5</textarea>" in html


def test_a_text_can_be_the_whole_command(admin, scanned, row_named):
    row = row_named("qwen3-8b")
    url = f"/models/{row.pk}/launch/"
    answer = admin.post(url, {"version": 0, "customArgs": "-c 4096 --jinja", "apply": "1", "only": "1"})
    assert answer.status_code == 302, answer.content.decode()
    assert Override.objects.get().fields == {"customArgs": "-c 4096 --jinja", "customArgsOnly": True}
    page = admin.get(url).content.decode()
    assert 'name="only" value="1" checked' in page
    admin.post(url, {"version": 1, "customArgs": "-c 4096 --jinja", "apply": "1"})
    assert Override.objects.get().fields == {"customArgs": "-c 4096 --jinja"}


def test_older_arguments_that_are_off_stay_off(row: Row, host: Host, save: Any) -> None:
    fields = {"extraArgs": "-t 3", "customArgsOff": True}
    Override.objects.create(host=host, match=row.path, fields=fields, version=1)
    assert save("", version=1, apply="").status_code == 302
    assert Override.objects.get().fields == fields
