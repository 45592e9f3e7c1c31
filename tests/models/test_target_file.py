"""Writing the router's file: whole or not at all, never over somebody else's."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import sys
from pathlib import Path

import pytest

from models_app.core.export.stamp import stamped
from models_app.host_tasks import write_config
from models_app.target_file import Drift, FilesGone, ForeignFile, TargetRefused, require_files, write_target
from quartermaster_site.jobs import marks

TEXT = "# one\n# two\n# three\nmodels: {}\n"


def sha(text):
    return hashlib.sha256(text.encode()).hexdigest()


def text_of(number, body="models: {}\n"):
    return stamped(f"# one\n# two\n# three\n{body}", host="local", revision=number)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "config.yaml"


def write(path, text, expected="", adopt=False):
    return write_target(str(path), text, sha256=sha(text), expected_sha256=expected, adopt=adopt)


def test_a_new_file(path):
    written = write(path, text_of(1))
    assert path.read_text() == text_of(1)
    assert written.sha256 == sha(text_of(1))
    assert written.backup == ""
    assert not list(path.parent.glob(".*"))


def test_mode_and_link_are_kept(path, tmp_path):
    real = tmp_path / "elsewhere.yaml"
    real.write_text(text_of(1))
    real.chmod(0o604)
    path.symlink_to(real)
    written = write(path, text_of(2), expected=sha(text_of(1)))
    assert path.is_symlink()
    assert real.read_text() == text_of(2)
    assert stat.S_IMODE(real.stat().st_mode) == 0o604
    assert written.path == str(real)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_the_owner_is_kept(path):
    path.write_text(text_of(1))
    os.chown(path, 12345, 12346)
    write(path, text_of(2), expected=sha(text_of(1)))
    assert (path.stat().st_uid, path.stat().st_gid) == (12345, 12346)


def test_the_newest_five_backups_stay(path):
    for number in range(1, 9):
        write(path, text_of(number), expected=sha(text_of(number - 1)) if number > 1 else "")
    backups = sorted(entry.name for entry in path.parent.glob("config.yaml.bak-*"))
    assert backups == [f"config.yaml.bak-{number}" for number in range(3, 8)]
    assert (path.parent / "config.yaml.bak-7").read_text() == text_of(7)


def test_a_file_that_was_removed_is_not_made_again_without_a_word(path):
    write(path, text_of(1))
    path.unlink()
    with pytest.raises(Drift, match="was removed"):
        write(path, text_of(2), expected=sha(text_of(1)))
    assert not path.exists()
    write(path, text_of(2), expected="")
    assert path.read_text() == text_of(2)


def test_the_same_bytes_are_not_written_again(path):
    write(path, text_of(1))
    before = path.stat().st_mtime_ns
    assert write(path, text_of(1), expected=sha(text_of(1))).backup == ""
    assert path.stat().st_mtime_ns == before


def test_a_file_that_is_not_ours_is_kept(path):
    path.write_text("models: {mine: {cmd: x}}\n")
    with pytest.raises(ForeignFile, match="not written by Quartermaster"):
        write(path, text_of(1))
    assert path.read_text() == "models: {mine: {cmd: x}}\n"


def test_unless_somebody_adopts_it(path):
    path.write_text("models: {mine: {cmd: x}}\n")
    written = write(path, text_of(1), adopt=True)
    assert path.read_text() == text_of(1)
    assert "mine" in Path(written.backup).read_text()


def test_a_hand_edit_is_kept(path):
    write(path, text_of(1))
    path.write_text(path.read_text() + "# mine\n")
    with pytest.raises(Drift, match="changed since it was written .*revision 1"):
        write(path, text_of(2), expected=sha(text_of(1)))
    assert path.read_text().endswith("# mine\n")


def test_our_own_untouched_file_of_an_earlier_installation_is_taken_up(path):
    path.write_text(text_of(7))
    write(path, text_of(1))
    assert path.read_text() == text_of(1)


def test_a_damaged_text_is_not_written(path):
    with pytest.raises(TargetRefused, match="damaged on the way"):
        write_target(str(path), text_of(1), sha256="0" * 64, expected_sha256="", adopt=False)
    assert not path.exists()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: path.mkdir(), "not a regular file"),
        (lambda path: os.mkfifo(path), "not a regular file"),
    ],
)
def test_only_files_are_written(path, make, message):
    make(path)
    with pytest.raises(TargetRefused, match=message):
        write(path, text_of(1))


def test_a_missing_folder_is_not_made(path):
    with pytest.raises(TargetRefused, match="does not exist"):
        write(path.parent / "nowhere" / "config.yaml", text_of(1))


def test_a_relative_path_is_refused():
    with pytest.raises(TargetRefused, match="not an absolute path"):
        write("config.yaml", text_of(1))


def test_a_file_that_cannot_be_renamed_is_rewritten(path, monkeypatch):
    path.write_text(text_of(1) + "x" * 1000)
    inode = path.stat().st_ino

    def busy(*args):
        raise OSError(errno.EBUSY, "busy")

    monkeypatch.setattr("models_app.core.export.target.os.replace", busy)
    written = write(path, text_of(2), adopt=True)
    assert written.in_place
    assert path.stat().st_ino == inode
    assert path.read_text() == text_of(2)


def test_a_full_disk_leaves_the_old_file(path, monkeypatch):
    write(path, text_of(1))

    def full(*args):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("models_app.core.export.target.os.replace", full)
    with pytest.raises(TargetRefused, match="No space left"):
        write(path, text_of(2), expected=sha(text_of(1)))
    assert path.read_text() == text_of(1)
    assert not list(path.parent.glob(".config*"))


def test_half_a_backup_is_no_backup(path, monkeypatch):
    write(path, text_of(1))

    def full(source, target):
        target.write_text("half")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("models_app.target_file.shutil.copy2", full)
    with pytest.raises(TargetRefused, match=r"bak-1 cannot be written: No space left"):
        write(path, text_of(2), expected=sha(text_of(1)))
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_a_file_that_is_rewritten_gets_its_old_text_back_when_the_disk_is_full(path, monkeypatch):
    write(path, text_of(1))

    def busy(*args):
        raise OSError(errno.EBUSY, "busy")

    def full(descriptor):
        if path.read_text() != text_of(1):
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("models_app.core.export.target.os.replace", busy)
    monkeypatch.setattr("models_app.target_file.os.fsync", full)
    with pytest.raises(TargetRefused, match="No space left"):
        write(path, text_of(2), expected=sha(text_of(1)))
    assert path.read_text() == text_of(1)


def test_files_that_a_text_needs_are_written_before_it(path, monkeypatch):
    seen = []

    def replaces(target, data):
        seen.append((path.parent / "keys" / "a.keys").read_text())
        return False

    companions = [("keys/a.keys", "one\n"), ("b.json", "{}")]
    with monkeypatch.context() as patch:
        patch.setattr("models_app.target_file._replace", lambda target, data, current: replaces(target, data))
        text = text_of(1)
        write_target(str(path), text, sha256=sha(text), expected_sha256="", adopt=False, companions=companions)
    assert seen == ["one\n"]
    assert (path.parent / "keys" / "a.keys").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("name", ["../up", "/etc/passwd", "a/../../b", "", "C:\\x", "c:x"])
def test_a_file_beside_it_stays_beside_it(path, name):
    text = text_of(1)
    with pytest.raises(TargetRefused, match="no name of a file"):
        write_target(str(path), text, sha256=sha(text), expected_sha256="", adopt=False, companions=[(name, "x")])
    assert not path.exists()


def test_nothing_beside_a_strangers_file_is_written(path):
    path.write_text("models: {}\n")
    text = text_of(1)
    with pytest.raises(ForeignFile):
        write_target(str(path), text, sha256=sha(text), expected_sha256="", adopt=False, companions=[("a", "x")])
    assert not (path.parent / "a").exists()


def test_a_write_that_was_cancelled_before_it_began_is_none(path, tmp_path, monkeypatch):
    """The wish comes behind the order in the same queue."""
    monkeypatch.setenv("QM_DATA_DIR", str(tmp_path / "worker"))
    said = []
    monkeypatch.setattr("quartermaster_site.jobs.reporting.send", lambda task, queue, event: said.append(event))
    monkeypatch.setattr("models_app.target_file.require_files", lambda paths: marks.leave(7))
    inputs = {"path": str(path), "text": text_of(1), "sha256": sha(text_of(1)), "expected_sha256": "", "adopt": False}
    write_config(7, "token", inputs)
    assert said[-1]["kind"] == "cancelled"
    assert not path.exists()


def test_files_that_must_be_there(tmp_path):
    there = tmp_path / "my model.gguf"
    there.touch()
    require_files([str(there), f"{sys.executable} server.py", str(tmp_path)])
    with pytest.raises(FilesGone, match=r"none.gguf, .* and 1 more"):
        require_files([f"{tmp_path}/none.gguf", "/nowhere/a b", "/nowhere/c", "/nowhere/d"])
