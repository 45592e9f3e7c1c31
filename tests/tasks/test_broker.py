"""Messages in files: each whole, each once."""

from __future__ import annotations

import stat
import threading

import pytest
from kombu import Connection

from quartermaster_site import broker


@pytest.fixture
def options(tmp_path):
    broker.register()
    return broker.prepare(tmp_path)


def test_folders_are_private(options, tmp_path):
    for name in broker.FOLDERS:
        assert stat.S_IMODE((tmp_path / "broker" / name).stat().st_mode) == 0o700


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
