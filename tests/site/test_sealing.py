"""Secrets at rest."""

from __future__ import annotations

import pytest

from quartermaster_site import sealing
from quartermaster_site.sealing import Unsealable, seal, unseal


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("QM_DATA_DIR", str(tmp_path))
    monkeypatch.delenv("QM_SEALING_KEY", raising=False)
    return tmp_path


def test_there_and_back_with_a_key_that_is_kept(folder):
    sealed = seal("qm-secret ä")
    assert "secret" not in sealed
    assert unseal(sealed) == "qm-secret ä"
    key = folder / sealing.FILE_NAME
    assert key.stat().st_mode & 0o777 == 0o600
    before = key.read_bytes()
    assert unseal(seal("x")) == "x"
    assert key.read_bytes() == before


def test_a_key_that_is_given(folder, monkeypatch):
    seal("x")
    kept = (folder / sealing.FILE_NAME).read_text()
    (folder / sealing.FILE_NAME).unlink()
    monkeypatch.setenv("QM_SEALING_KEY", kept)
    assert unseal(seal("y")) == "y"
    assert not (folder / sealing.FILE_NAME).exists()


@pytest.mark.parametrize("sealed", ["", "x", "gAAAAA", "ä"])
def test_what_was_never_sealed(sealed):
    with pytest.raises(Unsealable, match="another one"):
        unseal(sealed)


def test_a_damaged_key_names_its_place(folder, monkeypatch):
    (folder / sealing.FILE_NAME).write_text("short")
    with pytest.raises(Unsealable, match=r"sealing-key is no key"):
        seal("x")
    monkeypatch.setenv("QM_SEALING_KEY", "short")
    with pytest.raises(Unsealable, match="QM_SEALING_KEY is no key"):
        seal("x")
