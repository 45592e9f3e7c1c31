"""Folders and files that go away between being listed and being read: nothing that is known is lost."""

from __future__ import annotations

import os

import pytest

from models_app import scanning
from models_app.core.errors import SourceUnreadable
from models_app.models import Component, Finding, HeaderFacts, Root, Row
from models_app.services import register_root
from quartermaster_site.access.audit import Actor
from tests.tiny_models import tiny_gguf

KNOWN = ("alpha-1b-Q4_0.gguf", "alpha-1b-Q8_0.gguf", "beta-2b-Q4_0.gguf")


def states():
    return dict(Row.objects.values_list("file_name", "state"))


def facts():
    return {row.path: (row.facts, row.size_bytes, row.mtime_ns) for row in HeaderFacts.objects.all()}


def columns():
    names = ("path", "model_class", "architecture", "quant_label", "model_key", "served_id", "found")
    return list(Row.objects.order_by("path").values(*names))


@pytest.fixture
def at_read(monkeypatch):
    """`at_read(2, action)`: the action happens just before the second header is read."""
    real = scanning.read_candidate

    def arrange(number, action):
        count = 0

        def read(candidate, cache):
            nonlocal count
            count += 1
            if count == number:
                action()
            return real(candidate, cache)

        monkeypatch.setattr("models_app.scanning.read_candidate", read)

    return arrange


def touch_all(folder):
    """Every header is due again."""
    for path in folder.rglob("*.gguf"):
        status = path.stat()
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 1_000_000_000))


def test_a_root_that_goes_away_while_it_is_read(scanned, scan, folder, at_read):
    before, rows = facts(), columns()
    tiny_gguf(folder / "gamma-3b-Q4_0.gguf", name="Gamma")
    touch_all(folder)
    away = folder.with_name("unplugged")
    at_read(1, lambda: folder.rename(away))
    job = scan()
    assert Root.objects.get().state == "missing"
    assert states() == dict.fromkeys(KNOWN, "offline")
    assert (facts(), columns()) == (before, rows)
    assert (job.result["offline"], job.result["missing"]) == (3, 0)
    assert list(Finding.objects.values_list("kind", "path")) == [("root-missing", str(folder))]
    away.rename(folder)
    assert not scan().result["unchanged"]
    assert set(states().values()) == {"present"}
    assert len(states()) == 4
    assert not Finding.objects.exists()


def test_one_that_goes_away_half_way_through(scanned, scan, folder, at_read, monkeypatch):
    """Rows were sent before: they are as much out of reach as the others."""
    monkeypatch.setattr(scanning, "_INTERIM_SECONDS", 0.0)
    monkeypatch.setattr(scanning, "_INTERIM_SHARE", 0)
    rows = columns()
    touch_all(folder)
    at_read(3, lambda: folder.rename(folder.with_name("unplugged")))
    scan()
    assert Root.objects.get().state == "missing"
    assert set(states().values()) == {"offline"}
    assert [row["model_class"] for row in columns()] == [row["model_class"] for row in rows]
    assert all(row.facts for row in HeaderFacts.objects.all())


def test_one_that_goes_away_after_the_last_file(scanned, scan, folder, monkeypatch):
    touch_all(folder)
    real = scanning.survey
    monkeypatch.setattr(scanning, "survey", lambda *given: real(*given))
    monkeypatch.setattr(
        scanning.Scan, "_send_headers", lambda self: folder.exists() and folder.rename(folder.with_name("unplugged"))
    )
    scan()
    assert Root.objects.get().state == "missing"
    assert set(states().values()) == {"offline"}


def test_an_unmounted_drive_leaves_an_empty_folder(scanned, scan, folder, at_read):
    before = facts()
    touch_all(folder)

    def unmount():
        folder.rename(folder.with_name("drive"))
        folder.mkdir()

    at_read(2, unmount)
    scan()
    root = Root.objects.get()
    assert root.state == "unreadable"
    assert "another folder" in root.state_reason
    assert set(states().values()) == {"offline"}
    assert facts().keys() == before.keys()
    assert all(row.facts for row in HeaderFacts.objects.all())


def test_a_folder_in_the_place_of_another_is_not_taken_for_it(scanned, scan, folder, at_read):
    """Files of the same names that are no models at all."""
    before, rows = facts(), columns()
    touch_all(folder)

    def replace():
        folder.rename(folder.with_name("drive"))
        folder.mkdir()
        for name in KNOWN:
            (folder / name).write_bytes(b"GGUF\x63\0\0\0")

    at_read(1, replace)
    scan()
    assert set(states().values()) == {"offline"}
    assert (facts(), columns()) == (before, rows)


def test_a_folder_below_the_root_that_goes_away(scanned, scan, folder, at_read):
    (folder / "a-drive").mkdir()
    tiny_gguf(folder / "a-drive" / "gamma-3b-Q4_0.gguf", name="Gamma")
    scan()
    before = facts()
    touch_all(folder / "a-drive")
    at_read(1, lambda: (folder / "a-drive").rename(folder.parent / "unplugged"))
    # Files of the root come first or last: whichever is read, the folder is away by then.
    touch_all(folder / "a-drive")
    scan()
    assert states() == {**dict.fromkeys(KNOWN, "present"), "gamma-3b-Q4_0.gguf": "offline"}
    assert Root.objects.get().state == "partial"
    assert facts() == before
    assert list(Finding.objects.values_list("kind", "path")) == [("folder-unreadable", str(folder / "a-drive"))]


def test_a_folder_that_is_closed_while_it_is_read(scanned, scan, folder, monkeypatch):
    inner = folder / "inner"
    inner.mkdir()
    tiny_gguf(inner / "gamma-3b-Q4_0.gguf", name="Gamma")
    scan()
    before = facts()
    touch_all(folder)
    real_scandir, real_read = os.scandir, scanning.read_candidate

    def closed(path):
        if str(path) == str(inner):
            raise PermissionError(13, "Permission denied", str(path))
        return real_scandir(path)

    def read(candidate, cache):
        monkeypatch.setattr(os, "scandir", closed)
        if candidate.path.startswith(str(inner)):
            return SourceUnreadable("unreadable", "Permission denied", path=candidate.path)
        return real_read(candidate, cache)

    monkeypatch.setattr("models_app.scanning.read_candidate", read)
    scan()
    assert states()["gamma-3b-Q4_0.gguf"] == "offline"
    assert states()["alpha-1b-Q4_0.gguf"] == "present"
    path = str(inner / "gamma-3b-Q4_0.gguf")
    assert facts()[path] == before[path]


def test_one_file_that_goes_away_is_missing(scanned, scan, folder, at_read):
    before = facts()
    touch_all(folder)
    at_read(1, (folder / "beta-2b-Q4_0.gguf").unlink)
    scan()
    assert states() == {**dict.fromkeys(KNOWN, "present"), "beta-2b-Q4_0.gguf": "missing"}
    path = str(folder / "beta-2b-Q4_0.gguf")
    assert facts()[path] == before[path]
    assert Root.objects.get().state == "ok"


def test_a_file_that_cannot_be_opened_keeps_what_is_known(scanned, scan, folder, monkeypatch):
    before, rows = facts(), columns()
    tiny_gguf(folder / "gamma-3b-Q4_0.gguf", name="Gamma")
    real = scanning.read_candidate

    def read(candidate, cache):
        if "beta" in candidate.path:
            return SourceUnreadable("unreadable", "Input/output error", path=candidate.path)
        return real(candidate, cache)

    with monkeypatch.context() as patch:
        patch.setattr("models_app.scanning.read_candidate", read)
        scan()
    row = Row.objects.get(file_name="beta-2b-Q4_0.gguf")
    assert (row.state, row.state_reason) == ("unreadable", "Input/output error")
    assert facts()[row.path] == before[row.path]
    assert [item for item in columns() if "gamma" not in item["path"]] == rows
    scan()
    assert set(states().values()) == {"present"}
    assert not HeaderFacts.objects.exclude(error="").exists()


def test_a_component_that_cannot_be_opened_is_kept(host, tmp_path, scan, monkeypatch):
    models = tmp_path / "models"
    models.mkdir()
    tiny_gguf(models / "t5xxl-Q8_0.gguf", name="T5", architecture="t5encoder")
    tiny_gguf(models / "alpha-1b-Q4_0.gguf", name="Alpha 1B")
    register_root(host=host, path=str(models), actor=Actor())
    scan()
    known = set(Component.objects.values_list("path", flat=True))
    assert str(models / "t5xxl-Q8_0.gguf") in known
    touch_all(models)
    refused = SourceUnreadable("unreadable", "Input/output error")
    monkeypatch.setattr("models_app.scanning.read_candidate", lambda candidate, cache: refused)
    monkeypatch.setattr("models_app.scanning.read_component", lambda path, cache: refused)
    scan()
    assert set(Component.objects.values_list("path", flat=True)) == known


def test_a_link_to_a_drive_that_is_away(host, tmp_path, scan):
    """The link is there: whether it leads to a file or to a folder, nothing says that its models are gone."""
    models, drive = tmp_path / "models", tmp_path / "drive"
    models.mkdir()
    (drive / "more").mkdir(parents=True)
    tiny_gguf(drive / "more" / "alpha-1b-Q4_0.gguf", name="Alpha 1B")
    tiny_gguf(drive / "more" / "t5xxl-Q8_0.gguf", name="T5", architecture="t5encoder")
    tiny_gguf(drive / "beta-2b-Q4_0.gguf", name="Beta 2B")
    (models / "linked").symlink_to(drive / "more")
    (models / "beta-2b-Q4_0.gguf").symlink_to(drive / "beta-2b-Q4_0.gguf")
    register_root(host=host, path=str(models), actor=Actor())
    scan()
    before, known = states(), set(Component.objects.values_list("path", flat=True))
    assert set(before.values()) == {"present"}
    assert str(models / "linked" / "t5xxl-Q8_0.gguf") in known
    drive.rename(tmp_path / "unplugged")
    scan()
    assert states() == dict.fromkeys(before, "offline")
    assert set(Component.objects.values_list("path", flat=True)) == known
    (tmp_path / "unplugged").rename(drive)
    scan()
    assert states() == before
