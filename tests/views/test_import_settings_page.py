"""Settings files through the page: an exported archive in, its report, taken over, taken back."""

from __future__ import annotations

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from gpus_app.models import HostSetting
from gpus_app.selectors import get_host
from models_app.models import ImportBatch, Override, Row
from models_app.selectors.host_files import export_archive, export_texts
from tests.views.conftest import run
from tests.views.test_import import followed, text_of, ticked

LIST = "/import/on/local/"


@pytest.fixture
def send(django_capture_on_commit_callbacks):
    def upload(client, name, data, kind="settings"):
        form = {"kind": kind, "file": SimpleUploadedFile(name, data)}
        return followed(client, run(django_capture_on_commit_callbacks, lambda: client.post(LIST, form)))

    return upload


def test_an_archive_comes_in_and_goes_again(scanned, admin, send, django_capture_on_commit_callbacks):
    row = Row.objects.filter(model_class="llm").first()
    Override.objects.create(host=scanned, match=row.path, fields={"temp": 0.25}, version=1)
    Override.objects.create(host=scanned, match="*qwen3*", fields={"unlisted": True}, position=1, version=1)
    HostSetting.objects.create(host=scanned, section="advanced", values={"threads": 3}, version=1)
    data, texts = export_archive(get_host("local"), with_secrets=True), export_texts(get_host("local"))
    page = text_of(send(admin, "all.zip", data))
    assert "nothing here is new" in page.lower()
    Override.objects.all().delete()
    HostSetting.objects.filter(section="advanced").delete()
    page = text_of(send(admin, "all.zip", data))
    batch = ImportBatch.objects.order_by("-pk").first()
    assert f"{row.file_name}: Temperature" in page
    assert "rule *qwen3*" in page
    form = ticked(page)
    answer = run(django_capture_on_commit_callbacks, lambda: admin.post(f"/import/{batch.pk}/apply/", form))
    assert "Taken over" in text_of(followed(admin, answer))
    after = export_texts(get_host("local"))
    assert {name: after[name] for name in after if name != "config.yaml"} == {
        name: texts[name] for name in texts if name != "config.yaml"
    }
    run(django_capture_on_commit_callbacks, lambda: admin.post(f"/import/{batch.pk}/undo/"))
    assert not Override.objects.exists()
    assert HostSetting.objects.get(section="advanced").values == {}


def test_faults_and_bad_archives_are_told_on_the_page(scanned, admin, send):
    page = text_of(send(admin, "mine.yaml", b"settings:\n  threads: many\n  threds: 1\n"))
    assert "Cannot be used: expected a number." in page
    assert "is threads meant?" in page
    assert "line 2" in text_of(send(admin, "mine.yaml", b"settings: [\n"))
    assert "cannot be read" in text_of(send(admin, "all.zip", b"PK\x03\x04 nothing"))
