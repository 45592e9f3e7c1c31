"""Finding executables of known names: on the search path and below the permitted folders, each once, none run."""

from __future__ import annotations

import itertools

import pytest

from models_app.program_search import MAX_DEPTH, search
from models_app.services.program_search import ProgramSearchReceiver, last_search, start_program_search
from quartermaster_site.access.audit import Actor
from quartermaster_site.errors import NotAllowed
from quartermaster_site.jobs.models import Job
from quartermaster_site.jobs.untrusted import ReportRefused


@pytest.fixture
def place(tmp_path):
    """Puts an executable somewhere below a folder."""

    def call(*parts, mode=0o755):
        path = tmp_path.joinpath(*parts)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("#!/bin/sh\nexit 1\n")
        path.chmod(mode)
        return str(path)

    return call


def test_the_search_path_comes_first_and_a_file_counts_once(tmp_path, place):
    built = place("src", "llama.cpp", "build", "bin", "llama-server")
    other = place("src", "sd", "sd-server")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "llama-server").symlink_to(built)
    found = search([str(tmp_path / "bin"), "relative"], [str(tmp_path / "src")], [str(tmp_path)])
    assert found == [{"kind": "llama", "path": str(tmp_path / "bin" / "llama-server")}, {"kind": "sd", "path": other}]


def test_only_what_can_be_run_and_may_be(tmp_path, place):
    place("a", "llama-server", mode=0o644)
    (tmp_path / "b" / "sd-server").mkdir(parents=True)
    outside = place("out", "vllm")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "vllm").symlink_to(outside)
    inside = place("in", "tts-server.exe")
    places = [str(tmp_path / name) for name in ("a", "b", "in", "gone")]
    assert search([str(tmp_path / "out")], places, places) == [{"kind": "tts", "path": inside}]


def test_it_ends_with_its_time_in_loops_and_at_a_depth(tmp_path, place):
    (tmp_path / "loop").symlink_to(tmp_path)
    place(*[f"d{number}" for number in range(MAX_DEPTH + 1)], "llama-server")
    assert search([], [str(tmp_path)], [str(tmp_path)]) == []
    near = place("llama-server")
    ticks = itertools.count(step=10.0)
    assert search([], [str(tmp_path)], [str(tmp_path)], clock_seconds=lambda: next(ticks))[0]["path"] == near
    assert search([], [str(tmp_path)], [str(tmp_path)], stop=lambda: True) == []


def test_a_host_proposes_what_is_not_registered(
    host, actor, tmp_path, place, monkeypatch, django_capture_on_commit_callbacks
):
    first, second = place("llama-server"), place("x", "sd-server")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("QM_BACKEND_ROOTS", str(tmp_path))
    assert last_search(host).job is None
    with django_capture_on_commit_callbacks(execute=True):
        start_program_search(host=host, actor=actor)
    assert [item.path for item in last_search(host).proposals] == [first, second]
    host.backends.create(slug="llama", kind="llama", path=first)
    assert [item.kind for item in last_search(host).proposals] == ["sd"]


def test_administrators_only(host, make_user):
    with pytest.raises(NotAllowed):
        start_program_search(host=host, actor=Actor(user=make_user("editor")))


@pytest.mark.parametrize(
    "data", [{"programs": "x"}, {"programs": [{"kind": 3, "path": "/a"}]}, {"programs": [{}] * 65}]
)
def test_foreign_reports_are_refused(host, data):
    job = Job.objects.create(kind="find_programs", host=host, token="t")
    with pytest.raises(ReportRefused):
        ProgramSearchReceiver().finish(job, data, partial=False)


def test_an_unknown_kind_is_left_out(host):
    job = Job.objects.create(kind="find_programs", host=host, token="t")
    data = {"programs": [{"kind": "ollama", "path": "/a/ollama"}, {"kind": "llama", "path": "/a/llama-server"}]}
    assert ProgramSearchReceiver().finish(job, data, partial=False)["programs"] == [data["programs"][1]]
