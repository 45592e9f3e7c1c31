"""kombu's `filesystem://` transport with messages that appear whole or not at all.

kombu writes a message in place, so that a reader on the same folder can move it away half-written; here it gets its
final name by a rename. Messages being handled go through a folder of ours, on the same disk, instead of the system's
temporary folder.
"""

from __future__ import annotations

import json
import os
import uuid
from pathlib import Path
from time import monotonic
from typing import Any

from kombu.transport import TRANSPORT_ALIASES, filesystem

FOLDERS = ("queue", "taken", "control")


class Channel(filesystem.Channel):
    """A channel whose messages are written under another name first."""

    def _put(self, queue: str, payload: Any, **kwargs: Any) -> None:  # type: ignore[override]
        folder = Path(self.data_folder_out)
        name = f"{round(monotonic() * 1000):013d}_{uuid.uuid4()}.{queue}.msg"
        draft = folder / f"{uuid.uuid4()}.draft"
        draft.write_bytes(json.dumps(payload).encode())
        os.replace(draft, folder / name)


class Transport(filesystem.Transport):
    Channel = Channel


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
