"""The write killed at every step, and failing disks: the file is the old or the new text, whole, and we know which."""

from __future__ import annotations

import errno
import hashlib
import multiprocessing
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from models_app.core.export.stamp import stamped
from models_app.models import Revision, TargetWatch
from models_app.selectors.comparing import live_revision
from models_app.services import start_write
from models_app.target_file import TargetRefused, look, write_target
from quartermaster_site.jobs.models import Job
from quartermaster_site.jobs.sweeping import lose_all

STEPS = ("tempfile.mkstemp", "os.fdopen", "os.fchmod", "os.fchown", "os.fsync", "os.replace", "os.open", "os.close")
FORK = multiprocessing.get_context("fork")


def text_of(number, models=2000):
    body = "models:\n" + "".join(f"  m{n}: {{cmd: x{number}}}\n" for n in range(models))
    return stamped(f"# one\n# two\n# three\n{body}", host="local", revision=number)


def sha(text):
    return hashlib.sha256(text.encode()).hexdigest()


OLD, NEW = text_of(1), text_of(2)
KEYS = [("config.keys", "new\n" * 500)]


def write(path, text=NEW, expected=OLD, companions=()):
    hashes = {"sha256": sha(text), "expected_sha256": sha(expected)}
    return write_target(str(path), text, **hashes, adopt=False, companions=companions)


def write_until(path, calls, after, companions=()):
    """In a process of its own: end hard at the call with this number, before it or right after it."""
    import tempfile

    modules = {"os": os, "tempfile": tempfile, "shutil": shutil}
    left = [calls]

    def deadly(function):
        def run(*args, **kwargs):
            left[0] -= 1
            last = left[0] == 0
            if last and not after:
                os._exit(9)
            result = function(*args, **kwargs)
            if last:
                os._exit(9)
            return result

        return run

    for name in (*STEPS, "shutil.copy2"):
        module, _, function = name.partition(".")
        setattr(modules[module], function, deadly(getattr(modules[module], function)))
    write(path, companions=companions)
    os._exit(0)


@pytest.fixture
def path(tmp_path):
    found = tmp_path / "config.yaml"
    found.write_text(OLD)
    return found


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_killed_at_every_step(path, after):
    outcomes = []
    for calls in range(1, 60):
        path.write_text(OLD)
        child = FORK.Process(target=write_until, args=(path, calls, after))
        child.start()
        child.join(20)
        found = path.read_text()
        assert found in (OLD, NEW), f"step {calls}: neither text"
        assert look(str(path)).sha256 == sha(found)
        outcomes.append(found == NEW)
        assert write(path).sha256 == sha(NEW), "the next try ends well, whatever the first one left"
        assert path.read_text() == NEW
        rest = {entry.name: entry.read_text() for entry in path.parent.iterdir() if entry != path}
        assert all(name.startswith("config.yaml.bak-") for name in rest), "nothing unfinished stays"
        assert set(rest.values()) <= {OLD, NEW}
        if child.exitcode == 0:
            break
    assert child.exitcode == 0
    assert len(outcomes) > 6
    assert outcomes == sorted(outcomes), "once the new text is there it stays"
    assert not outcomes[0]
    assert outcomes[-1]


def test_a_key_file_beside_it_is_whole_at_every_step(path):
    """Killed in between, the new keys may lie beside the old text; half a key file never does."""
    keys = path.with_name("config.keys")
    for calls in range(1, 60):
        path.write_text(OLD)
        keys.write_text("old\n" * 500)
        child = FORK.Process(target=write_until, args=(path, calls, True), kwargs={"companions": KEYS})
        child.start()
        child.join(20)
        assert keys.read_text() in ("old\n" * 500, "new\n" * 500)
        assert path.read_text() in (OLD, NEW)
        if path.read_text() == NEW:
            assert keys.read_text() == "new\n" * 500, "the text never comes before the files that it needs"
        if child.exitcode == 0:
            break
    assert child.exitcode == 0
    assert calls > 12


@pytest.mark.parametrize("step", ["os.fsync", "os.replace", "tempfile.mkstemp", "os.fdopen"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EROFS, errno.EDQUOT])
def test_a_failing_disk_leaves_the_old_text_and_no_rest(path, monkeypatch, step, number):
    def fails(*args, **kwargs):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(f"models_app.core.export.target.{step}", fails)
    with pytest.raises(TargetRefused, match="cannot be written"):
        write(path)
    assert path.read_text() == OLD
    monkeypatch.undo()
    left = {entry.name for entry in path.parent.iterdir()}
    assert left <= {"config.yaml", "config.yaml.bak-1"}
    write(path)
    assert path.read_text() == NEW


@pytest.fixture
def small_disk(tmp_path):
    """A file system of its own with 64 KiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)], capture_output=True)
    if made.returncode:
        pytest.skip("no file system can be mounted here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_disk_that_is_really_full(small_disk):
    path = small_disk / "config.yaml"
    old, new = text_of(1, 100), text_of(2, 4000)
    path.write_text(old)
    with pytest.raises(TargetRefused, match="No space left"):
        write(path, new, old)
    assert path.read_text() == old
    assert [entry.name for entry in small_disk.iterdir() if entry.name.startswith(".")] == []


def test_a_link_to_another_file_system_is_written_through(small_disk, tmp_path):
    real = small_disk / "real.yaml"
    real.write_text(text_of(1, 10))
    link = tmp_path / "config.yaml"
    link.symlink_to(real)
    written = write(link, text_of(2, 10), text_of(1, 10))
    assert link.is_symlink()
    assert (real.read_text(), written.path, written.in_place) == (text_of(2, 10), str(real), False)


def test_a_folder_that_cannot_be_written(path, monkeypatch):
    monkeypatch.setattr("models_app.target_file.os.access", lambda folder, mode: False)
    with pytest.raises(TargetRefused, match="not writable"):
        write(path)
    assert path.read_text() == OLD


def test_what_lies_there(path, tmp_path):
    assert look(str(path)).sha256 == sha(OLD)
    assert look(str(tmp_path / "none.yaml")).sha256 == ""
    assert "not a regular file" in look(str(tmp_path)).problem


@pytest.fixture
def target(scanned, host, tmp_path):
    host.publish_path = str(tmp_path / "router.yaml")
    host.save()
    return tmp_path / "router.yaml"


@pytest.fixture
def cut_off(target, actor, monkeypatch, django_capture_on_commit_callbacks):
    """A write whose worker dies: before the file changed, or behind the rename."""

    def run(file_is_there):
        revision = Revision.objects.select_related("host").order_by("-number").first()
        with monkeypatch.context() as patch:
            patch.setattr("quartermaster_site.jobs.dispatch.send", lambda *args, **kwargs: None)
            started = start_write(revision=revision, actor=actor)
        if file_is_there:
            target.write_text(revision.text)
        Job.objects.filter(pk=started.job.pk).update(state="running")
        monkeypatch.setattr("quartermaster_site.jobs.services._send_mark", lambda job: None)  # marks outlive a test
        with django_capture_on_commit_callbacks(execute=True):
            lose_all(revision.host)
        revision.refresh_from_db()
        return revision

    return run


def test_a_lost_write_that_had_renamed_the_file_counts_as_written(cut_off, host):
    revision = cut_off(file_is_there=True)
    host.refresh_from_db()
    assert (revision.state, host.written_sha256) == ("written", revision.sha256)
    assert live_revision(host) == revision
    assert TargetWatch.objects.get().sha256 == revision.sha256


def test_a_lost_write_that_had_changed_nothing_is_a_failed_one(cut_off, host, target):
    revision = cut_off(file_is_there=False)
    host.refresh_from_db()
    assert (revision.state, host.written_sha256) == ("failed", "")
    assert (TargetWatch.objects.get().sha256, target.exists()) == ("", False)


def test_the_page_tells_which_text_is_there(cut_off, client, make_user, target):
    from django.utils import timezone

    from quartermaster_site.access.models import Installation

    Installation.objects.update_or_create(pk=1, defaults={"setup_finished_at": timezone.now()})
    client.force_login(make_user("viewer"))
    cut_off(file_is_there=False)
    assert "On the host: <strong>no file</strong>" in client.get("/config/local/").content.decode()
    Path(target).write_text("models: {}\n")
    cut_off(file_is_there=False)
    assert "a text that Quartermaster did not write" in client.get("/config/local/").content.decode()
    cut_off(file_is_there=True)
    assert "the text of revision 1, whole" in client.get("/config/local/").content.decode()
