"""Writing a file at once: the old text or the new one, never a part."""

from __future__ import annotations

import os
import stat

import pytest

from models_app.core.errors import ExportError
from models_app.core.export import target
from models_app.core.export.target import write_companion, write_target

OLD = "# Quartermaster config - generated 1\nbody\n"
NEW = "# Quartermaster config - generated 2\nother\n"


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_new_file_is_private(tmp_path):
    path = tmp_path / "config.yaml"
    assert write_target(str(path), OLD).changed
    assert path.read_text() == OLD
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert names(tmp_path) == ["config.yaml"]


def test_mode_is_kept(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text(OLD)
    path.chmod(0o640)
    written = write_target(str(path), NEW)
    assert (written.changed, written.replaced_foreign) == (True, False)
    assert path.read_text() == NEW
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_only_the_time_changes(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text(OLD)
    before = path.stat()
    assert not write_target(str(path), OLD.replace("generated 1", "generated 2")).changed
    assert (path.read_text(), path.stat().st_mtime_ns) == (OLD, before.st_mtime_ns)


def test_a_link_is_written_through(tmp_path):
    (tmp_path / "real").mkdir()
    real, link = tmp_path / "real" / "config.yaml", tmp_path / "link.yaml"
    real.write_text(OLD)
    link.symlink_to(real)
    assert write_target(str(link), NEW).path == str(real)
    assert link.is_symlink()
    assert real.read_text() == NEW


def test_a_foreign_text_is_said(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text("models: {}\n")
    assert write_target(str(path), NEW).replaced_foreign


def test_a_text_without_a_time_is_ours_too(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text("# Quartermaster config - generated\nbody\n")
    assert not write_target(str(path), NEW).replaced_foreign
    path.write_text("# Quartermaster config - generated\nother\n")
    assert not write_target(str(path), NEW).changed


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_that_nobody_reads_is_an_error(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with pytest.raises(ExportError, match="cannot be written"):
        write_target(str(path), NEW)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert write_target(str(path), NEW).changed
        assert os.read(reader, 1000).decode() == NEW
    finally:
        os.close(reader)


def test_a_model_file_is_never_overwritten(tmp_path):
    path = tmp_path / "model.gguf"
    path.touch()
    os.truncate(path, 1 << 30)
    with pytest.raises(ExportError, match="left alone"):
        write_target(str(path), NEW)


def test_a_device_stays_a_device():
    assert write_target(os.devnull, NEW).changed
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


@pytest.mark.parametrize("step", ["fsync", "replace", "fdopen"])
def test_a_failure_at_any_step_leaves_the_old_text(step, tmp_path, monkeypatch):
    path = tmp_path / "config.yaml"
    path.write_text(OLD)

    def fail(*_arguments, **_keywords):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(target.os, step, fail)
    with pytest.raises(ExportError, match="No space left"):
        write_target(str(path), NEW)
    monkeypatch.undo()
    assert path.read_text() == OLD
    assert names(tmp_path) == ["config.yaml"]


def test_places_that_cannot_hold_a_file(tmp_path):
    for path in (tmp_path, tmp_path / "no" / "folder.yaml", tmp_path / ("x" * 300), "nul\0byte"):
        with pytest.raises(ExportError, match="cannot be written"):
            write_target(str(path), NEW)
    with pytest.raises(ExportError, match="UTF-8"):
        write_target(str(tmp_path / "x"), "\udcff")


def test_a_companion_makes_its_folder(tmp_path):
    path = tmp_path / "audiocpp" / "m.json"
    write_companion(str(path), "{}\n")
    before = path.stat().st_mtime_ns
    write_companion(str(path), "{}\n")
    assert (path.read_text(), path.stat().st_mtime_ns) == ("{}\n", before)
    (tmp_path / "file").write_text("")
    with pytest.raises(ExportError):
        write_companion(str(tmp_path / "file" / "m.json"), "{}")
