"""The Settings tab: what it shows to whom, previews, saves, refusals, conflicts."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from gpus_app.models import Host
from models_app.models import Change, Override, Row
from models_app.views import model_detail
from quartermaster_site.access.models import AuditEntry
from quartermaster_site.rate import RateLimit
from tests.views.conftest import run

HTMX = {"HX-Request": "true", "HX-Target": "plan"}
Named = Callable[[str], Row]


@pytest.fixture(autouse=True)
def _fresh_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_detail, "PREVIEWS", RateLimit(per_second=5, burst=1000))


@pytest.fixture
def editor(as_role: Callable[[str], Client]) -> Client:
    return as_role("editor")


@pytest.fixture
def row(scanned: Host, row_named: Named) -> Row:
    return row_named("qwen3-8b")


@pytest.fixture
def post_to(editor: Client, django_capture_on_commit_callbacks: Any) -> Callable[..., Any]:
    """`post_to(row, ctx="8k")` posts the editor's form of a model, everything else blank, and what that queues."""

    def post(row: Row, version: int = 0, client: Client = editor, **values: str) -> Any:
        data = {"version": str(version), **values}
        return run(django_capture_on_commit_callbacks, lambda: client.post(f"/models/{row.pk}/edit/", data))

    return post


@pytest.fixture
def save(row: Row, post_to: Callable[..., Any]) -> Callable[..., Any]:
    """The same for one chat model: `save(ctx="8k")`."""
    return lambda **values: post_to(row, **values)


def _text(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html))


def _control(html: str, key: str) -> str:
    end = html.index(f'id="h-{key}"')
    return html[html.rindex('<div class="q-f', 0, end) : html.index('<div class="q-f', end)]


def test_the_form_comes_from_the_catalogue_for_this_class(editor: Client, row: Row) -> None:
    html = editor.get(f"/models/{row.pk}/edit/").content.decode()
    for key in ("ctx", "kvK", "temp", "dry", "ropeScaling", "tensorSplit", "unlisted", "loras"):
        assert f'id="o-{key}"' in html
    for key in ("vaePath", "audioDevice", "vllmGpuUtil", "match", "customArgs"):
        assert f'id="o-{key}"' not in html
    assert "Trained for 40,960" in html
    assert 'placeholder="7"' in _control(html, "threads")
    assert "host setting" in _control(html, "threads")
    assert "Automatic (on)" in _control(html, "preserveThinking")


def test_a_window_between_the_steps_says_what_runs_and_keeps_its_text(editor: Client, row: Row, save: Any) -> None:
    url = f"/models/{row.pk}/edit/"
    html = editor.post(f"{url}preview/", {"version": "0", "ctx": "5000"}, headers=HTMX).content.decode()
    assert 'id="o-ctx" hx-swap-oob="true"><b>runs with 4,096, not saved yet' in html
    whole = _control(editor.post(f"{url}preview/", {"version": "0", "ctx": "5000"}).content.decode(), "ctx")
    assert 'value="5000"' in whole
    even = editor.post(f"{url}preview/", {"version": "0", "ctx": "8192"}, headers=HTMX).content.decode()
    assert "runs with" not in even


def test_the_slider_ends_at_the_trained_length_and_further_with_rope_scaling(editor: Client, row: Row) -> None:
    control = _control(editor.get(f"/models/{row.pk}/edit/").content.decode(), "ctx")
    assert re.search(r'type="range" hidden .* max="40960" .* data-trained="40960" data-scaled="327680"', control)
    form = {"version": "0", "ctx": "65536"}
    assert editor.post(f"/models/{row.pk}/edit/preview/", form, headers=HTMX).status_code == 422
    scaled = editor.post(f"/models/{row.pk}/edit/preview/", {**form, "ropeScaling": "yarn"}, headers=HTMX)
    assert scaled.status_code == 200


def test_the_form_stays_light(editor: Client, row: Row) -> None:
    html = editor.get(f"/models/{row.pk}/edit/").content.decode()
    assert html.index("</form>", html.index('id="edit"')) - html.index('id="edit"') < 42_000
    assert len(html.encode()) < 60_000, "the whole page, its plan included"


def test_everybody_sees_and_tries_and_only_editors_save(as_role: Any, row: Row, save: Any) -> None:
    viewer = as_role("viewer")
    html = viewer.get(f"/models/{row.pk}/edit/").content.decode()
    assert 'value="save"' not in html
    assert "needs the role editor" in html
    answer = viewer.post(f"/models/{row.pk}/edit/preview/", {"ctx": "8k", "seq": "4"}, headers=HTMX)
    assert (answer.status_code, answer["X-Sequence"]) == (200, "4")
    assert save(client=viewer, ctx="8k").status_code == 403
    assert not Override.objects.exists()


def test_a_preview_swaps_the_panel_and_the_slots_and_stores_nothing(editor: Client, row: Row) -> None:
    html = editor.post(f"/models/{row.pk}/edit/preview/", {"ctx": "8k", "parallel": "2"}, headers=HTMX).content.decode()
    assert html.lstrip().startswith('<aside class="q-plan" id="plan"')
    assert "pool 16,384" in html
    assert re.search(r'id="o-ctx" hx-swap-oob="true"><b>not saved yet</b>', html)
    assert "2 settings not saved" in html
    assert re.search(r"<em>set here</em>-c 16384", html), "the command says which argument comes from the form"
    assert 'id="f-ctx"' not in html, "the field itself is never swapped"
    assert not Override.objects.exists()


def test_saving_stores_only_what_differs_and_says_who(editor: Client, row: Row, save: Any) -> None:
    answer = save(ctx="8k", threads="7", flashAttn="on", temp="0", dry="off", kvK="")
    assert answer.status_code == 302
    assert Override.objects.get().fields == {"ctx": 8192, "temp": 0.0}
    html = editor.get(f"/models/{row.pk}/edit/").content.decode()
    assert 'value="8192"' in _control(html, "ctx")
    assert "this model · editor, " in _control(html, "ctx")
    assert "automatic: 40960" in _control(html, "ctx")
    assert "context 8,192" in html
    assert 'value="0"' in _control(html, "temp")


def test_an_untouched_form_changes_nothing(editor: Client, row: Row, save: Any) -> None:
    save(ctx="8k", temp="0")
    before = (Change.objects.count(), AuditEntry.objects.count(), Override.objects.get().version)
    html = editor.get(f"/models/{row.pk}/edit/").content.decode()
    values = dict(re.findall(r'<input class="form-control q-n" id="f-\w+" name="(\w+)" value="([^"]*)"', html))
    assert len(values) > 30
    answer = save(version=1, **values)
    assert answer.status_code == 302
    assert (Change.objects.count(), AuditEntry.objects.count(), Override.objects.get().version) == before


RUBBISH = ("1e", "'", "٣٢٧٦٨", "９", "1e309", "NaN", "1" + "0" * 30, "-5", "1,2,3", "0x10", "9" * 2_000_000)


@pytest.mark.parametrize("typed", RUBBISH, ids=lambda text: text[:8])
def test_rubbish_in_any_number_is_named_and_nothing_is_lost(editor: Client, row: Row, save: Any, typed: str) -> None:
    keys = ("ctx", "parallel", "ub", "threads", "temp", "topP", "ropeScale", "vramTargetGB", "cpuOffload", "ttlSec")
    keys = keys if len(typed) < 1000 else keys[:1]
    answer = save(**dict.fromkeys(keys, typed))
    html = answer.content.decode()
    assert answer.status_code == 422
    for key in keys:
        assert "q-err" in _control(html, key), key
        assert f"You typed “{typed[:40]}" in html.replace("&#x27;", "'")
        assert f'value="{typed}"'.replace("'", "&#x27;") in _control(html, key)
    assert not Override.objects.exists()


def test_a_message_names_the_field_the_value_and_the_way_out(row: Row, save: Any) -> None:
    html = save(ctx="200000", specDraftNMin="9", specDraftNMax="3", tensorSplit="a,b").content.decode()
    text = _text(html)
    assert "The model was trained for 40,960 tokens: give less, or switch RoPE scaling on." in text
    assert "You typed “200000”" in text
    assert "Shortest draft: give at most the longest draft, 3." in text
    assert "Tensor split: give numbers of 0 or more" in text
    assert save(ctx="64k", ropeScaling="yarn").status_code == 302
    assert Override.objects.get().fields == {"ctx": 65536, "ropeScaling": "yarn"}


def test_two_people_get_three_columns_and_lose_nothing(editor: Client, as_role: Any, row: Row, save: Any) -> None:
    save(ctx="8k", threads="3")
    other = as_role("admin")
    assert save(version=1, client=other, ctx="16k", threads="3").status_code == 302
    answer = save(version=1, ctx="8k", threads="5", topP="0.5")
    html = answer.content.decode()
    assert answer.status_code == 409
    panel = html[html.index('id="conflict"') : html.index("</table>")]
    assert "admin saved this" in _text(panel)

    assert re.search(r"Context 8192 16384 8192", _text(panel))
    assert re.search(r"Threads 5 3 3", _text(panel))
    assert re.search(r'name="choose-ctx" value="saved" checked', panel), (
        "a field that was not touched keeps the saved value"
    )
    assert re.search(r'name="choose-threads" value="yours" checked', panel)
    assert 'value="5"' in _control(html, "threads")
    assert 'name="version" value="2"' in html
    choices = {"choose-ctx": "saved", "choose-threads": "yours", "choose-topP": "yours"}
    assert save(version=2, ctx="8k", threads="5", topP="0.5", **choices).status_code == 302
    assert Override.objects.get().fields == {"ctx": 16384, "threads": 5, "topP": 0.5}


def test_both_saving_the_same_is_no_conflict(as_role: Any, row: Row, save: Any) -> None:
    save(ctx="8k")
    answer = save(client=as_role("admin"), ctx="8192")
    assert answer.status_code == 302
    assert (Override.objects.get().version, Change.objects.count()) == (1, 1)


def test_without_javascript_buttons_work_by_themselves(editor: Client, row: Row, save: Any) -> None:
    save(ctx="8k", threads="3", threadsBatch="4")
    address = f"/models/{row.pk}/edit/preview/"
    typed = {"version": "1", "ctx": "8192", "threads": "3", "threadsBatch": "4"}
    reset = editor.post(address, {**typed, "reset": "ctx"}).content.decode()
    assert 'value=""' in _control(reset, "ctx")
    assert "context 40,960" in reset
    group = editor.post(address, {**typed, "reset-group": "performance"}).content.decode()
    assert 'value=""' in _control(group, "threads")
    assert 'value=""' in _control(group, "threadsBatch")
    assert 'value="8192"' in _control(group, "ctx")
    picked = editor.post(address, {**typed, "pick": "ctx=16384"}).content.decode()
    assert "context 16,384" in picked
    assert Override.objects.get().fields == {"ctx": 8192, "threads": 3, "threadsBatch": 4}


def test_reset_all_asks_and_clears(editor: Client, row: Row, save: Any) -> None:
    save(ctx="8k", threads="3")
    question = editor.get(f"/models/{row.pk}/reset/").content.decode()
    assert "2 settings will be automatic again" in _text(question)
    assert "<li>Threads</li>" in question
    assert editor.post(f"/models/{row.pk}/reset/", {"version": "1"}).status_code == 302
    assert Override.objects.get().fields == {}


def test_a_text_locks_its_fields(editor: Client, row: Row, host: Host) -> None:
    Override.objects.create(host=host, match=row.path, fields={"customArgs": "-t 12 -c 8192"}, version=1)
    html = editor.get(f"/models/{row.pk}/edit/").content.decode()
    assert "launch arguments own this: -t 12" in _control(html, "threads")
    assert " disabled" in _control(html, "threads")
    assert "-c 8192" in _control(html, "ctx")


def test_a_pattern_shows_as_the_source(editor: Client, row: Row, host: Host, save: Any) -> None:
    Override.objects.create(host=host, match="*qwen3*", fields={"ctx": 8192})
    html = editor.get(f"/models/{row.pk}/edit/").content.decode()
    assert "rule *qwen3*" in _control(html, "ctx")
    save(ctx="8192", threads="4")
    assert Override.objects.get(match=row.path).fields == {"ctx": 8192, "threads": 4}


def test_a_skipped_model_says_so_and_has_no_entry(editor: Client, row: Row, save: Any) -> None:
    from models_app.models import Revision, StoredPlan

    save(skip="on")
    assert "Set to be skipped" in editor.get(f"/models/{row.pk}/").content.decode()
    assert f'"{row.served_id}"' not in Revision.objects.order_by("-number")[0].text
    assert StoredPlan.objects.get(row=row).skip_reason == "set to be skipped"


def test_an_embedding_model_has_the_fields_of_its_class(
    editor: Client, row_named: Named, row: Row, post_to: Any
) -> None:
    other = row_named("nomic-embed")
    html = editor.get(f"/models/{other.pk}/edit/").content.decode()
    assert set(re.findall(r'id="o-(\w+)"', html)) >= {"ctx", "device", "ttlSec", "unlisted"}
    assert 'id="o-temp"' not in html
    assert post_to(other, ctx="2048", ttlSec="0").status_code == 302
    assert Override.objects.get().fields.keys() <= {"ctx", "ttlSec"}
    assert Override.objects.get().fields["ttlSec"] == 0


def test_only_what_the_model_can_do_is_offered(editor: Client, row: Row, save: Any) -> None:
    html = editor.get(f"/models/{row.pk}/edit/").content.decode()
    offered = re.findall(r'name="pick" value="spec=([^"]+)"', html)
    assert offered == ["ngram-mod", "ngram-map-k4v", "none"], "no drafter in the file, none beside it"
    assert 'name="mmproj"' not in html, "no projector to place"
    assert re.search(r'<select[^>]*name="prio"[^>]*>.*?Medium.*?Realtime', html, re.S)
    refused = save(spec="draft-mtp+magic")
    assert refused.status_code == 422
    assert "magic is not known" in refused.content.decode()
    assert save(spec="none", prio="2").status_code == 302
    assert Override.objects.get().fields == {"spec": "none", "prio": 2}
