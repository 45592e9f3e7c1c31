"""The page Export and the command of that name: who gets what, and that nothing secret leaves by itself."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.urls import reverse

from gpus_app.models import Host
from models_app.models import Override, Row
from models_app.selectors.host_files import export_texts
from quartermaster_site.access.models import AuditEntry

NAMES = ["config.yaml", "quartermaster-generate.yaml", "quartermaster-overrides.yaml", "overrides.csv"]
SECRET = "abcdefgh12345678"


@pytest.fixture
def pinned(scanned):
    row = Row.objects.filter(model_class="llm").first()
    Override.objects.create(host=scanned, match=row.path, fields={"customArgs": f"--api-key {SECRET}"}, version=1)
    return scanned


def address(host, name=""):
    return (
        reverse("models:export-file", args=[host.slug, name])
        if name
        else reverse("models:export-show", args=[host.slug])
    )


def test_a_viewer_gets_every_file_without_secrets(pinned, viewer, django_assert_max_num_queries):
    with django_assert_max_num_queries(21):
        text = viewer.get(address(pinned)).content.decode()
    assert "with secrets" not in text
    for name in NAMES:
        assert f'href="{address(pinned, name)}"' in text
        answer = viewer.get(address(pinned, name))
        assert answer["Content-Disposition"] == f'attachment; filename="{name}"'
        assert answer.content.decode() == export_texts(pinned)[name]
        assert SECRET not in answer.content.decode()
    archive = viewer.get(address(pinned, "quartermaster-local.zip"))
    assert archive["Content-Type"] == "application/zip"
    with zipfile.ZipFile(io.BytesIO(archive.content)) as files:
        assert files.namelist() == [f"local/{name}" for name in NAMES]


def test_secrets_are_for_administrators_and_recorded(pinned, as_role, admin):
    url = address(pinned, "quartermaster-local.zip")
    for role in ("viewer", "operator", "editor"):
        assert as_role(role).post(url).status_code == 403
    assert not AuditEntry.objects.filter(action="config.export-secrets").exists()
    assert SECRET.encode() not in admin.get(url).content
    assert SECRET.encode() in admin.post(url).content
    assert AuditEntry.objects.get(action="config.export-secrets").host_slug == "local"
    assert "with secrets" in admin.get(address(pinned)).content.decode()


@pytest.mark.parametrize("name", ["nothing.yaml", "..", "quartermaster-other.zip"])
def test_there_are_no_other_files(pinned, viewer, name):
    assert viewer.get(address(pinned).rstrip("/") + f"/{name}").status_code == 404


def test_before_anything_is_planned_the_settings_can_be_had(host, viewer):
    text = viewer.get(address(host)).content.decode()
    assert "config.yaml" not in text
    assert viewer.get(address(host, "config.yaml")).status_code == 404
    assert viewer.get(address(host, NAMES[1])).status_code == 200


def test_the_command_does_what_the_page_does(pinned, viewer, tmp_path, capfdbinary):
    said = io.StringIO()
    call_command("export_files", "local", "-o", str(tmp_path / "all"), stdout=said)
    assert {path.name: path.read_bytes().decode() for path in (tmp_path / "all").iterdir()} == export_texts(pinned)
    assert said.getvalue().split() == [str(tmp_path / "all" / name) for name in NAMES]
    call_command("export_files", "-o", str(tmp_path / "all.zip"), stdout=said)
    assert (tmp_path / "all.zip").read_bytes() == viewer.get(address(pinned, "quartermaster-local.zip")).content
    call_command("export_files", "--file", NAMES[2], "--with-secrets", "-o", str(tmp_path / "one"), stdout=said)
    assert SECRET in (tmp_path / "one").read_text()
    assert AuditEntry.objects.get(action="config.export-secrets").actor == "command line"


def test_the_command_says_what_is_wrong(pinned, tmp_path):
    with pytest.raises(CommandError, match="choose one of config.yaml"):
        call_command("export_files", "--file", "x", "-o", str(tmp_path))
    with pytest.raises(CommandError, match="there is no host 'x': local"):
        call_command("export_files", "x", "-o", str(tmp_path))
    Host.objects.create(slug="other", name="Other")
    with pytest.raises(CommandError, match="name the host: local, other"):
        call_command("export_files", "-o", str(tmp_path))
    assert list(Path(tmp_path).iterdir()) == []
