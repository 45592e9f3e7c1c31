"""Messages in files: each whole, each once.

kombu remembers bindings for the whole process: every test has a queue of its own.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import stat
import tempfile
import threading
import time
from types import SimpleNamespace

import pytest
from kombu import Connection
from kombu.transport import get_transport_cls, virtual
from redis import exceptions

from quartermaster_site import broker, celery, consumer, redis_transport
from quartermaster_site.jobs.selectors import CONTROL_SILENT_AFTER


@pytest.fixture
def options(tmp_path):
    broker.register()
    return broker.prepare(tmp_path)


@pytest.mark.parametrize(
    ("scheme", "module"),
    [
        ("redis", "quartermaster_site.redis_transport"),
        ("rediss", "quartermaster_site.redis_transport"),
        ("filesystem", "quartermaster_site.broker"),
    ],
)
def test_our_transports_are_used_whatever_the_broker_was_at_import(scheme, module):
    """kombu keeps for good what a name meant at its first use in a process."""
    assert get_transport_cls(scheme).__module__ == module


def test_folders_are_private(options, tmp_path):
    for name in broker.FOLDERS:
        assert stat.S_IMODE((tmp_path / "broker" / name).stat().st_mode) == 0o700


def test_a_worker_looks_up_often_enough_to_stop_soon(options):
    """Celery waits two seconds for a message before it looks whether it is to stop."""
    with Connection("filesystem://localhost//", transport_options=options) as connection:
        connection.SimpleQueue("quiet")
        started = time.monotonic()
        with pytest.raises(TimeoutError):
            connection.drain_events(timeout=2.0)
    assert time.monotonic() - started < 1.5


def test_large_messages_arrive_whole_and_once(options):
    """kombu's own transport loses this race: a reader may take a file that is still being written."""
    count, size = 60, 400_000
    received = []

    def consume():
        with Connection("filesystem://localhost//", transport_options=options) as connection:
            queue = connection.SimpleQueue("numbers")
            while True:
                try:
                    message = queue.get(timeout=3)
                except queue.Empty:
                    return
                received.append((message.payload["number"], len(message.payload["filler"])))
                message.ack()

    readers = [threading.Thread(target=consume) for _ in range(2)]
    for reader in readers:
        reader.start()
    with Connection("filesystem://localhost//", transport_options=options) as connection:
        queue = connection.SimpleQueue("numbers")
        for number in range(count):
            queue.put({"number": number, "filler": "x" * size})
    for reader in readers:
        reader.join()
    assert sorted(received) == [(number, size) for number in range(count)]


def test_nothing_is_left_behind(options, tmp_path):
    with Connection("filesystem://localhost//", transport_options=options) as connection:
        queue = connection.SimpleQueue("single")
        queue.put({"number": 1})
        assert [path.suffix for path in (tmp_path / "broker" / "queue").iterdir()] == [".msg"]
        queue.get(timeout=3).ack()
    assert not list((tmp_path / "broker" / "queue").iterdir())
    assert not list((tmp_path / "broker" / "taken").iterdir())


def test_whether_a_queue_is_empty(options, tmp_path):
    folder = tmp_path / "broker" / "queue"
    assert broker.is_empty(folder, "single")
    with Connection("filesystem://localhost//", transport_options=options) as connection:
        queue = connection.SimpleQueue("single")
        queue.put({"number": 1})
        assert not broker.is_empty(folder, "single")
        assert broker.is_empty(folder, "other")
        message = queue.get(timeout=3)
        assert broker.is_empty(folder, "single"), "what a worker has read is gone with it"
        message.ack()
    assert not broker.is_empty(tmp_path / "gone", "single"), "nobody knows"


@pytest.mark.parametrize(("role", "times"), [("control", 1), ("host", 1), ("all", 0)])
def test_a_worker_takes_back_once_what_its_predecessor_held(monkeypatch, role, times):
    monkeypatch.setenv("QM_ROLE", role)
    monkeypatch.setenv("QM_REDIS_URL", "redis://127.0.0.1:1/0")
    asked = []
    monkeypatch.setattr(redis_transport, "restore", lambda channel: asked.append(channel) or 0)
    worker = object.__new__(consumer.Consumer)
    worker.connection = SimpleNamespace(default_channel="channel")
    for _ in range(2):
        worker._restore_once()
    assert asked == ["channel"] * times


def test_periodic_tasks_outlast_a_queue_that_is_full_of_reports():
    """Pages call the control worker dead after three minutes without its round: a busy one gets to it in time."""
    schedule = celery.configuration()["beat_schedule"]
    rounds = schedule["sweep_lost_jobs"]
    assert rounds["options"]["expires"] == 120
    assert rounds["schedule"] + rounds["options"]["expires"] < CONTROL_SILENT_AFTER.total_seconds()
    assert all(entry["options"]["expires"] >= entry["schedule"] for entry in schedule.values())


DAMAGED = (
    b"",
    b"garbage",
    b"\xff\xfe",
    b"[]",
    b"null",
    b"{}",
    b'{"body": "x", "properties": {}}',
    b'{"body": "x", "properties": {"delivery_tag": "1"}}',
    b'{"body": "!", "properties": {"delivery_tag": "1", "delivery_info": {}, "body_encoding": "base64"}}',
    b'{"body": 5, "properties": {"delivery_tag": "1", "delivery_info": {}, "body_encoding": "base64"}}',
    b'{"body": "x", "properties": {"delivery_tag": "1", "delivery_info": {}, "body_encoding": "rot13"}}',
    b"[" * 100_000,
)


def test_a_file_that_is_no_message_is_dropped_and_the_next_one_arrives(options, tmp_path):
    """kombu's own transport raises, which ends a Celery worker: one bad file would take everything down."""
    with Connection("filesystem://localhost//", transport_options=options) as connection:
        queue = connection.SimpleQueue("damaged")
        for number, data in enumerate(DAMAGED):
            (tmp_path / "broker" / "queue" / f"{number:013d}_bad.damaged.msg").write_bytes(data)
        queue.put({"number": 7})
        message = queue.get(timeout=3)
        message.ack()
        assert message.payload == {"number": 7}
    assert not list((tmp_path / "broker" / "queue").iterdir())
    assert not list((tmp_path / "broker" / "taken").iterdir())


def test_what_is_no_plain_file_is_dropped_unread(options, tmp_path, monkeypatch):
    """A pipe would be waited for without end, and reading a folder would end the worker."""
    monkeypatch.setattr(broker, "MAX_MESSAGE_BYTES", 10_000)
    folder = tmp_path / "broker" / "queue"
    with Connection("filesystem://localhost//", transport_options=options) as connection:
        queue = connection.SimpleQueue("odd")
        (folder / "0000000000000_folder.odd.msg").mkdir()
        (folder / "0000000000001_dangling.odd.msg").symlink_to(tmp_path / "nowhere")
        (folder / "0000000000002_link.odd.msg").symlink_to("/dev/zero")
        os.mkfifo(folder / "0000000000003_pipe.odd.msg")
        (folder / "0000000000004_large.odd.msg").write_bytes(b" " * 10_001)
        queue.put({"number": 7})
        message = queue.get(timeout=3)
        message.ack()
        assert message.payload == {"number": 7}
    assert not list(folder.iterdir())


@pytest.mark.parametrize("name", ["queue", "taken"])
def test_a_removed_folder_is_made_again(options, tmp_path, name):
    with Connection("filesystem://localhost//", transport_options=options) as connection:
        queue = connection.SimpleQueue(f"removed-{name}")
        shutil.rmtree(tmp_path / "broker" / name)
        with pytest.raises(queue.Empty):
            queue.get(timeout=0.3)
        queue.put({"number": 8})
        assert queue.get(timeout=3).payload == {"number": 8}
    assert stat.S_IMODE((tmp_path / "broker" / name).stat().st_mode) == 0o700


def test_a_message_that_cannot_be_written_leaves_nothing(options, tmp_path, monkeypatch):
    def full(source, target):
        raise OSError(errno.ENOSPC, "No space left on device")

    with Connection("filesystem://localhost//", transport_options=options) as connection:
        queue = connection.SimpleQueue("full")
        monkeypatch.setattr(os, "replace", full)
        with pytest.raises(OSError, match="No space left"):
            queue.put({"number": 1})
    assert not list((tmp_path / "broker" / "queue").iterdir())


def test_there_are_no_files_about_bindings(options, tmp_path):
    """An empty one, left by a crash, would stop every process."""
    (tmp_path / "broker" / "control").mkdir(exist_ok=True)
    (tmp_path / "broker" / "control" / "bound.exchange").write_bytes(b"")
    with Connection("filesystem://localhost//", transport_options=options) as connection:
        queue = connection.SimpleQueue("bound")
        queue.put({"number": 10})
        assert queue.get(timeout=3).payload == {"number": 10}


def test_messages_stay_out_of_the_temporary_folder(options, tmp_path, monkeypatch):
    """They are commands, and may hold texts that are nobody else's business."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "elsewhere"))
    with Connection("filesystem://localhost//", transport_options=options) as connection:
        queue = connection.SimpleQueue("private")
        queue.put({"number": 9})
        assert json.loads(queue.get(timeout=3).body) == {"number": 9}


@pytest.mark.parametrize("way", ["ack", "reject"])
def test_a_confirmation_that_finds_no_broker_gives_its_place_free(monkeypatch, way):
    """With all places taken the worker would ask for nothing, and not find out that its connection is gone."""

    def away(*_):
        raise exceptions.ConnectionError("refused")

    qos = redis_transport.QoS(SimpleNamespace(do_restore=False), prefetch_count=1)
    monkeypatch.setattr(qos, "_remove_from_indices", away)
    virtual.QoS.append(qos, "message", "tag")
    assert not qos.can_consume()
    with pytest.raises(exceptions.ConnectionError):
        getattr(qos, way)("tag")
    assert qos.can_consume()
