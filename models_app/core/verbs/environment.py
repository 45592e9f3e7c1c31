"""What a headless verb may know of the world around it, handed in by `cli`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TextIO

NOTE_WIDTH = 78
"""A longer note would wrap, and only its last line could be taken back."""


@dataclass(frozen=True, slots=True)
class Environment:
    """Streams, clock and folders of one run; `progress` says whether standard error is a terminal."""

    data_dir: Path
    now: datetime
    stdout: TextIO
    stderr: TextIO
    progress: bool = False
    platform: str = "linux"
    variables: Mapping[str, str] = field(default_factory=dict)
    """What a program that is run for this verb gets as its environment, and where it is looked for."""
    guard_program: str = ""
    """Where this installation has its `quartermaster-spawn`, "" where it has none."""

    @property
    def header_cache(self) -> Path:
        """The file that keeps header facts between runs."""
        return self.data_dir / "headers.sqlite3"

    def note(self, text: str) -> None:
        """Progress for a person; nothing when nobody watches."""
        if self.progress:
            self.stderr.write(f"\r\x1b[K{text[:NOTE_WIDTH]}")
            self.stderr.flush()

    def clear_note(self) -> None:
        if self.progress:
            self.stderr.write("\r\x1b[K")
            self.stderr.flush()
