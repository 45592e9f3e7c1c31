"""A folder with every model of tests/zoo, for the benchmarks that scan or plan."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.zoo import zoo


@contextmanager
def zoo_tree() -> Iterator[Path]:
    """The sparse files, written to a temporary folder and removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="qm-bench-zoo-") as folder:
        for name in zoo.MODELS:
            zoo.write_model(name, folder)
        yield Path(folder)
