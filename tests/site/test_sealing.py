"""Secrets at rest: readable with the key file of the data folder, and with no other."""

from __future__ import annotations

import stat
from concurrent.futures import ThreadPoolExecutor

import pytest

from quartermaster_site import sealing


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("QM_DATA_DIR", str(tmp_path))
    return tmp_path


def test_there_and_back_with_a_private_key(folder):
    sealed = sealing.seal("qm-geheim é")
    assert "geheim" not in sealed
    assert sealing.unseal(sealed) == "qm-geheim é"
    assert stat.S_IMODE((folder / sealing.FILE_NAME).stat().st_mode) == 0o600
    assert [path.name for path in folder.iterdir()] == [sealing.FILE_NAME]


def test_several_at_once_agree_on_one_key(folder):
    with ThreadPoolExecutor(16) as pool:
        sealed = list(pool.map(sealing.seal, [str(number) for number in range(64)]))
    assert [sealing.unseal(item) for item in sealed] == [str(number) for number in range(64)]


@pytest.mark.parametrize("content", [b"", b"short", b"\x00" * 44])
def test_a_damaged_key_is_said_and_kept(folder, content):
    (folder / sealing.FILE_NAME).write_bytes(content)
    with pytest.raises(sealing.Unsealable, match="sealing-key is no key"):
        sealing.seal("x")
    assert (folder / sealing.FILE_NAME).read_bytes() == content


@pytest.mark.parametrize("sealed", ["", "x", "é", "gAAAAA"])
def test_what_was_never_sealed(folder, sealed):
    sealing.seal("x")
    with pytest.raises(sealing.Unsealable, match="is another one"):
        sealing.unseal(sealed)


def test_a_key_that_is_given_comes_first(folder, monkeypatch):
    sealing.seal("x")
    kept = (folder / sealing.FILE_NAME).read_text()
    (folder / sealing.FILE_NAME).unlink()
    monkeypatch.setenv("QM_SEALING_KEY", kept)
    assert sealing.unseal(sealing.seal("y")) == "y"
    assert not (folder / sealing.FILE_NAME).exists()
    monkeypatch.setenv("QM_SEALING_KEY", "short")
    with pytest.raises(sealing.Unsealable, match="QM_SEALING_KEY is no key"):
        sealing.seal("x")
