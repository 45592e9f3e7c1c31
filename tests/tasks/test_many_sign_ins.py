"""A hundred sign-ins at once from one address, against two real processes that share only the cache."""

from __future__ import annotations

import http.client
import re
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from urllib.parse import urlencode

import pytest

from tests.tasks.test_up import environment, free_port
from tests.tasks.workers import ROOT

pytestmark = [pytest.mark.worker, pytest.mark.slow]
PASSWORD = "correct horse battery"
PREPARE = f"""
import django
django.setup()
from django.core.management import call_command
call_command("migrate", verbosity=0)
call_command("createcachetable", verbosity=0)
from django.contrib.auth.models import User
from quartermaster_site.access.models import Account
Account.objects.create(user=User.objects.create_user("ada", password={PASSWORD!r}), role="admin")
"""
ATTACKER, OWNER = "203.0.113.9", "198.51.100.7"


class Site:
    """Answers behind a proxy that says who asks."""

    def __init__(self, port: int) -> None:
        self.port = port
        status, headers, body = self.ask("GET", OWNER)
        assert status == 200
        token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', body)
        cookie = re.search(r"csrftoken=[^;]+", headers["Set-Cookie"])
        assert token
        assert cookie
        self.token, self.cookie = token[1], cookie[0]

    def ask(
        self, method: str, address: str, body: str = "", **headers: str
    ) -> tuple[int, http.client.HTTPMessage, str]:
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)) as connection:
            connection.request(method, "/login/", body, {**headers, "X-Forwarded-For": address})
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read().decode()

    def sign_in(self, address: str, password: str) -> tuple[int, http.client.HTTPMessage]:
        form = urlencode({"csrfmiddlewaretoken": self.token, "login": "ada", "password": password})
        kind = "application/x-www-form-urlencoded"
        return self.ask("POST", address, form, **{"Content-Type": kind, "Cookie": self.cookie})[:2]


@pytest.fixture
def site(tmp_path):
    data_dir, port = tmp_path / "data", free_port()
    settings = {"QM_TRUSTED_PROXIES": "127.0.0.1", "DJANGO_SETTINGS_MODULE": "quartermaster_site.settings"}
    variables = environment(data_dir) | settings | {"QM_DEBUG": "1"}  # pages need no collected files then
    subprocess.run([sys.executable, "-c", PREPARE], env=variables, cwd=ROOT, check=True, capture_output=True)
    options = ["--bind", f"127.0.0.1:{port}", "--worker-class", "gthread", "--workers", "2", "--threads", "8"]
    command = [sys.executable, "-m", "gunicorn", "quartermaster_site.wsgi:application", *options, "--no-control-socket"]
    with open(tmp_path / "log", "w") as log:
        server = subprocess.Popen(command, env=variables, cwd=ROOT, stderr=log, stdout=log)
    try:
        yield _when_up(port)
    finally:
        server.terminate()
        server.wait(20)


def _when_up(port: int) -> Site:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            return Site(port)
        except OSError:
            time.sleep(0.2)
    raise AssertionError("the server did not start")


def test_a_hundred_at_once_from_one_address(site, tmp_path):
    """Five are checked, whatever the client writes into the header; the owner of the name signs in meanwhile."""
    with ThreadPoolExecutor(100) as pool:
        attempts = [pool.submit(site.sign_in, f"192.0.2.{n}, {ATTACKER}", "wrong") for n in range(100)]
        owner = site.sign_in(OWNER, PASSWORD)[0]
        answers = [attempt.result() for attempt in attempts]
    assert owner == 302
    assert Counter(status for status, _ in answers) == {200: 5, 429: 95}
    assert all(0 < int(headers["Retry-After"]) <= 300 for status, headers in answers if status == 429)
    with closing(sqlite3.connect(tmp_path / "data" / "quartermaster.sqlite3")) as database:
        entries = Counter(
            database.execute(
                "SELECT address, result, reason LIKE 'throttled%' FROM access_auditentry WHERE action = 'sign-in'"
            )
        )
    assert entries == {(ATTACKER, "refused", 0): 5, (ATTACKER, "refused", 1): 1, (OWNER, "ok", 0): 1}
    assert site.sign_in(ATTACKER, PASSWORD)[0] == 429
