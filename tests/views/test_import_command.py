"""`./quartermaster import`: the report on the command line, taking over, undoing, and what is said of faults."""

from __future__ import annotations

import io
import json

import pytest
import yaml
from django.core.management import CommandError, call_command

from gpus_app.models import Device, Host, HostSetting
from models_app.management.commands.import_files import looks_like_settings
from models_app.models import ImportBatch, Override, Root, Row
from models_app.selectors.host_files import export_archive
from models_app.services import start_scan
from quartermaster_site.access.audit import Actor
from tests.tiny_models import tiny_gguf

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def models(host, make_user, tmp_path):
    """A host with one scanned model, and an administrator."""
    make_user("admin")
    Device.objects.create(host=host, index=0, name="card", vendor="nvidia", total_bytes=8 << 30, free_bytes=8 << 30)
    folder = tmp_path / "models"
    folder.mkdir()
    tiny_gguf(folder / "beta-2b-Q4_0.gguf", name="Beta 2B")
    Root.objects.create(host=host, path=str(folder))
    start_scan(host=host, actor=Actor())
    return host


@pytest.fixture
def files(models, tmp_path):
    row = Row.objects.get()
    file, sidecar = tmp_path / "any.yaml", tmp_path / "other.yaml"
    file.write_text("settings:\n  threads: 3\n  threds: 4\n  kvQuant: q9\n")
    sidecar.write_text(yaml.safe_dump({"overrides": [{"match": row.path, "ctx": 1024}]}))
    return file, sidecar


def command(*words):
    said = io.StringIO()
    call_command("import_files", *map(str, words), stdout=said)
    return said.getvalue()


def test_report_take_over_undo(files):
    file, sidecar = files
    said = command(file, "--sidecar", sidecar, "--apply").splitlines()
    assert ["2", "new", "settings.threads"] in [line.split()[:3] for line in said]
    assert "is threads meant?" in "\n".join(said)
    batch = ImportBatch.objects.get()
    assert said[-2:] == [
        f"import {batch.pk}: 2 new, 2 not representable",
        f"taken over: 2 rows; --undo {batch.pk} takes it back",
    ]
    assert HostSetting.objects.get(section="advanced").values == {"threads": 3}
    assert Override.objects.get().fields == {"ctx": 1024}
    again = command(file, "--sidecar", sidecar)
    assert "2 same" in again
    assert command(batch.pk, "--undo") == f"import {batch.pk} is taken back\n"
    assert HostSetting.objects.get(section="advanced").values == {}
    assert not Override.objects.exists()


def test_json_conflicts_and_archives(files, models, tmp_path):
    file, _ = files
    HostSetting.objects.create(host=models, section="advanced", values={"threads": 5}, version=1)
    answer = json.loads(command(file, "local", "--json"))
    assert answer["counts"] == {"conflict": 1, "not representable": 2}
    (item,) = [item for item in answer["items"] if item["status"] == "conflict"]
    assert (item["line"], item["field"], item["value"], item["ours"]) == (2, "threads", "3", "5")
    command(file, "--apply", "--theirs")
    assert HostSetting.objects.get(section="advanced").values == {"threads": 3}
    archive = tmp_path / "all.zip"
    archive.write_bytes(export_archive(Host.objects.get()))
    assert set(json.loads(command(archive, "--json"))["counts"]) == {"same"}


def test_a_routers_file(files, tmp_path):
    config = tmp_path / "config.yaml"
    cmd = f"llama-server --port ${{PORT}} -m {Row.objects.get().path} --temp 0.5"
    config.write_text(yaml.safe_dump({"models": {"beta-2b-q4_0": {"cmd": cmd}}}))
    command(config, "--kind", "llama-swap", "--apply", "--way", "settings")
    assert Override.objects.get().fields["temp"] == 0.5


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("/no/such/file",), "No such file"),
        (("FILE", "nowhere"), "there is no host"),
        (("FILE", "--as", "nobody"), "nobody named"),
        (("77", "--undo"), "there is no import"),
        (("FILE", "--kind", "settings", "--apply"), "Nothing is ticked"),
        (("BROKEN", "--kind", "settings"), "line 2:"),
    ],
)
def test_what_goes_wrong_is_a_sentence(words, message, models, tmp_path):
    (tmp_path / "FILE").write_text("settings: {}\n")
    (tmp_path / "BROKEN").write_text("settings: [\n")
    with pytest.raises(CommandError, match=message):
        command(*(tmp_path / word if word in ("FILE", "BROKEN") else word for word in words))


def test_files_are_told_apart():
    assert looks_like_settings("a.yaml", b"# x\nsettings:\n  a: 1\n")
    assert looks_like_settings("quartermaster-overrides.yaml", b"displayNames: {}\n")
    assert not looks_like_settings("config.yaml", b"models:\n  a:\n    cmd: x\nsettings: 1\n")
