from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.made_once import made_once
from tests.tasks.workers import ROOT, environment


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the first start leaves: all migrations done, static files collected. They are most of what a start costs."""

    def prepare(folder: Path) -> None:
        code = "from quartermaster_site.preparation import prepare; prepare()"
        subprocess.run([sys.executable, "-c", code], env=environment(folder), cwd=ROOT, check=True, timeout=120)

    return made_once(tmp_path_factory, "prepared", prepare)


@pytest.fixture
def data_dir(prepared: Path, tmp_path: Path) -> Path:
    """The data folder of somebody who has started the product before, and done nothing with it."""
    return Path(shutil.copytree(prepared, tmp_path / "data"))
