"""Asking an executable what it is: bounded in time and output, nothing left behind, no answer taken on trust."""

from __future__ import annotations

import os
import time
from datetime import timedelta

import pytest
from django.utils import timezone

from gpus_app.core.backend_probe import ProbeAllowance
from gpus_app.core.probes.program import MAX_OUTPUT_BYTES, run_program
from gpus_app.models import Backend, Device
from gpus_app.selectors import get_host
from models_app import backend_probing, convert, host_tasks
from models_app.core.launch.program_text import program_devices, program_facts
from models_app.services.backend_probes import probe_when_due, start_backend_probe
from models_app.services.backends import BackendValues, add_backend
from quartermaster_site.jobs.models import Job

LLAMA = """case "$1" in
--help) echo "-c, --ctx-size N  size"; echo "-ngl, --n-gpu-layers N  layers"; echo "--port N  port"
        echo "--version  show"; echo "--list-devices  list";;
--version) echo "version: 6524 (0a1b2c3)" >&2; echo "built with GNU" >&2;;
--list-devices) echo "Available devices:"; echo "  CUDA0: NVIDIA GeForce RTX 3090 (24576 MiB, 24000 MiB free)";;
esac"""
QWENTTS = """echo "qwentts.cpp 7b6ed4f (2026-08-05)" >&2
echo "  --model PATH" >&2; echo "  --codec PATH" >&2; echo "  --port N" >&2"""
PATH = {"PATH": "/usr/bin:/bin"}


@pytest.fixture(autouse=True)
def _ask_anew():
    backend_probing.forget_answers()


@pytest.fixture
def script(tmp_path):
    """`script("echo hello")` is the path of an executable that does so."""

    def write(body, name="server"):
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\n{body}\n")
        program.chmod(0o755)
        return str(program)

    return write


@pytest.fixture
def prober(tmp_path):
    """A prober with short limits; `asked` counts the runs."""

    def make(seconds=20.0, permitted=None):
        return backend_probing.Prober(run, [str(permitted or tmp_path)], allowance=ProbeAllowance(seconds))

    def run(command, seconds):
        asked.append(command)
        return run_program(command, seconds, PATH)

    asked: list[list[str]] = []
    make.asked = asked
    return make


def test_a_llama_server_is_known_by_its_flags(script, prober):
    facts = prober().probe(script(LLAMA))
    assert facts["problem"] == ""
    assert (facts["kind"], facts["version"], facts["build"]) == ("llama", "6524", "0a1b2c3")
    assert "--n-gpu-layers" in facts["flags"]
    assert [(device["id"], device["name"]) for device in facts["devices"]] == [("CUDA0", "NVIDIA GeForce RTX 3090")]
    assert len(facts["banner_sha256"]) == 64
    assert facts["size_bytes"] > 0


def test_qwentts_is_known_by_its_banner_on_standard_error(script, prober):
    facts = prober().probe(script(QWENTTS))
    assert (facts["kind"], facts["build"], facts["devices"]) == ("tts", "7b6ed4f", None)
    assert [command[1] for command in prober.asked] == ["--help"], "what the help does not name is not asked"


def test_the_same_file_is_asked_once_and_another_one_again(script, prober):
    path, asked = script(LLAMA), prober.asked
    first = prober().probe(path)
    assert prober().probe(path) == first
    assert len(asked) == 3
    prober().probe(path, fresh=True)
    assert len(asked) == 6
    os.utime(path, ns=(1, 1))
    prober().probe(path)
    assert len(asked) == 9


def test_devices_are_asked_for_in_bus_order(script, prober):
    facts = prober().probe(script('echo "--list-devices"; echo "$CUDA_DEVICE_ORDER0: card"'))
    assert facts["devices"] == []
    facts = prober().probe(script('echo "--list-devices"; [ "$CUDA_DEVICE_ORDER" = PCI_BUS_ID ] && echo "CUDA0: card"'))
    assert [device["id"] for device in facts["devices"]] == ["CUDA0"]


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("sleep 60", "did not end within"),
        ("trap '' TERM; while :; do sleep 1; done", "did not end within"),
        ("echo starting; exec sleep 60", "it said: starting"),
        ("kill -SEGV $$", "signal 11"),
        ("exit 139", "exit code 139 and printed nothing"),
        ("exit 0", "its help names no flag"),
        ("echo no such option >&2; exit 1", "it said: no such option"),
        ("yes", "did not end within"),
    ],
    ids=[
        "hangs",
        "ignores TERM",
        "hangs after a word",
        "crashes",
        "exits 139",
        "is silent",
        "knows no help",
        "babbles",
    ],
)
def test_a_program_that_misbehaves_is_a_problem_in_words(script, prober, body, says):
    started = time.monotonic()
    facts = prober(seconds=1.0).probe(script(body))
    assert says in facts["problem"]
    assert time.monotonic() - started < 4


def test_what_hangs_leaves_no_process(script, prober, tmp_path):
    prober(seconds=1.0).probe(script(f"trap '' TERM; sleep 60 & echo $! > '{tmp_path}/child'; wait"))
    child = int((tmp_path / "child").read_text())
    for _ in range(50):
        if not os.path.exists(f"/proc/{child}") or " Z " in open(f"/proc/{child}/stat").read():  # noqa: SIM115
            return
        time.sleep(0.1)
    pytest.fail("the child still runs")


def test_a_hundred_megabytes_are_capped_and_end_in_time(script, prober):
    facts = prober().probe(script("echo --port; head -c 100000000 /dev/zero"))
    assert facts["problem"] == ""
    assert facts["flags"] == ["--port"]
    assert sum(len(str(value)) for value in facts.values()) < MAX_OUTPUT_BYTES // 100


def test_all_probes_of_a_job_share_their_time(script, prober):
    job = prober(seconds=0.7)
    assert "killed" in job.probe(script("sleep 60", "one"))["problem"]
    assert "used up" in job.probe(script("echo --port", "two"))["problem"]
    assert prober().probe(script("echo --port", "two"))["problem"] == "", "what was not asked is not remembered"


@pytest.mark.parametrize("name", ["missing", "folder", "data"])
def test_what_is_no_executable_is_never_run(prober, tmp_path, name):
    (tmp_path / "folder").mkdir()
    (tmp_path / "data").write_text("no program")
    assert prober().probe(str(tmp_path / name))["problem"]
    assert prober.asked == []


def test_a_link_that_leads_out_of_the_permitted_folders_is_never_run(script, prober, tmp_path):
    target, inside = script(LLAMA), tmp_path / "inside"
    inside.mkdir()
    (inside / "link").symlink_to(target)
    assert "QM_BACKEND_ROOTS" in prober(permitted=inside).probe(str(inside / "link"))["problem"]
    assert "QM_BACKEND_ROOTS" in prober(permitted=inside).probe("server")["problem"]
    assert prober.asked == []


def test_a_name_with_a_space_or_a_shell_word_is_one_argument(script, prober):
    assert prober().probe(script(LLAMA, "my server; $(touch x)"))["kind"] == "llama"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("usage\n  --model M\n  --codec C\n  --port P", "tts"),
        ("  --model-path PATH  model\n  --n-threads N\n  --port N", "ttscpp"),
        ("  --diffusion-model F\n  --vae F\n  --port N", "sd"),
        ("--config F --host H --port N --voice-dir D --max-loaded-models N", "audiocpp"),
        ("usage: vllm [-h] [-v] {chat,complete,serve,bench} ...\n\nvLLM CLI\n\n  -v, --version  show", "vllm"),
        ("usage:\n  parakeet-server --model <path> [--host 127.0.0.1] [--port 8080] [--threads N]", "asr"),
        ("usage: ./server [options]\n  --model SAM 3 weights\n  --port N\n  --no-gpu", "sam"),
        ("  -m, --model FNAME  audio segments, samples\n  --port PORT\n  -ng, --no-gpu  disable gpu", ""),
        ("Usage: x --model DIR --dino DIR [options]\n  --birefnet FILE\n  --port N", "trellis2"),
        ("Usage: realesrgan-ncnn-vulkan -i infile -o outfile [options]...\n  -h  help", "upscale"),
        ("stable-diffusion.cpp version master-9, commit 97d2990\nUsage: x [options]\n  --vae", "sd"),
        ("--port N", ""),
        ("error: llama-server needs --model", ""),
    ],
)
def test_kinds_by_their_help(text, kind):
    assert program_facts(text).kind == kind


@pytest.mark.parametrize(
    ("version_text", "version", "build"),
    [
        ("parakeet-server 0.4.0\n", "0.4.0", ""),
        ("INFO 11-04 09:45:45 [__init__.py:216] Automatically detected platform cuda.\n0.15.0rc2\n", "0.15.0rc2", ""),
        ("version: 6524 (0a1b2c3)", "6524", "0a1b2c3"),
        ("no such flag: it needs 2 models", "", ""),
    ],
)
def test_versions_as_programs_write_them(version_text, version, build):
    facts = program_facts("--port", version_text)
    assert (facts.version, facts.build) == (version, build)


def test_a_version_that_stands_in_the_help():
    facts = program_facts("stable-diffusion.cpp version master-9-97d2990, commit 97d2990\n  --vae FILE")
    assert (facts.version, facts.build) == ("master-9-97d2990", "97d2990")


def test_parakeet_is_asked_for_a_version_that_its_help_does_not_name(script, prober):
    help_text = 'echo "  parakeet-server --model <path> [--port 8080]" >&2'
    facts = prober().probe(script(f'[ "$1" = --version ] && echo "parakeet-server 0.4.0" || {help_text}'))
    assert (facts["kind"], facts["version"]) == ("asr", "0.4.0")


def test_an_upscaler_that_knows_no_long_flag_is_known_by_what_it_prints_instead(script, prober):
    body = """echo "$0: invalid option -- '-'" >&2; echo 'Usage: realesrgan-ncnn-vulkan -i in -o out' >&2; exit 255"""
    facts = prober().probe(script(body))
    assert (facts["kind"], facts["problem"]) == ("upscale", "")


def test_a_hostile_help_is_bounded():
    text = "\n".join(f"--flag{number} x" for number in range(5000)) + "\n--" + "x" * 5000
    facts = program_facts(text, "version: " + "9" * 5000)
    assert len(facts.flags) == 1000
    assert len(facts.version) == 60
    assert len(program_devices("\n".join(f"CUDA{number}: card" for number in range(5000)))) == 64


def test_a_listing_of_audio_cpp():
    found = program_devices('audio.cpp 1.0\nVulkan:0 "Radeon 780M" [IGPU]\nVulkan:1 "RX 7900 XTX" [GPU]\n2 devices')
    assert [(device.id, device.tag) for device in found] == [("Vulkan:0", "IGPU"), ("Vulkan:1", "GPU")]


@pytest.fixture
def registered(host, actor, script, django_capture_on_commit_callbacks):
    """`registered(kind, body)` is a backend that was asked what it is, through the job."""

    def backend(kind, body, name="server"):
        with django_capture_on_commit_callbacks(execute=True):
            row = add_backend(host=host, values=BackendValues(kind, script(body, name)), actor=actor)
        row.refresh_from_db()
        return row

    return backend


def test_registering_one_asks_it_what_it_is(registered):
    row = registered("llama", LLAMA)
    job = Job.objects.get(kind="probe_backend")
    assert (job.state, job.result) == ("succeeded", {"programs": 1, "refused": 0})
    assert (row.version, row.build, row.probe["kind"]) == ("6524", "0a1b2c3", "llama")
    assert row.probed_at


def test_one_of_another_kind_is_refused_and_planned_with_no_more(registered, host):
    row = registered("ttscpp", QWENTTS, "tts-server")
    assert convert.is_refused(row)
    assert convert.core_settings(get_host(host.slug)).backends == ()
    assert Job.objects.get(kind="probe_backend").result["refused"] == 1


def test_a_failed_probe_keeps_what_was_known(registered, host, actor, django_capture_on_commit_callbacks):
    row = registered("llama", LLAMA)
    os.unlink(row.path)
    with django_capture_on_commit_callbacks(execute=True):
        start_backend_probe(host=host, backends=[row], actor=actor)
    row.refresh_from_db()
    assert "not there" in row.probe["problem"]
    assert row.version == "6524"
    assert row.probe["flags"]
    assert convert.core_settings(get_host(host.slug)).server_exe == row.path
    assert Job.objects.filter(kind="probe_backend").first().state == "succeeded_with_warnings"


@pytest.mark.parametrize(
    "lie",
    [
        {"flags": ["<script>"]},
        {"flags": ["--x"] * 5000},
        {"devices": [{"id": 3, "name": "x"}]},
        {"devices": [{"id": "CUDA0", "name": "x"}] * 65},
        {"banner_sha256": "no digest"},
        {"size_bytes": -1},
        {"problem": None},
        {"number": "1"},
    ],
)
def test_a_report_that_is_not_as_agreed_changes_nothing(
    host, actor, monkeypatch, lie, django_capture_on_commit_callbacks
):
    row = Backend.objects.create(host=host, slug="a", kind="llama", path="/opt/a")
    honest = {"number": row.pk, "path": "/opt/a", "problem": "", "kind": "llama", "flags": ["--port"]}
    report = {"programs": [{**honest, **lie}]}
    monkeypatch.setattr(host_tasks.backend_probing.Prober, "probe", lambda *args, **more: {**honest, **lie})
    with django_capture_on_commit_callbacks(execute=True):
        start_backend_probe(host=host, backends=[row], actor=actor)
    job = Job.objects.get(kind="probe_backend")
    row.refresh_from_db()
    assert row.probe == {}, (job.state, report)
    assert job.state == "failed"


def test_a_report_about_a_path_that_was_changed_meanwhile_is_dropped(host, actor, monkeypatch):
    row = Backend.objects.create(host=host, slug="a", kind="llama", path="/opt/a")
    Device.objects.create(host=host, index=0, name="card")
    from models_app.services.backend_probes import store_probes

    job = Job(kind="probe_backend", host=host)
    data = {"programs": [{"number": row.pk, "path": "/opt/other", "problem": "", "flags": ["--port"]}]}
    assert store_probes(job=job, data=data)["programs"] == 1
    row.refresh_from_db()
    assert row.probe == {}


@pytest.mark.llama
@pytest.mark.xdist_group("llama")
def test_a_real_llama_server(prober, tmp_path):
    server = os.path.join(os.environ["QM_LLAMA_BIN"], "llama-server")
    facts = prober(permitted="/").probe(server)
    assert facts["problem"] == ""
    assert facts["kind"] == "llama"
    assert facts["version"]
    assert {"--device", "--n-gpu-layers", "--ctx-size", "--slot-save-path"} <= set(facts["flags"])
    assert len(facts["flags"]) > 300
    assert facts["devices"] == []


def test_a_build_that_was_replaced_in_its_place_is_noticed_with_the_next_planning_a_day_later(
    registered, host, django_capture_on_commit_callbacks
):
    row = registered("llama", LLAMA)
    with django_capture_on_commit_callbacks(execute=True):
        probe_when_due(host)
    assert Job.objects.filter(kind="probe_backend").count() == 1, "asked just now"
    with open(row.path, "a") as stream:
        stream.write("# another build\n")
    with open(row.path) as stream:
        text = stream.read()
    with open(row.path, "w") as stream:
        stream.write(text.replace("6524", "7000"))
    Backend.objects.update(probed_at=timezone.now() - timedelta(days=2))
    with django_capture_on_commit_callbacks(execute=True):
        probe_when_due(host)
    row.refresh_from_db()
    assert row.version == "7000"


def test_a_host_that_is_away_is_not_asked(registered, host):
    registered("llama", LLAMA)
    Backend.objects.update(probed_at=None)
    type(host).objects.update(last_seen_at=None)
    host.refresh_from_db()
    probe_when_due(host)
    assert Job.objects.filter(kind="probe_backend").count() == 1
