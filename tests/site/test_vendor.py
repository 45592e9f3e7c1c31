"""What is vendored is what was vendored: hashes hold, nothing points elsewhere."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest

STATIC = Path(__file__).resolve().parent.parent.parent / "static"
FOLDERS = sorted((STATIC / "vendor").iterdir())


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_vendored_files_have_their_hash_and_licence(folder: Path) -> None:
    listed = dict(reversed(line.split()) for line in (folder / "SHA256SUMS").read_text().splitlines())
    assert listed
    for name, digest in listed.items():
        data = (folder / name).read_bytes()
        assert hashlib.sha256(data).hexdigest() == digest
        assert b"sourceMappingURL" not in data, "manifest storage would look for the map"
    assert (folder / "LICENSE.txt").read_text().strip()


def test_nothing_is_fetched_from_elsewhere() -> None:
    for path in STATIC.rglob("*.css"):
        addresses = re.findall(r"url\(\s*[\"']?([^\"')]{1,40})", path.read_text())
        assert all(address.startswith(("data:", "#")) for address in addresses), path
        assert "@import" not in path.read_text()
