"""Review before a write, history, comparison of two revisions, rollback, pin, policy and approval on the pages."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from gpus_app.models import Host
from gpus_app.selectors import get_host
from gpus_app.services import save_memory_settings
from models_app.models import Override, Publishing, Revision, RevisionDetails, Root, Row
from models_app.services import save_override
from quartermaster_site.access.audit import Actor
from tests.views.conftest import run


@pytest.fixture
def target(scanned: Host, tmp_path: Path) -> Path:
    Host.objects.update(publish_path=str(tmp_path / "config.yaml"))
    return tmp_path / "config.yaml"


@pytest.fixture
def idle_time(django_capture_on_commit_callbacks: Any, django_user_model: Any) -> Callable[[int], Revision]:
    """Have another idle time planned; the newest text."""

    def make(seconds: int) -> Revision:
        host = get_host("local")
        section = host.settings.get(section="memory")
        values = {**section.values, "ttlSec": seconds}
        admin = django_user_model.objects.filter(account__role="admin").first()
        actor = Actor(user=admin, name="admin")
        run(
            django_capture_on_commit_callbacks,
            lambda: save_memory_settings(host=host, values=values, version=section.version, actor=actor),
        )
        newest = Revision.objects.order_by("number").last()
        assert newest is not None
        return newest

    return make


def text_of(response: Any) -> str:
    """What is read on a page: no tags, blanks as one."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", unescape(response.content.decode())))


def test_the_first_text_adds_every_model(target: Path, viewer: Client) -> None:
    page = text_of(viewer.get("/config/local/review/"))
    assert "4 models added" in page
    assert "nothing of Quartermaster's is live" in page
    assert "Writing a file on the host needs the role operator." in page


def test_what_changes_and_why(target: Path, admin: Client, post: Any, idle_time: Any) -> None:
    post(admin, "/config/local/1/write/", message="first")
    second = idle_time(7)
    page = text_of(admin.get("/config/local/review/"))
    assert "Write revision 2 to Local machine" in page
    assert "4 models changed" in page
    assert "ttl 600 → 7" in page
    assert "Idle unload: automatic → 7, set by admin" in page
    assert "llama-swap stops every running model" in page
    assert "revision 2, on top of 1" in page
    post(admin, f"/config/local/{second.number}/write/", message="shorter")
    assert "Nothing to write: this text is live" in text_of(admin.get("/config/local/review/"))
    assert target.read_text() == second.text


def test_a_pinned_field_is_the_cause_of_its_model_alone(
    target: Path,
    admin: Client,
    post: Any,
    row_named: Callable[[str], Row],
    django_user_model: Any,
    django_capture_on_commit_callbacks: Any,
) -> None:
    post(admin, "/config/local/1/write/")
    row = row_named("qwen3-8b")
    actor = Actor(user=django_user_model.objects.get(username="admin"), name="edda")
    run(
        django_capture_on_commit_callbacks,
        lambda: save_override(row=row, values={"ctx": 8192}, version=0, actor=actor),
    )
    assert Override.objects.exists()
    page = text_of(admin.get("/config/local/review/"))
    assert "1 model changed" in page
    assert re.search(r"Context --ctx-size [\d,]+ → 8,192", page)
    assert "edda: Context automatic → 8192" in page
    assert "Changed by edda" in page
    assert f'href="/models/{row.pk}/">qwen3-8b-q4_k_m' in admin.get("/config/local/review/").content.decode()


def test_filters_and_the_text(target: Path, admin: Client, post: Any, idle_time: Any) -> None:
    post(admin, "/config/local/1/write/")
    idle_time(7)
    assert 'class="q-model"' in admin.get("/config/local/review/?q=mixtral").content.decode()
    page = text_of(admin.get("/config/local/review/?q=mixtral"))
    assert "mixtral-8x7b-q4_0 changed" in page
    assert "qwen3-8b" not in page
    assert "No model matches" in text_of(admin.get("/config/local/review/?show=removed"))
    html = admin.get("/config/local/review/?tab=text").content.decode()
    assert '<span class="d">- ' in html
    assert "ttl:</mark>" not in html
    assert "Published: host" not in html, "the header differs always"
    assert "<mark>600</mark>" in html
    assert "<mark>7</mark>" in html
    assert "lines removed" in html


def test_what_many_models_share_is_said_once(scanned: Host, viewer: Client) -> None:
    first = Revision.objects.get()
    models = {f"m{n}": {"flags": {"model": f"/m{n}", "ctx-size": str(n)}, "keys": {"ttl": "600"}} for n in range(9)}
    RevisionDetails.objects.update(outline={"models": models, "top": {}})
    second = Revision.objects.create(host=first.host, number=2, dialect="llama-swap", text=first.text, sha256="x")
    changed = {name: {**model, "keys": {"ttl": "900"}} for name, model in models.items()}
    changed["m3"]["flags"] = {"model": "/m3", "ctx-size": "77"}
    RevisionDetails.objects.create(revision=second, outline={"models": changed, "top": {}})
    page = text_of(viewer.get("/config/local/1/diff/2/"))
    assert "The same in many models" in page
    assert page.count("600 → 900") == 1
    assert "9 models" in page
    assert "3 → 77" in page


def test_of_a_list_only_what_came_and_went_is_told(scanned: Host, viewer: Client) -> None:
    first = Revision.objects.get()
    second = Revision.objects.create(host=first.host, number=2, dialect="llama-swap", text=first.text, sha256="x")
    RevisionDetails.objects.update(outline={"models": {}, "top": {"groups.all.members": ["a", "b"], "globalTTL": ""}})
    RevisionDetails.objects.create(revision=second, outline={"models": {}, "top": {"groups.all.members": ["b"]}})
    page = text_of(viewer.get("/config/local/1/diff/2/"))
    assert "groups.all.members gone: a globalTTL" in page
    assert "No model changes; 2 other keys" in page


def test_secrets_are_masked_in_differences(target: Path, admin: Client) -> None:
    Revision.objects.update(text=Revision.objects.get().text.replace("--metrics", "--api-key qm-0123456789abcdef"))
    RevisionDetails.objects.all().delete()
    first = Revision.objects.get()
    other = first.text.replace("qm-0123456789abcdef", "qm-fedcba9876543210")
    Revision.objects.create(host=first.host, number=2, dialect="llama-swap", text=other, sha256="x", state="validated")
    for tab in ("", "?tab=text"):
        html = admin.get(f"/config/local/1/diff/2/{tab}").content.decode()
        assert "api-key" in html
        assert "0123456789abcdef" not in html
        assert "fedcba" not in html


def test_a_mass_change_is_typed_out(target: Path, admin: Client, post: Any, as_role: Callable[[str], Client]) -> None:
    Root.objects.update(state=Root.State.MISSING)
    html = admin.get("/config/local/review/").content.decode()
    assert 'name="slug"' in html
    assert "Not read, or not completely" in html
    answer = post(admin, "/config/local/1/write/", slug="locale", message="it is fine")
    assert answer.status_code == 422
    assert "Type local to confirm" in answer.content.decode()
    assert "it is fine" in answer.content.decode()
    assert not target.exists()
    operator = as_role("operator")
    assert "An administrator can have it written" in text_of(operator.get("/config/local/1/write/"))
    assert operator.post("/config/local/1/write/", {"slug": "local"}).status_code == 403
    post(admin, "/config/local/1/write/", slug="local")
    assert target.exists()


def test_a_text_that_is_no_longer_the_newest_is_not_written(target: Path, admin: Client, idle_time: Any) -> None:
    idle_time(7)
    answer = admin.post("/config/local/1/write/", {})
    assert answer.status_code == 409
    assert "revision 2 is newer" in answer.content.decode()


def test_history_compares_any_two(target: Path, admin: Client, post: Any, idle_time: Any) -> None:
    post(admin, "/config/local/1/write/", message="first of all")
    idle_time(7)
    page = text_of(admin.get("/config/local/revisions/"))
    assert "first of all" in page
    assert "4 entries" in page
    answer = admin.get("/config/local/revisions/?a=2&b=1")
    assert answer["Location"] == "/config/local/1/diff/2/"
    page = text_of(admin.get("/config/local/1/diff/2/"))
    assert "From revision 1 to 2" in page
    assert "ttl 600 → 7" in page
    assert "ttl 7 → 600" in text_of(admin.get("/config/local/2/diff/1/"))
    assert "No difference" in text_of(admin.get("/config/local/1/diff/1/"))
    assert admin.get("/config/local/1/diff/9/").status_code == 404


def test_rolling_back_pins_the_host_everywhere_until_somebody_lifts_it(
    target: Path, admin: Client, viewer: Client, post: Any, idle_time: Any
) -> None:
    post(admin, "/config/local/1/write/")
    post(admin, f"/config/local/{idle_time(7).number}/write/")
    assert "Roll back…" in admin.get("/config/local/revisions/").content.decode()
    question = text_of(admin.get("/config/local/1/rollback/"))
    assert "Roll Local machine back to revision 1?" in question
    assert "ttl 7 → 600" in question
    post(admin, "/config/local/1/rollback/", message="too short")
    assert Revision.objects.get(number=3).text == target.read_text()
    for address in ("/config/local/", "/config/local/review/", "/config/local/revisions/"):
        assert "is pinned to revision 3" in text_of(viewer.get(address)), address
    for address in ("/", "/models/", "/hosts/local/"):
        assert "pinned to rev 3" in text_of(viewer.get(address)), address
    assert "rev 3, pinned" in text_of(viewer.get("/"))
    assert "rollback to 1" in text_of(viewer.get("/config/local/revisions/"))
    planned = idle_time(9)
    answer = post(admin, f"/config/local/{planned.number}/write/")
    assert answer.status_code == 422
    assert "lift the pin first" in answer.content.decode()
    post(admin, "/config/local/unpin/")
    assert "pinned" not in text_of(viewer.get("/"))
    post(admin, f"/config/local/{planned.number}/write/")
    assert target.read_text() == planned.text


def test_a_pin_can_be_lifted_with_the_write(target: Path, admin: Client, post: Any, idle_time: Any) -> None:
    post(admin, "/config/local/1/write/")
    post(admin, f"/config/local/{idle_time(7).number}/write/")
    post(admin, "/config/local/1/rollback/")
    planned = idle_time(9)
    assert 'name="lift"' in admin.get("/config/local/review/").content.decode()
    post(admin, f"/config/local/{planned.number}/write/", lift="1")
    assert target.read_text() == planned.text


def test_no_rollback_to_a_text_that_never_was_there(target: Path, admin: Client, post: Any, idle_time: Any) -> None:
    post(admin, f"/config/local/{idle_time(7).number}/write/")
    answer = post(admin, "/config/local/1/rollback/")
    assert answer.status_code == 422
    assert "was never on the host" in answer.content.decode()


def test_a_backup_that_somebody_put_back_is_adopted(target: Path, admin: Client, post: Any, idle_time: Any) -> None:
    post(admin, "/config/local/1/write/")
    old = target.read_text()
    second = idle_time(7)
    post(admin, f"/config/local/{second.number}/write/")
    target.write_text(old)
    post(admin, "/config/local/look/")
    html = admin.get("/config/local/").content.decode()
    assert "the text of revision 1, whole" in html
    assert "Adopt revision 1 as live" in html
    assert post(admin, "/config/local/adopt/", sha256=second.sha256).status_code == 422
    post(admin, "/config/local/adopt/", sha256=Revision.objects.get(number=1).sha256)
    assert target.read_text() == old
    assert "pinned to rev 1" in text_of(admin.get("/"))
    post(admin, "/config/local/1/write/", message="no drift")
    assert "Adopt revision" not in admin.get("/config/local/").content.decode()
    post(admin, f"/config/local/{second.number}/write/", lift="1")
    assert target.read_text() == second.text


def test_a_second_person_approves(target: Path, admin: Client, as_role: Callable[[str], Client], post: Any) -> None:
    post(admin, "/config/local/policy/", policy="approval", was="manual")
    editor, operator = as_role("editor"), as_role("operator")
    assert "Submit for approval" in editor.get("/config/local/review/").content.decode()
    assert post(editor, "/config/local/1/write/").status_code == 422
    post(editor, "/config/local/1/submit/", message="please look")
    assert "rev 1 awaits approval" in text_of(editor.get("/models/"))
    assert "You submitted it" in text_of(editor.get("/config/local/review/"))
    assert post(editor, "/config/local/1/write/").status_code == 403
    page = text_of(operator.get("/config/local/review/"))
    assert "Submitted by editor" in page
    assert "please look" in page
    assert "Approve and write" in page
    post(operator, "/config/local/1/refuse/", reason="not now")
    assert "not approved by operator: not now" in text_of(editor.get("/config/local/revisions/"))
    post(editor, "/config/local/1/submit/")
    post(operator, "/config/local/1/write/")
    assert target.read_text() == Revision.objects.get().text
    assert "approved by operator" in text_of(editor.get("/config/local/revisions/"))


def test_why_a_text_was_not_written_by_itself(target: Path, admin: Client, post: Any) -> None:
    Root.objects.update(state=Root.State.PARTIAL)
    post(admin, "/config/local/policy/", policy="auto", was="manual")
    assert Publishing.objects.get().policy == "auto"
    assert "Not written by itself." in text_of(admin.get("/config/local/revisions/"))
    assert not target.exists()
    answer = post(admin, "/config/local/policy/", policy="approval", was="manual")
    assert answer.status_code == 422
    assert "Somebody changed this meanwhile" in answer.content.decode()


def test_two_hundred_models_are_shown_first(scanned: Host, viewer: Client) -> None:
    outline = {"models": {f"m{n}": {"flags": {"model": f"/m{n}"}} for n in range(250)}, "top": {}}
    RevisionDetails.objects.update(outline=outline)
    html = viewer.get("/config/local/review/").content.decode()
    assert html.count('class="q-model"') == 200
    assert "Show all 250" in html
    assert viewer.get("/config/local/review/?all=1").content.decode().count('class="q-model"') == 250


def test_a_thousand_models_with_four_profiles_are_reviewed_within_a_second(scanned: Host, viewer: Client) -> None:
    """A text of some 5 MB on both sides, every model changed."""
    flags = {f"--flag-{n}": f"value-{n}-of-some-length" for n in range(30)}
    command = "\n".join(f"      {name} {value}" for name, value in flags.items())
    ids = [f"model-{n}-{k}" for n in range(1000) for k in range(4)]
    for number in (2, 3):
        text, models = "# a\n# b\n# c\n# d\nmodels:\n", {}
        for n, name in enumerate(ids):
            text += f'  "{name}":\n    cmd: >\n      llama-server -m /{name}.gguf\n      -c {n * number}\n{command}\n'
            models[name] = {"flags": {"model": f"/{name}.gguf", "ctx-size": str(n * number), **flags}}
        assert len(text) > 5_000_000
        revision = Revision.objects.create(
            host=scanned, number=number, dialect="llama-swap", text=text, sha256=str(number), body_sha256=str(number)
        )
        RevisionDetails.objects.create(revision=revision, outline={"models": models, "top": {}})
    viewer.get("/config/local/1/diff/1/")
    for tab in ("", "?tab=text"):
        began = time.process_time()
        html = viewer.get(f"/config/local/2/diff/3/{tab}").content.decode()
        took = time.process_time() - began
        assert "3,999 models changed" in html
        assert took < 1, f"{tab}: {took:.2f} s"
