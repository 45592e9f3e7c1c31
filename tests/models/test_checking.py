"""The host's side of checks against llama.cpp: which program is run, and what is never run."""

from __future__ import annotations

import pytest

from models_app.checking import check, find_program, look_for
from models_app.core.errors import VerifyError
from quartermaster_site.jobs.host_tasks import Cancelled
from quartermaster_site.jobs.reporting import Reporter
from tests.llama_stand_in import BUILD, llama_folder

ANSWER = "CUDA0 1 2 3\nHost 4 5 6\n"
MIB = 1 << 20


@pytest.fixture
def server(tmp_path):
    return llama_folder(tmp_path / "llama", ANSWER)


@pytest.fixture
def report():
    return Reporter(1, "token", sender=lambda _event: None)


def _inputs(server, **changes):
    return {"server": str(server), "named": "", "words": ["-m", "a b.gguf"], "variables": {}, "devices": 1, **changes}


def test_bytes_per_device_and_host_and_the_build(server, report):
    answer = check(report, _inputs(server, variables={"CUDA_VISIBLE_DEVICES": "2"}))
    assert answer["build"] == BUILD
    assert answer["path"] == str(server.parent / "llama-fit-params")
    assert answer["devices"] == [
        {"name": "CUDA0", "model_bytes": MIB, "context_bytes": 2 * MIB, "compute_bytes": 3 * MIB}
    ]
    assert answer["host"]["context_bytes"] == 5 * MIB
    assert (server.parent / "asked").read_text() == "-m\na b.gguf\n--no-repack\n--fit-print\non\n"
    assert "CUDA_VISIBLE_DEVICES=2\n" in (server.parent / "environment").read_text()


def test_its_time_is_limited(server, report):
    (server.parent / "slow").touch()
    with pytest.raises(VerifyError, match="was stopped: no answer within its time limit"):
        check(report, _inputs(server, seconds=0.5))


def test_a_cancel_stops_it(server, report, monkeypatch):
    (server.parent / "slow").touch()
    monkeypatch.setattr(report, "is_cancelled", (server.parent / "asked").exists)
    with pytest.raises(Cancelled):
        check(report, _inputs(server))


def test_a_command_beyond_reason_is_refused(server, report):
    with pytest.raises(VerifyError, match="more than 200 words"):
        check(report, _inputs(server, words=["-m"] * 201))
    assert not (server.parent / "asked").exists()


def test_a_server_of_another_name_has_it_beside_too(server):
    other = server.rename(server.parent / "serve-chat")
    assert find_program(str(other), "") == str(server.parent / "llama-fit-params")


def test_a_link_to_the_server_is_followed(server, tmp_path):
    link = tmp_path / "bin" / "llama-server"
    link.parent.mkdir()
    link.symlink_to(server)
    assert find_program(str(link), "") == str(server.parent / "llama-fit-params")


def test_a_bare_name_is_looked_for_on_the_path_and_nowhere_else(server, monkeypatch):
    monkeypatch.chdir(server.parent)
    with pytest.raises(VerifyError, match="no llama-server on the path"):
        find_program("llama-server", "")
    monkeypatch.setenv("PATH", str(server.parent))
    assert find_program("llama-server", "") == str(server.parent / "llama-fit-params")


@pytest.mark.parametrize("named", ["/bin/sh", "llama-fit-params", "/nowhere/llama-fit-params", "/tmp"])
def test_what_is_named_must_be_the_program(server, named):
    with pytest.raises(VerifyError) as error:
        find_program(str(server), named)
    assert error.value.code == "missing"


def test_nothing_outside_the_permitted_folders_is_run(server, tmp_path, report, monkeypatch):
    permitted = tmp_path / "permitted"
    permitted.mkdir()
    monkeypatch.setenv("QM_BACKEND_ROOTS", str(permitted))
    link = permitted / "llama-fit-params"
    link.symlink_to(server.parent / "llama-fit-params")
    for named in ("", str(link)):
        with pytest.raises(VerifyError, match="QM_BACKEND_ROOTS"):
            check(report, _inputs(server, named=named))
    inside = llama_folder(permitted / "llama", ANSWER)
    assert check(report, _inputs(inside))["build"] == BUILD


def test_looking_tells_of_each_server(server, tmp_path, report):
    gone = str(tmp_path / "gone" / "llama-server")
    found, missing = look_for(report, [str(server), gone], "")
    assert (found["build"], found["problem"]) == (BUILD, "")
    assert missing["problem"].startswith(f"there is no llama-fit-params beside {gone}")
