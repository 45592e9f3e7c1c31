"""What is set for a host as files: complete, the same bytes each time, and of the same meaning without the product."""

from __future__ import annotations

import argparse
import csv
import io
import zipfile
from datetime import UTC, datetime

import pytest

from gpus_app.core.readings import MachineReading, MemoryReading
from gpus_app.models import Backend, Device, Host, HostSetting
from gpus_app.selectors import get_host, readings
from gpus_app.services import request_plan, save_device_settings, save_memory_settings, save_watch_settings
from models_app import convert
from models_app.core.export.stamp import body_of
from models_app.core.settings import Override as CoreOverride
from models_app.core.settings_files.files import FolderSpec, read_generate_file, read_sidecar
from models_app.core.settings_files.table import overrides_table, safe_cell
from models_app.core.verbs import generate as verb
from models_app.core.verbs import generate_inputs
from models_app.core.verbs.environment import Environment
from models_app.models import Fragment, Override, Revision, Root, Row
from models_app.selectors.host_files import export_archive, export_texts, host_files
from models_app.services import add_variant, save_override
from models_app.services.sections import save_fleet_section
from quartermaster_site.access.audit import Actor
from tests.kept_rows import KeptRows

GIB = 1 << 30
GENERATE, SIDECAR, TABLE = "quartermaster-generate.yaml", "quartermaster-overrides.yaml", "overrides.csv"


@pytest.fixture
def do(django_capture_on_commit_callbacks):
    def run(call, **arguments):
        with django_capture_on_commit_callbacks(execute=True):
            return call(**arguments)

    return run


@pytest.fixture(scope="session")
def all_that_is_set():
    return KeptRows()


@pytest.fixture
def settled(scanned, host, do, actor, all_that_is_set):
    """A host on which something of every kind is set."""
    all_that_is_set.store(lambda: settle(host, do, actor), actor.user.pk)
    return get_host(host.slug)


def settle(host, do, actor):
    Device.objects.create(
        host=host, index=0, name="RTX 3090", vendor="nvidia", total_bytes=24 * GIB, free_bytes=23 * GIB
    )
    Device.objects.create(
        host=host, index=1, name="RTX 3060", vendor="nvidia", total_bytes=12 * GIB, free_bytes=11 * GIB
    )
    Host.objects.filter(pk=host.pk).update(ram_total_bytes=64 * GIB, ram_available_bytes=50 * GIB)
    host = get_host(host.slug)
    memory = {"targetVramGB": 1.5, "maxRamGB": 12.0, "vramOverheadGB": 0.25, "ttlSec": 0}
    do(save_memory_settings, host=host, values=memory, version=0, actor=actor)
    devices = {"deviceReserveGB": {"0": 2.0}, "devicePreference": {"0": "last"}}
    do(save_device_settings, host=host, values=devices, version=0, actor=actor)
    save_watch_settings(host=host, seconds=0, version=0, actor=actor)
    sections = {
        "guards": {"oomGuardGraceSec": 60},
        "kv": {"kvQuant": "q8_0", "slotCache": {"enable": True, "path": "/slots"}},
        "advanced": {"threads": 5, "healthCheckTimeout": 77},
        "groups": {"groups": [{"name": "small", "match": ["beta*"], "listen": "127.0.0.1:9100"}]},
        "names": {"displayNames": {"beta-2b-q4_0": "Beta"}},
        "enhancers": {"promptEnhancers": [{"model": "x", "systemPrompt": " two\n lines \n"}]},
    }
    for name, values in sections.items():
        do(save_fleet_section, host=host, section=name, values=values, version=0, actor=actor)
    HostSetting.objects.create(host=host, section="variants", values={"defaultVariants": [{"name": "game", "temp": 0}]})
    Backend.objects.create(host=host, slug="mine", kind="llama", path="/opt/llama-server", starred=True)
    beta = Row.objects.get(file_name="beta-2b-Q4_0.gguf")
    do(save_override, row=beta, values={"ctx": 1024, "customArgs": "--api-key abcdefgh1234"}, version=0, actor=actor)
    do(add_variant, row=beta, name="cold", values={"temp": 0.0, "flashAttn": "off"}, actor=actor)
    Override.objects.create(host=host, match="*alpha*", quant="Q8_0", fields={"unlisted": True}, position=2, version=1)
    Override.objects.create(host=host, match="*alpha*", fields={"ctx": 512}, position=1, version=1)
    Fragment.objects.create(host=host, fields={"logLevel": "debug"}, version=1)
    entry = {"cmd": "run-it ${PORT}", "ttl": 5, "env": ["A=on"], "metadata": {"yes": [1, None, {"x": 1e-05}]}}
    Fragment.objects.create(host=host, served_id="mine", fields=entry, version=1)
    do(request_plan, host=host, actor=Actor())


def read_back(texts):
    generate, sidecar = read_generate_file(texts[GENERATE].encode()), read_sidecar(texts[SIDECAR].encode())
    assert (generate.errors, generate.unknown, sidecar.errors, sidecar.unknown) == ((), (), (), ())
    return generate.content, sidecar.content


def test_the_files_say_what_is_set_and_no_more(host):
    texts = export_texts(host)
    assert list(texts) == [GENERATE, SIDECAR, TABLE]
    generate, sidecar = read_back(texts)
    assert not generate.settings
    assert sidecar == type(sidecar)()


def test_everything_comes_back(settled):
    texts = export_texts(settled, with_secrets=True)
    files = host_files(settled)
    assert read_back(texts) == (files.generate, files.sidecar)
    assert [row.match for row in files.generate.overrides] == ["*alpha*", "*alpha*"]
    assert [row.quant for row in files.generate.overrides] == ["", "Q8_0"]
    (row,) = files.sidecar.overrides
    assert (row.ctx, row.variants[0].temp, row.variants[0].flash_attn) == (1024, 0.0, "off")
    assert files.sidecar.app.watch_models is False
    assert files.sidecar.prompt_enhancers[0].system_prompt == " two\n lines \n"
    assert export_texts(settled, with_secrets=True) == texts


def test_without_the_product_the_same_is_planned(settled, tmp_path, monkeypatch):
    """The exported files through `generate --settings`, on a machine with the same devices."""
    for name, text in export_texts(settled, with_secrets=True).items():
        (tmp_path / name).write_text(text)
    seen = MachineReading(tuple(readings(settled)), MemoryReading(total_bytes=64 * GIB, available_bytes=50 * GIB))
    monkeypatch.setattr(generate_inputs.machine, "read_machine", lambda: seen)
    out, err = io.StringIO(), io.StringIO()
    parser = argparse.ArgumentParser()
    verb.add_arguments(parser)
    words = ["--settings", str(tmp_path / GENERATE), "--dialect", settled.publish_dialect, "-o", "-"]
    environment = Environment(tmp_path / "data", datetime(2026, 11, 30, tzinfo=UTC), out, err)
    assert verb.run(parser.parse_args(words), environment) == 0, err.getvalue()
    newest = Revision.objects.order_by("-number").first()
    body = "".join(newest.text.splitlines(keepends=True)[4:])
    assert "game" in body
    assert "run-it" in body
    assert "/opt/llama-server" in body
    assert body_of(out.getvalue()) == body


def test_secrets_are_masked_unless_they_are_asked_for(settled):
    texts = export_texts(settled)
    assert "abcdefgh1234" not in "".join(texts.values())
    assert "--api-key abcd…" in texts[SIDECAR]
    assert "masked" in texts[SIDECAR].splitlines()[1]
    assert "abcdefgh1234" in export_texts(settled, with_secrets=True)[SIDECAR]
    assert "abcdefgh1234" in export_texts(settled, with_secrets=True)["config.yaml"]


def test_several_folders_of_a_category_are_all_said(settled, tmp_path):
    first = settled.roots.get().path
    assert host_files(settled).generate.own.folders == ()
    Root.objects.create(host=settled, path="/two")
    Root.objects.create(host=settled, path="/images", category="image")
    files = host_files(get_host(settled.slug))
    assert files.generate.settings["modelsRoot"] == first
    assert files.generate.settings["categoryRoots"] == {"image": "/images"}
    assert files.generate.own.folders == (FolderSpec(first), FolderSpec("/two"), FolderSpec("/images", "image"))


def test_the_table_has_a_line_for_every_setting(settled):
    lines = list(csv.DictReader(io.StringIO(export_texts(settled)[TABLE])))
    assert [(line["variant"], line["setting"], line["value"]) for line in lines] == [
        ("", "ctx", "1024"),
        ("", "customArgs", "'--api-key abcd…"),
        ("cold", "temp", "0"),
        ("cold", "flashAttn", "off"),
        ("", "ctx", "512"),
        ("", "unlisted", "on"),
    ]
    assert [line["models"] for line in lines][0] == "beta-2b-q4_0"
    assert lines[4]["models"] == "alpha-1b-q4_0 alpha-1b-q8_0"
    assert lines[5]["models"] == ""


@pytest.mark.parametrize("text", ["=1+1", "+1+cmd", "-1+1", "@x", "\t=1", "  =1", "\r=1", "＝1", "-"])
def test_no_cell_is_a_formula(text):
    assert safe_cell(text) == f"'{text}"
    (line,) = list(csv.reader(io.StringIO(overrides_table([CoreOverride(match=text)], lambda row: [text]))))[1:]
    assert not any(cell.lstrip().startswith(("=", "+", "-", "@")) for cell in line)


@pytest.mark.parametrize("text", ["-1", "0.5", "-0.25", "a=b", "*qwen*", ""])
def test_numbers_and_words_stay_as_they_are(text):
    assert safe_cell(text) == text


def test_the_archive_has_the_same_bytes_each_time(settled):
    data = export_archive(settled)
    assert export_archive(settled) == data
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.namelist() == [f"local/{name}" for name in ("config.yaml", GENERATE, SIDECAR, TABLE)]
        assert archive.testzip() is None
        assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        assert archive.read(f"local/{TABLE}").decode() == export_texts(settled)[TABLE]
    assert convert.core_settings(settled).threads == 5
