"""Import pages: a file in, its report, what is ticked taken over, taken back."""

from __future__ import annotations

import re

import pytest
import yaml
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from models_app.core.export.keys import resolved
from models_app.models import ApiKey, Fragment, ImportBatch, Override, Revision, Row
from models_app.services.key_export import secrets_of
from quartermaster_site import env
from tests.views.conftest import run

LIST = "/import/on/local/"


@pytest.fixture
def config(scanned):
    """Two models of the shelf as somebody wrote them, one in a container, and keys beside them."""
    first = Row.objects.get(served_id__startswith="qwen3-8b").path
    second = Row.objects.get(served_id__startswith="mixtral").path
    return {
        "apiKeys": ["sk-do-not-show-me"],
        "healthCheckTimeout": 77,
        "models": {
            "chat": {"cmd": f"llama-server --port ${{PORT}} -m {first} -c 16384 --temp 0.5", "aliases": ["gpt"]},
            "big": {"cmd": f"llama-server -m {second} --port ${{PORT}} --no-mmap", "ttl": 60},
            "box": {"cmd": "podman run -p ${PORT}:80 image", "cmdStop": "podman stop image"},
        },
    }


@pytest.fixture
def send(django_capture_on_commit_callbacks):
    """Upload a config as somebody; the page that follows."""

    def upload(client, config, kind="llama-swap", name="config.yaml"):
        text = config if isinstance(config, str | bytes) else yaml.safe_dump(config, sort_keys=False)
        data = text if isinstance(text, bytes) else text.encode()
        form = {"kind": kind, "file": SimpleUploadedFile(name, data)}
        return followed(client, run(django_capture_on_commit_callbacks, lambda: client.post(LIST, form)))

    return upload


def followed(client, answer):
    """The page that an answer leads to, once the work that it queued is done."""
    return client.get(answer["Location"]) if answer.status_code == 302 else answer


def ticked(page):
    """The form of a report as a browser would send it untouched."""
    form: dict[str, list[str]] = {}
    for name, value, rest in re.findall(
        r'<input[^>]*type="(?:checkbox|radio)" name="([^"]+)" value="([^"]*)"([^>]*)>', page
    ):
        if "checked" in rest:
            form.setdefault(name, []).append(value)
    return form


def text_of(response):
    return response.content.decode()


@pytest.fixture
def take(django_capture_on_commit_callbacks):
    """Send a report's form, with changes; the page that follows."""

    def post(client, page, **changes):
        batch = ImportBatch.objects.order_by("-pk").first()
        form = {**ticked(page), **changes}
        url = f"/import/{batch.pk}/apply/"
        return followed(client, run(django_capture_on_commit_callbacks, lambda: client.post(url, form)))

    return post


def test_a_file_is_read_taken_over_and_taken_back(admin, config, send, take, django_capture_on_commit_callbacks):
    page = text_of(send(admin, config))
    assert "2 of 2 identical, token for token" in page
    assert "1 kept as raw fragments" in page
    assert not Override.objects.exists()
    done = text_of(take(admin, page))
    assert "Nothing would change" not in done  # the two models that the file does not have are new in it
    assert re.search(r"models only planned.*nomic-embed-text-v1.5-f16", done, re.S)
    assert "models.chat" not in done
    assert {row.served_id for row in Row.objects.all()} >= {"chat", "big"}
    assert Fragment.objects.get(served_id="box").fields["cmdStop"] == "podman stop image"
    batch = ImportBatch.objects.get()
    assert "Undo it" in text_of(admin.get(f"/import/{batch.pk}/undo/"))
    run(django_capture_on_commit_callbacks, lambda: admin.post(f"/import/{batch.pk}/undo/"))
    assert "Taken back" in text_of(admin.get(f"/import/{batch.pk}/"))
    assert not Fragment.objects.exists()


def test_with_the_others_left_out_nothing_would_change(admin, config, send, take):
    page = text_of(send(admin, config))
    others = re.findall(r'name="item" value="(\d+)"(?! checked)', page)
    assert len(others) == 2
    done = text_of(take(admin, page, item=[*ticked(page)["item"], *others]))
    assert "Nothing would change." in done
    assert Revision.objects.order_by("-number").first().state == "validated"


def test_the_report_names_lines_targets_and_both_values(admin, config, send, row_named):
    row = row_named("mixtral")
    Override.objects.create(host=row.host, match=row.path, fields={"ttlSec": 9}, version=1)
    page = text_of(send(admin, config))
    assert "models.big.ttl" in page
    assert re.search(r"conflict.*?models\.big\.ttl.*?>60<.*?set here: <code[^>]*>9<", page, re.S)
    assert "raw fragment" in page


def resolved_text(key):
    """The newest text as the host writes it."""
    text = Revision.objects.order_by("-number").first().text
    assert key.placeholder in text
    return resolved(text, secrets_of([text]))


def test_secrets_are_masked_everywhere(admin, config, send, take):
    page = text_of(send(admin, config))
    assert "apiKeys.1" in page
    assert "sk-do-not-show-me" not in page
    assert "sk-do-not-show-me" not in text_of(take(admin, page))
    batch = ImportBatch.objects.get()
    assert "sk-do-not-show-me" not in f"{batch.text}{batch.report}{batch.applied}"
    assert not Fragment.objects.filter(served_id="").exists()
    key = ApiKey.objects.get(is_service=False)
    assert (key.name, key.everything) == ("imported key 1", True)
    assert "sk-do-not-show-me" in resolved_text(key)


def test_editors_take_over_settings_but_no_commands(as_role, config, send, take):
    editor = as_role("editor")
    page = text_of(send(editor, config))
    assert "Commands of a file need the role admin." in page
    assert "needs permission" in page
    take(editor, page)
    batch = ImportBatch.objects.get()
    assert batch.state == "applied", batch.problem
    stored = Override.objects.get(match__contains="Qwen3-8B" if "Qwen3-8B" in str(config) else "qwen3-8b").fields
    assert stored["temp"] == 0.5
    assert "customArgs" not in stored
    assert not Fragment.objects.exists()


def test_a_form_cannot_ask_for_more_than_its_role_may(as_role, config, send, take):
    editor = as_role("editor")
    page = text_of(send(editor, config))
    ways = dict.fromkeys(re.findall(r'name="(way-\d+)"', page), "exact")
    take(editor, page, **ways, item=[str(number) for number in range(60)])
    assert not Fragment.objects.exists()
    assert all("customArgs" not in row.fields for row in Override.objects.all())


@pytest.mark.parametrize("role", ["viewer", "operator"])
def test_others_do_not_import(as_role, scanned, role):
    assert as_role(role).get(LIST).status_code == 403


def test_a_broken_file_says_where(admin, scanned, send):
    page = text_of(send(admin, "models:\n  a: {cmd: x}\n  a: {cmd: y}\n"))
    assert "line 3" in page
    assert "is here twice" in page
    assert ImportBatch.objects.get().state == "failed"


@pytest.mark.parametrize(("data", "message"), [(b"", "empty"), (b"\xff\xfe", "not UTF-8"), (b"a\x00b", "NUL")])
def test_what_is_no_text_is_refused(admin, scanned, send, data, message):
    answer = send(admin, data)
    assert answer.status_code == 422
    assert message in text_of(answer)


def test_neither_file_nor_path_is_said(admin, scanned):
    answer = admin.post(LIST, {"kind": "auto"})
    assert answer.status_code == 422
    assert "Choose a file" in text_of(answer)


def test_a_second_apply_is_refused(admin, config, send, take):
    page = text_of(send(admin, config))
    take(admin, page)
    assert take(admin, page).status_code == 422


def test_nothing_ticked_is_said(admin, config, send, take):
    page = text_of(send(admin, config))
    answer = take(admin, page, section=[])
    assert answer.status_code == 422
    assert "Nothing is ticked" in text_of(answer)


def test_a_file_on_the_host_is_read_by_its_worker(
    admin, config, scanned, tmp_path, monkeypatch, django_capture_on_commit_callbacks
):
    monkeypatch.setenv("QM_BROWSE_ROOTS", str(tmp_path))
    file = tmp_path / "config.yaml"
    file.write_text(yaml.safe_dump(config))
    form = {"kind": "auto", "path": str(file)}
    page = run(django_capture_on_commit_callbacks, lambda: admin.post(LIST, form))
    answer = admin.get(page["Location"], follow=True)
    assert "2 of 2 identical" in text_of(answer)
    assert ImportBatch.objects.get().dialect == "llama-swap"


@pytest.mark.parametrize("name", ["secrets.txt", "../elsewhere.yaml", "folder.yaml", "missing.yaml"])
def test_other_files_of_the_host_are_not_read(
    admin, scanned, tmp_path, monkeypatch, django_capture_on_commit_callbacks, name
):
    inside = tmp_path / "inside"
    (inside / "folder.yaml").mkdir(parents=True)
    (inside / "secrets.txt").write_text("models: {}")
    (tmp_path / "elsewhere.yaml").write_text("models: {}")
    monkeypatch.setenv("QM_BROWSE_ROOTS", str(inside))
    assert env.browse_roots() == (str(inside),)
    form = {"kind": "auto", "path": str(inside / name)}
    page = run(django_capture_on_commit_callbacks, lambda: admin.post(LIST, form))
    assert 'role="alert"' in text_of(admin.get(page["Location"], follow=True))
    assert not ImportBatch.objects.exists()


def test_only_administrators_read_files_of_a_host(as_role, scanned, tmp_path):
    editor = as_role("editor")
    assert "its path on" not in text_of(editor.get(LIST))
    assert editor.post(LIST, {"kind": "auto", "path": str(tmp_path / "a.yaml")}).status_code == 403


def test_polling_ends_with_the_report(admin, config, send):
    send(admin, config)
    batch = ImportBatch.objects.get()
    answer = admin.get(f"/import/{batch.pk}/", headers={"HX-Request": "true", "HX-Target": "import-body"})
    assert answer["HX-Redirect"] == f"/import/{batch.pk}/"
    ImportBatch.objects.filter(pk=batch.pk).update(state="reading", job=None)
    answer = admin.get(f"/import/{batch.pk}/", headers={"HX-Request": "true", "HX-Target": "import-body"})
    assert 'hx-trigger="every 2s"' in text_of(answer)


def test_pages_ask_few_questions(admin, config, send, host):
    send(admin, config)
    batch = ImportBatch.objects.get()
    for number in range(30):
        ImportBatch.objects.create(host=host, name=f"{number}.yaml", state="read", created_at=timezone.now())
    for url in (LIST, f"/import/{batch.pk}/"):
        with CaptureQueriesContext(connection) as asked:
            assert admin.get(url).status_code == 200
        assert len(asked) <= 12, [query["sql"][:90] for query in asked]


def test_the_review_names_fragments_and_their_authors(admin, config, send, take):
    take(admin, text_of(send(admin, config)))
    page = text_of(admin.get("/config/local/review/"))
    assert "Raw fragments" in page
    assert re.search(r"box: <span[^>]*>cmd, cmdStop<.*?admin", page, re.S)
    assert "sk-do-not-show-me" not in page


@pytest.mark.parametrize("url", ["/config/local/", "/config/local/?tab=text", "/config/local/review/?tab=text"])
def test_imported_keys_are_masked_in_every_text(as_role, admin, config, send, take, url):
    take(admin, text_of(send(admin, config)))
    page = text_of(as_role("viewer").get(url))
    assert "apiKeys" in page
    assert "sk-do-not-show-me" not in page
