"""`up --serve`: a router beside the pages, on the presets that are written, and a sentence where there is none."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path

import psutil
import pytest

from gpus_app.models import Backend, Host
from models_app.models import Publishing, Router
from models_app.services.serving import candidates, prepare_serving
from quartermaster_site import processes, serving, up
from quartermaster_site.errors import Refused
from tests.tasks.test_up import count, environment, free_port, refuse, said
from tests.tasks.workers import ROOT, wait_for
from tests.zoo import zoo

STAND_IN = f"""#!{sys.executable}
import json, re, sys
from http.server import BaseHTTPRequestHandler, HTTPServer
if "--help" in sys.argv:
    print("--models-preset PATH   presets")
    raise SystemExit
options = dict(zip(sys.argv[1::2], sys.argv[2::2]))
class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        names = re.findall(r"^\\[(.*)\\]$", open(options["--models-preset"]).read(), re.M)
        data = [{{"id": name, "source": "preset", "status": {{"value": "unloaded", "args": []}}}} for name in names]
        body = {{"role": "router", "max_instances": int(options["--models-max"]), "data": data}}
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())
print("listening", flush=True)
HTTPServer((options["--host"], int(options["--port"])), Handler).serve_forever()
"""


def get(url):
    with urllib.request.urlopen(url, timeout=10) as answer:
        return json.load(answer)


def start(data_dir, path, *arguments):
    return up_process(data_dir, {"PATH": f"{path}{os.pathsep}{os.environ['PATH']}"}, arguments)


def up_process(data_dir, more, arguments):
    return subprocess.Popen(
        [sys.executable, "-m", "quartermaster_site.up", *arguments],
        env=environment(data_dir) | more,
        cwd=ROOT,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture
def programs(tmp_path):
    """A folder with a llama-server that knows router mode."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "llama-server").write_text(STAND_IN)
    (folder / "llama-server").chmod(0o755)
    return folder


def serve_and_stop(data_dir, models, programs, check):
    port, router = free_port(), free_port()
    arguments = ["--models", str(models), "--port", str(port), "--serve", str(router)]
    process = start(data_dir, programs, *arguments)
    limit = threading.Timer(90, process.kill)
    limit.start()
    try:
        text = said(process, "the router runs at")
        assert f"http://127.0.0.1:{router}/" in text
        wait_for(lambda: answers(router), 20)
        check(f"http://127.0.0.1:{router}")
        wait_for(lambda: count(data_dir, "models_app_router", "seen_at IS NOT NULL") == 1, 30)
        children = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    finally:
        limit.cancel()
        process.kill()
    assert not psutil.wait_procs(children, timeout=5)[1]
    assert (data_dir / "logs" / "router.log").stat().st_size > 0


def answers(port):
    try:
        return bool(get(f"http://127.0.0.1:{port}/models"))
    except OSError:
        return False


@pytest.mark.worker
def test_from_a_folder_to_a_router_with_one_command(data_dir, tmp_path, programs):
    models = tmp_path / "models"
    models.mkdir()
    zoo.write_model("qwen3-0.6b-q8_0", str(models))
    seen = []
    serve_and_stop(data_dir, models, programs, lambda url: seen.extend(get(f"{url}/models")["data"]))
    assert [item["id"] for item in seen] == ["qwen3-0.6b-q8_0"]


@pytest.mark.llama
@pytest.mark.xdist_group("llama")
def test_a_real_router_answers(tmp_path):
    models = tmp_path / "models"
    zoo.write_model("qwen25-0.5b-f16", str(models))
    texts = []

    def ask(url):
        body = json.dumps({"model": "qwen25-0.5b-f16", "prompt": "hi", "max_tokens": 1}).encode()
        request = urllib.request.Request(f"{url}/v1/completions", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            texts.append(json.load(answer)["object"])

    serve_and_stop(tmp_path / "data", models, Path(os.environ["QM_LLAMA_BIN"]), ask)
    assert texts == ["text_completion"]


@pytest.mark.worker
def test_without_a_server_the_pages_come_all_the_same(data_dir, tmp_path):
    old = tmp_path / "old"
    old.mkdir()
    (old / "llama-server").write_text("#!/bin/sh\necho '--model PATH'\n")
    (old / "llama-server").chmod(0o755)
    process = start(data_dir, old, "--port", str(free_port()), "--serve", str(free_port()))
    try:
        text = said(process, "--serve:")
        assert "no llama-server with router mode is registered or on the search path" in text
        assert "running at" in text
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    finally:
        process.kill()


@pytest.mark.worker
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--serve", "--no-worker"], "--serve needs the worker of this machine"),
        (["--serve", "70000"], "a port is a number from 1 to 65535"),
        (["--serve", "8423", "--port", "8423"], "the pages have this port"),
    ],
)
def test_wrong_usage_is_one_sentence(tmp_path, arguments, message):
    more = [] if "--port" in arguments else ["--port", str(free_port())]
    code, text = refuse(tmp_path / "data", *arguments, *more)
    assert (code, text.count("\n")) == (2, 1)
    assert message in text


def test_it_is_off_by_default():
    assert up.parse([]).serve is None
    assert up.parse(["--serve"]).serve == 8080


def test_the_number_of_models_is_that_of_the_file(tmp_path):
    presets = tmp_path / "models.ini"
    for text, most in (
        ("; title\n; RUN: A=1 /x/llama-server --models-preset '/a b' --models-max 3 --host h\n", 3),
        ("; RUN: llama-server --models-max\n", 1),
        ("; RUN: 'open\n", 1),
        ("; RUN: x --models-max 0\n", 1),
        ("[a]\n", 1),
    ):
        presets.write_text(text)
        assert serving.models_max(presets) == most


def test_another_number_of_models_starts_the_router_again(tmp_path, programs, monkeypatch):
    monkeypatch.setenv("QM_DATA_DIR", str(tmp_path / "data"))
    presets, head = tmp_path / "models.ini", "; RUN: llama-server --models-max "
    presets.write_text(f"{head}2\n[a]\n")
    router = serving.Serving(str(programs / "llama-server"), presets, free_port())
    child = router.start_if_ready()
    try:
        assert router.follow(child) is None
        presets.write_text(f"{head}2\n[a]\n[b]\n")
        os.utime(presets, ns=(1, 1))
        assert router.follow(child) is None, "another text with the same number is the router's own affair"
        presets.unlink()
        assert router.follow(child) is None
        presets.write_text(f"{head}3\n[a]\n")
        os.utime(presets, ns=(2, 2))
        renewed = router.follow(child)
        assert renewed is not None
        assert not child.is_running
        child = renewed
        wait_for(lambda: answers(router.port), 20)
        assert get(f"{router.address}/models")["max_instances"] == 3
    finally:
        processes.stop_all([child])


def test_a_router_that_keeps_dying_leaves_the_rest(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(up, "_RESTART_PAUSE_SECONDS", 0.0)
    options = {"environment": {}, "folder": tmp_path, "log_folder": tmp_path}
    dead = processes.start("router", [sys.executable, "-c", "raise SystemExit(1)"], optional=True, **options)
    children = [dead]

    def stop_when_gone(_seconds):
        return not children

    monkeypatch.setattr(up._stopping, "wait", stop_when_gone)
    with pytest.raises(up.Stopped):
        up._watch(children)
    assert "the rest goes on without it" in capsys.readouterr().err


def test_a_host_without_a_target_gets_one(host):
    assert (
        prepare_serving(host, path="/data/router/models.ini", url="http://127.0.0.1:8080") == "/data/router/models.ini"
    )
    host.refresh_from_db()
    assert (host.publish_dialect, host.publish_path) == ("llama-server", "/data/router/models.ini")
    assert Publishing.objects.get().policy == "auto"
    assert Router.objects.get().url == "http://127.0.0.1:8080"
    prepare_serving(host, path="/data/router/models.ini", url="http://127.0.0.1:8081")
    assert Router.objects.get().url == "http://127.0.0.1:8081"


def test_a_target_of_a_person_stays(host):
    Host.objects.update(publish_path="/srv/config.yaml", publish_dialect="llama-swap")
    with pytest.raises(Refused, match="is for llama-swap"):
        prepare_serving(host, path="/data/router/models.ini", url="http://127.0.0.1:8080")
    assert not Router.objects.exists()
    Host.objects.update(publish_path="/srv/models.ini", publish_dialect="llama-server")
    Router.objects.create(host=host, url="http://router.example", version=1)
    assert prepare_serving(host, path="/x", url="http://127.0.0.1:8080") == "/srv/models.ini"
    assert Router.objects.get().url == "http://router.example"
    assert not Publishing.objects.exists()


def test_a_registered_server_comes_before_that_of_the_path(host, programs, monkeypatch):
    monkeypatch.setenv("PATH", str(programs))
    Backend.objects.create(host=host, slug="a", kind="llama", path="/opt/a/llama-server")
    Backend.objects.create(host=host, slug="b", kind="llama", path="/opt/b/llama-server", starred=True)
    Backend.objects.create(host=host, slug="c", kind="sd", path="/opt/c/sd-server")
    own = str(programs / "llama-server")
    assert candidates(host) == ["/opt/b/llama-server", "/opt/a/llama-server", own]
    assert serving.server_with_router(["/nowhere/llama-server", own]) == own
