from __future__ import annotations

import json

import pytest

from quartermaster_site import checks, doctor, env
from quartermaster_site.access.networks import parse_network
from quartermaster_site.checks import CHECKS


def test_an_open_door_is_warned_about(settings, tmp_path):
    settings.ALLOWED_HOSTS = ["*"]
    settings.DEBUG = True
    tmp_path.chmod(0o755)
    settings.DATA_DIR = tmp_path
    found = [message.id for check in CHECKS[:3] for message in check(None)]
    assert found == ["qm.W001", "qm.W002", "qm.W003"]


@pytest.mark.parametrize(("trusted", "ids"), [([], []), (["10.0.0.0/8"], []), (["10.0.0.2", "::/0"], ["qm.W005"])])
def test_trust_in_everybody_is_warned_about(settings, trusted, ids):
    settings.TRUSTED_PROXIES = list(map(parse_network, trusted))
    assert [message.id for message in checks.trusted_proxies(None)] == ids


@pytest.mark.django_db
def test_a_database_on_a_network_share_is_warned_about(monkeypatch):
    class Cursor:
        def __enter__(self):
            return self

        def __exit__(self, *args):
            return None

        def execute(self, sql):
            return None

        def fetchone(self):
            return ("delete",)

    class Connection:
        vendor = "sqlite"
        cursor = Cursor

    monkeypatch.setattr(checks, "connections", {"default": Connection()})
    assert [message.id for message in checks.sqlite_writes_ahead(None, databases=["default"])] == ["qm.W004"]
    assert checks.sqlite_writes_ahead(None) == []


def test_ids_are_unique_and_in_the_docstrings():
    names = [check.__doc__ for check in CHECKS]
    assert sorted(set(names)) == sorted(names)


@pytest.mark.django_db
def test_the_doctor_has_a_line_for_everything(capsys):
    code = doctor.main([])
    lines = capsys.readouterr().out.splitlines()
    assert code in (0, 1)
    for name in ("Python", "Packages", "Data folder", "Settings", "Database", "Queue", "GPUs", "RAM", "llama-server"):
        assert any(f"  {name} " in line for line in lines), name


@pytest.mark.django_db
def test_every_result_is_an_object_a_line(capsys):
    doctor.main(["--json"])
    for line in capsys.readouterr().out.splitlines():
        assert set(json.loads(line)) == {"name", "state", "text", "remedy"}


def test_whatever_is_not_right_has_a_remedy(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("QM_DATA_DIR", str(tmp_path / "file" / "x"))
    monkeypatch.setenv("PATH", str(tmp_path))
    for check in (doctor.data_folder, doctor.llama_server, doctor.spawn_guard, doctor.browser, doctor.devices):
        result = check()
        assert result.state == "ok" or result.remedy


def test_a_misspelt_variable_is_named(monkeypatch):
    monkeypatch.setenv("QM_DATADIR", "/x")
    assert "QM_DATADIR" in doctor.settings_variables().text


def test_a_wrong_variable_is_a_problem(monkeypatch):
    monkeypatch.setenv("QM_DEBUG", "perhaps")
    result = doctor.settings_variables()
    assert (result.state, env.debug.__name__) == ("problem", "debug")
    assert "QM_DEBUG" in result.text


def test_other_versions_than_the_tested_ones_are_named(monkeypatch):
    monkeypatch.setattr(doctor, "_pins", lambda: [("Django", "1.0"), ("not-installed-here", "1.0")])
    monkeypatch.setattr(doctor, "_requirements", lambda: ["Django"])
    result = doctor.packages()
    assert result.state == "note"
    assert "instead of 1.0" in result.text


def test_a_missing_package_is_a_problem(monkeypatch):
    monkeypatch.setattr(doctor, "_pins", lambda: [("not-installed-here", "1.0")])
    monkeypatch.setattr(doctor, "_requirements", lambda: ["not_installed.here"])
    assert doctor.packages().state == "problem"
