"""kombu's `filesystem://` transport with messages that appear whole or not at all.

kombu writes a message in place, so that a reader on the same folder can move it away half-written; here it gets its
final name by a rename. Messages being taken go through a folder of ours, on the same disk, instead of the system's
temporary folder. A file that is no message (damaged by a power cut, say) is dropped: kombu would end the worker.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import stat
import uuid
from pathlib import Path
from queue import Empty
from time import monotonic
from typing import Any

from kombu.transport import TRANSPORT_ALIASES, filesystem

log = logging.getLogger(__name__)
FOLDERS = ("queue", "taken")
WAIT_SECONDS = 0.4
MAX_MESSAGE_BYTES = 128 << 20
"""The largest we send is a config file of 16 MiB, written as text within text."""


class Channel(filesystem.Channel):
    """A channel whose messages are written under another name first.

    Every queue has an exchange and a key of its own name (`celery._queue`), so nothing is kept about bindings: kombu's
    files for them are empty for a moment when they are made, for good after a crash or on a full disk, and then no
    process can send or receive.
    """

    def get_table(self, exchange: str) -> list[Any]:
        return [filesystem.exchange_queue_t(exchange, "", exchange)]

    def _queue_bind(self, exchange: str, routing_key: str, pattern: str, queue: str) -> None:
        """Nothing to note down."""

    def _put(self, queue: str, payload: Any, **kwargs: Any) -> None:  # type: ignore[override]
        folder = Path(self.data_folder_out)
        name = f"{round(monotonic() * 1000):013d}_{uuid.uuid4()}.{queue}.msg"
        draft = folder / f"{uuid.uuid4()}.draft"
        try:
            draft.write_bytes(json.dumps(payload).encode())
            os.replace(draft, folder / name)
        except OSError:  # half a message on a full disk would be there for good
            draft.unlink(missing_ok=True)
            raise

    def _get(self, queue: str, timeout: float | None = None) -> dict[str, Any]:
        """The oldest message of a queue; raises Empty."""
        for folder in (self.data_folder_in, self.processed_folder):
            # Somebody may have removed it: messages sent from now on find it again.
            os.makedirs(folder, mode=0o700, exist_ok=True)
        for name in sorted(_messages(self.data_folder_in, queue)):
            data = self._take(name)
            if data is not None and (payload := self._read(data)) is not None:
                return payload
            if data is not None:
                log.warning("%s is no message (%d bytes): dropped", name, len(data))
        raise Empty

    def _take(self, name: str) -> bytes | None:
        """The content of a message file, which nobody else gets; None where somebody was faster."""
        taken = Path(self.processed_folder) / name
        try:
            os.replace(Path(self.data_folder_in) / name, taken)
        except OSError:  # gone, or a folder in the way of the move
            return None
        try:
            return _content(taken)
        except OSError as error:
            log.warning("%s cannot be read: %s", name, error)
            return b""
        finally:
            with contextlib.suppress(OSError):  # a folder stays among those taken, where nobody looks
                taken.unlink()

    def _read(self, data: bytes) -> dict[str, Any] | None:
        """The message as kombu wants it; None for anything else."""
        try:
            payload: dict[str, Any] = json.loads(data)
            self.Message(payload, channel=self)  # type: ignore[no-untyped-call]
            known = {"exchange", "routing_key"} <= set(payload["properties"]["delivery_info"])
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None
        return payload if known else None


def is_empty(folder: Path, queue: str) -> bool:
    """Whether no message of a queue lies in its folder; False where nobody can look."""
    try:
        return not _messages(folder, queue)
    except OSError:
        return False


def _messages(folder: str | Path, queue: str) -> list[str]:
    return [name for name in os.listdir(folder) if name.partition(".")[2] == f"{queue}.msg"]


def _content(taken: Path) -> bytes:
    """The bytes of a plain file of credible size; none for a folder, a pipe, a link or 130 MB of anything."""
    status = taken.lstat()
    if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_MESSAGE_BYTES:
        return b""
    return taken.read_bytes()


class Transport(filesystem.Transport):
    Channel = Channel

    def drain_events(self, connection: Any, timeout: float | None = None, **options: Any) -> Any:
        """A worker hears that it is to stop between two waits for messages; Celery would wait two seconds each time."""
        shorter = min(timeout, WAIT_SECONDS) if timeout else timeout
        return super().drain_events(connection, timeout=shorter, **options)  # type: ignore[no-untyped-call]


def register() -> None:
    """Make `filesystem://` mean this transport."""
    TRANSPORT_ALIASES["filesystem"] = f"{__name__}:Transport"


def prepare(data_dir: Path) -> dict[str, Any]:
    """Make the folders and return the transport options. Folders are for their owner only: messages are commands."""
    base = data_dir / "broker"
    for name in FOLDERS:
        (base / name).mkdir(mode=0o700, parents=True, exist_ok=True)
    return {
        "data_folder_in": str(base / "queue"),
        "data_folder_out": str(base / "queue"),
        "control_folder": str(base / "control"),
        "processed_folder": str(base / "taken"),
        "store_processed": False,
        "polling_interval": 0.2,
    }
