"""Rules of a host: their order, what they reach, two people at once, and the way back."""

from __future__ import annotations

import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from django.test import Client

from gpus_app.models import Backend, Host
from models_app.core.launch.tokens import split_command
from models_app.models import Change, Override, Revision, Row
from models_app.pages.causes_text import ModelCauses
from quartermaster_site.access.models import Account, AuditEntry
from tests.views.conftest import run


@pytest.fixture
def editor(as_role: Callable[[str], Client]) -> Client:
    return as_role("editor")


@pytest.fixture
def post(editor: Client, scanned: Host, django_capture_on_commit_callbacks: Any) -> Callable[..., Any]:
    """`post("rules/", match="*qwen3*")` below the host's address, as an editor, with what that queues."""

    def send(path: str, client: Client = editor, **data: str) -> Any:
        address = f"/hosts/{scanned.slug}/{path}"
        return run(django_capture_on_commit_callbacks, lambda: client.post(address, data))

    return send


@pytest.fixture
def rule(post: Any) -> Callable[..., Override]:
    """`rule("*qwen3*", ctx="8k")` is a stored rule."""

    def make(match: str, quant: str = "", **fields: str) -> Override:
        assert post("rules/", match=match, quant=quant).status_code == 302
        made = Override.objects.get(match=match, quant=quant)
        assert post(f"rules/{made.pk}/", version="1", match=match, quant=quant, **fields).status_code == 302
        made.refresh_from_db()
        return made

    return make


def _text(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html))


def _page(client: Client, path: str = "rules/") -> str:
    return _text(client.get(f"/hosts/local/{path}").content.decode())


def _command(served_id: str) -> list[str]:
    revision = Revision.objects.order_by("-number").first()
    assert revision is not None
    models: dict[str, Any] = yaml.safe_load(revision.text)["models"]
    return split_command(models[served_id]["cmd"])


def test_a_rule_is_what_its_models_run_with(editor: Client, rule: Any, row_named: Any, post: Any) -> None:
    made = rule("*QWEN3*", ctx="8k", kvK="q8_0", kvV="q8_0")
    assert made.fields == {"ctx": 8192, "kvK": "q8_0", "kvV": "q8_0"}
    for name in ("qwen3-8b", "qwen3-0.6b"):
        words = _command(row_named(name).served_id)
        assert words[words.index("-c") + 1] == "8192"
    assert "8192" not in _command(row_named("mixtral").served_id)
    page = _page(editor)
    assert re.search(r"1\. \*QWEN3\* .*Context 8192 .*2 models .*qwen3-0\.6b.*qwen3-8b", page)
    audit = AuditEntry.objects.filter(action="rule.save").get()
    assert audit.changes["ctx"] == [None, 8192]


def test_an_untouched_form_stores_nothing(rule: Any, post: Any) -> None:
    made = rule("*qwen3*", ctx="8k")
    changes, entries = Change.objects.count(), AuditEntry.objects.count()
    assert post(f"rules/{made.pk}/", version="2", match="*qwen3*", ctx="8192").status_code == 302
    assert (Change.objects.count(), AuditEntry.objects.count()) == (changes, entries)
    made.refresh_from_db()
    assert made.version == 2


def test_setting_and_clearing_a_field_leaves_the_same_config(rule: Any, post: Any, row_named: Any) -> None:
    made = rule("*qwen3*")
    before = _command(row_named("qwen3-8b").served_id)
    post(f"rules/{made.pk}/", version=str(made.version), match="*qwen3*", ctx="8k")
    assert _command(row_named("qwen3-8b").served_id) != before
    post(f"rules/{made.pk}/", version="2", match="*qwen3*", ctx="")
    assert _command(row_named("qwen3-8b").served_id) == before


def test_the_page_says_what_wins_and_what_cannot(editor: Client, rule: Any, row_named: Any) -> None:
    row = row_named("qwen3-8b")
    Override.objects.create(host=row.host, match=row.path, fields={"ctx": 4096}, version=1)
    rule("*qwen3*", ctx="8k")
    rule("*qwen3-8b*", ctx="16k")
    rule("*qwen3-0*", quant="Q8_0", ctx="16k")
    rule("*gemma*", ctx="4k")
    rule("*", threads="3")
    page = _page(editor)
    assert re.search(r"1\. \*qwen3\* .*?1 of 2 models The others follow settings of their own \(1\)\.", page)
    assert re.search(
        r"2\. \*qwen3-8b\* .*?can never win Rule 1 comes first and matches all that this one could\.", page
    )
    assert re.search(r"3\. \*qwen3-0\* Q8_0 .*?can never win", page)
    assert re.search(r"4\. \*gemma\* .*?matches no model", page)
    assert re.search(r"5\. \* .*?2 of 4 models The others follow rule 1 \(1\) and settings of their own \(1\)\.", page)
    assert "1 model, before all rules" in page


def test_a_rule_moves_up_and_takes_its_models(editor: Client, rule: Any, post: Any, row_named: Any) -> None:
    first, second = rule("*qwen3*", ctx="8k"), rule("*qwen3-8b*", ctx="16k")
    assert post(f"rules/{second.pk}/move/", beside=str(first.pk)).status_code == 302
    words = _command(row_named("qwen3-8b").served_id)
    assert words[words.index("-c") + 1] == "16384"
    assert Change.objects.filter(action="move").get().changes == {"position": [2, 1]}
    assert re.search(r"1\. \*qwen3-8b\* .*2\. \*qwen3\* ", _page(editor))
    html = editor.get(f"/models/{row_named('qwen3-8b').pk}/").content.decode()
    assert f'<a href="/hosts/local/rules/{second.pk}/">rule 1</a>' in html
    late = post(f"rules/{second.pk}/move/", beside=str(first.pk))
    assert late.status_code == 409, "it is above now: a second click on an old page moves nothing"
    assert "changed the order" in late.content.decode()
    assert post(f"rules/{second.pk}/move/?to=down", beside=str(first.pk)).status_code == 302
    words = _command(row_named("qwen3-8b").served_id)
    assert words[words.index("-c") + 1] == "8192"


@pytest.mark.parametrize("match", ["", "qwen3", "/models/a.gguf", "*a\nb*", "*" * 1025, "*QWEN3*"])
def test_patterns_that_cannot_be_used(rule: Any, post: Any, match: str) -> None:
    rule("*qwen3*")
    answer = post("rules/", match=match)
    assert answer.status_code == 422
    assert "Pattern: " in answer.content.decode() or "a rule of this pattern" in answer.content.decode()
    assert Override.objects.count() == 1


@pytest.mark.parametrize("typed", ["'", "1e309", "NaN", "-3", "10,00,0", "٣", "9" * 4000])
def test_rubbish_is_answered_with_a_message(rule: Any, post: Any, typed: str) -> None:
    made = rule("*qwen3*")
    answer = post(f"rules/{made.pk}/", version="1", match="*qwen3*", ctx=typed)
    assert answer.status_code == 422
    assert "Context" in answer.content.decode()


def test_two_people_choose_field_by_field(as_role: Any, rule: Any, post: Any) -> None:
    made = rule("*qwen3*", ctx="8k")
    ada = as_role("admin")
    assert post(f"rules/{made.pk}/", version="2", match="*qwen3*", ctx="16k").status_code == 302
    form = {"version": "2", "match": "*qwen3-8b*", "ctx": "32k", "threads": "3"}
    answer = post(f"rules/{made.pk}/", client=ada, **form)
    assert answer.status_code == 409
    text = _text(answer.content.decode())
    assert re.search(r"Context 32768 16384 8192", text)
    assert re.search(r"Pattern \*qwen3-8b\* \*qwen3\* \*qwen3\*", text)
    assert 'name="version" value="3"' in answer.content.decode()
    again = {**form, "version": "3", "choose-ctx": "saved"}
    assert post(f"rules/{made.pk}/", client=ada, **again).status_code == 302
    made.refresh_from_db()
    assert (made.match, made.fields) == ("*qwen3-8b*", {"ctx": 16384, "threads": 3})


def test_the_impact_stores_nothing_and_is_for_everybody(as_role: Any, rule: Any, post: Any) -> None:
    made = rule("*qwen3*")
    answer = post(f"rules/{made.pk}/", client=as_role("viewer"), intent="impact", match="*qwen3-8b*", ctx="8k")
    assert answer.status_code == 200
    assert "1 of 1 plan would change." in _text(answer.content.decode())
    made.refresh_from_db()
    assert made.fields == {}
    assert post(f"rules/{made.pk}/", client=as_role("operator"), match="*qwen3*", ctx="8k").status_code == 403


def test_typing_shows_the_impact_alone(as_role: Any, rule: Any, post: Any) -> None:
    made, viewer = rule("*qwen3*"), as_role("viewer")
    address, htmx = f"/hosts/local/rules/{made.pk}/", {"HX-Request": "true", "HX-Target": "impact"}
    answer = viewer.post(address, {"match": "*qwen3-8b*", "ctx": "8k", "seq": "3"}, headers=htmx)
    assert answer.status_code == 200
    assert answer["X-Sequence"] == "3"
    html = answer.content.decode()
    assert html.lstrip().startswith('<section class="q-sec" id="impact">')
    assert "1 of 1 plan would change" in _text(html)
    assert "2 settings not saved" in _text(html)
    refused = viewer.post(address, {"match": "qwen3", "ctx": "x", "seq": "4"}, headers=htmx)
    assert refused.status_code == 422
    assert refused["HX-Reswap"] == "none"
    assert 'id="e-ctx" hx-swap-oob="true"><p class="q-err">' in refused.content.decode()
    made.refresh_from_db()
    assert made.version == 1


def test_deleting_says_what_changes_and_history_brings_it_back(
    editor: Client, rule: Any, post: Any, row_named: Any
) -> None:
    made = rule("*qwen3-8b*", ctx="8k")
    made.variants.create(name="fast", fields={"ctx": 4096}, version=1)
    assert "fast · Context 4096" in _page(editor, f"rules/{made.pk}/")
    other = rule("*mixtral*", ctx="4k")
    assert "1 of 1 plan would change" in _page(editor, f"rules/{made.pk}/delete/")
    assert post(f"rules/{made.pk}/delete/", version="1").status_code == 409, "somebody changed it since"
    assert post(f"rules/{made.pk}/delete/", version=str(made.version)).status_code == 302
    assert "8192" not in _command(row_named("qwen3-8b").served_id)
    assert [item.position for item in Override.objects.all()] == [1]
    saved = Change.objects.get(rule=made.pk, action="save")
    history = _page(editor, "history/")
    assert "editor deleted the rule *qwen3-8b*" in history
    assert "editor changed the rule *mixtral*" in history
    assert "mixtral" not in _page(editor, f"history/?rule={made.pk}")
    assert post(f"history/{saved.pk}/restore/", version="0").status_code == 302
    back = Override.objects.get(pk=made.pk)
    assert (back.match, back.fields, back.position) == ("*qwen3-8b*", {"ctx": 8192}, 2)
    assert [(item.name, item.fields) for item in back.variants.all()] == [("fast", {"ctx": 4096})]
    assert back.version == 4, "its versions go on, so that an old form is told"
    assert "8192" in _command(row_named("qwen3-8b").served_id)
    first = Change.objects.get(rule=other.pk, action="add")
    assert post(f"history/{first.pk}/restore/", version="1").status_code == 409
    assert post(f"history/{first.pk}/restore/", version="2").status_code == 302
    other.refresh_from_db()
    assert other.fields == {}


def test_launch_arguments_need_the_grant_and_a_question(editor: Client, as_role: Any, rule: Any, post: Any) -> None:
    made = rule("*qwen3*")
    form = {"version": "1", "match": "*qwen3*", "customArgs": "--frobnicate 1 -t 3"}
    assert post(f"rules/{made.pk}/", **form).status_code == 302
    made.refresh_from_db()
    assert made.fields == {}, "an editor without the grant has no such control"
    Account.objects.filter(user__username="editor").update(custom_args=True)
    Backend.objects.create(
        host=made.host, slug="llama", kind="llama", path="/opt/llama-server", probe={"flags": ["-t", "-c"]}
    )
    asked = post(f"rules/{made.pk}/", **form)
    assert asked.status_code == 422
    assert "Not saved yet" in asked.content.decode()
    assert "--frobnicate" in asked.content.decode()
    assert post(f"rules/{made.pk}/", confirm="--frobnicate", **form).status_code == 302
    made.refresh_from_db()
    assert made.fields == {"customArgs": "--frobnicate 1 -t 3"}
    assert AuditEntry.objects.get(action="arguments.confirm").reason.endswith("--frobnicate")
    html = editor.get(f"/hosts/local/rules/{made.pk}/").content.decode()
    assert "launch arguments own this: -t 3" in html
    assert post(f"rules/{made.pk}/", version="2", match="*qwen3*", customArgs="--port 9").status_code == 422


def test_a_form_without_the_grant_keeps_the_text(as_role: Any, rule: Any, post: Any) -> None:
    made = rule("*qwen3*")
    Override.objects.filter(pk=made.pk).update(fields={"customArgs": "-t 3 --api-key sk-very-secret-value"})
    assert post(f"rules/{made.pk}/", version="1", match="*qwen3*", ctx="8k").status_code == 302
    made.refresh_from_db()
    assert made.fields["customArgs"].startswith("-t 3")
    assert made.fields["ctx"] == 8192
    assert "sk-very-secret" not in as_role("viewer").get("/hosts/local/rules/").content.decode()


def test_rules_of_another_host_are_not_there(rule: Any, post: Any, as_role: Any) -> None:
    made = rule("*qwen3*")
    other = Host.objects.create(slug="other", name="Other")
    theirs = Override.objects.create(host=other, match="*x*", version=1)
    assert post(f"rules/{theirs.pk}/", version="1", match="*y*").status_code == 404
    assert as_role("viewer").get(f"/hosts/other/rules/{made.pk}/").status_code == 404
    row = Row.objects.first()
    assert row is not None
    own = Override.objects.create(host=row.host, match=row.path, version=1)
    assert post(f"rules/{own.pk}/delete/", version="1").status_code == 404, "settings of one model are no rule"


def test_a_model_says_which_rule_sets_it_and_can_follow_again(
    editor: Client, as_role: Any, rule: Any, post: Any, row_named: Any, django_capture_on_commit_callbacks: Any
) -> None:
    made, row = rule("*qwen3-8b*", ctx="8k"), row_named("qwen3-8b")
    address = f"/models/{row.pk}/"
    assert f'set by <a href="/hosts/local/rules/{made.pk}/">rule 1</a>' in editor.get(address).content.decode()
    page = editor.get(f"{address}edit/").content.decode()
    assert "Rule 1" in page
    assert "rule *qwen3-8b*" in page

    def send(path: str, **data: str) -> Any:
        return run(django_capture_on_commit_callbacks, lambda: editor.post(address + path, data))

    send("edit/", version="0", ctx="16k")
    send("variants/", name="fast")
    assert "16384" in _command(row.served_id)
    assert "its own settings come before" in editor.get(address).content.decode()
    ask = _text(editor.get(f"{address}reset/").content.decode())
    assert "Rule 1 *qwen3-8b* matches this model" in ask
    assert "with 1 variant of this model" in ask
    assert send("reset/", intent="follow", version="0").status_code == 409
    assert send("reset/", intent="follow", version="1").status_code == 302
    assert Override.objects.get() == made
    assert "8192" in _command(row.served_id)
    assert "gave up the settings of its own" in _text(editor.get(f"{address}history/").content.decode())
    first = Change.objects.get(match=row.path, action="save")
    assert send(f"history/{first.pk}/restore/", version="0").status_code == 302
    assert Override.objects.get(match=row.path).fields == {"ctx": 16384}
    assert as_role("operator").post(f"{address}reset/", {"intent": "follow", "version": "4"}).status_code == 403


def test_a_review_explains_models_of_the_old_pattern_too() -> None:
    save = Change(pk=1, match="*/b.*", rule=3, actor="ada", action="save", changes={"match": ["*/a.*", "*/b.*"]})
    move = Change(pk=2, match="*/b.*", rule=3, actor="ada", action="move", changes={"position": [2, 1]})
    after = SimpleNamespace(host=Host(os_family="linux"), summary={})
    causes = SimpleNamespace(files={})
    comparison: Any = SimpleNamespace(after=after, changes=[move, save], causes=causes, undone=False)
    reasons = ModelCauses(comparison)

    def of(path: str) -> tuple[str, ...]:
        model: Any = SimpleNamespace(path=path, kind="changed")
        return reasons.of(model)

    assert of("/m/a.gguf") == ("ada: Match */a.* → */b.*",)
    assert of("/m/b.gguf") == ("ada: Place among the rules 2 → 1", "ada: Match */a.* → */b.*")
    assert of("/m/c.gguf") == ()
