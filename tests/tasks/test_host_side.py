"""The host side knows neither Django nor a database."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.tasks.workers import ROOT

WITHOUT_DJANGO = """
import sys

class NoDjango:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("django", "allauth", "csp"):
            raise ImportError(f"{name} is not here")

sys.meta_path.insert(0, NoDjango())
import gpus_app.host_tasks, models_app.host_tasks, models_app.program_search, models_app.target_look
import quartermaster_site.jobs.host_tasks
from quartermaster_site.celery import app
app.loader.import_default_modules()
print("\\n".join(sorted(name for name in app.tasks if not name.startswith("celery."))))
"""
TASKS = [
    "gpus_app.host_tasks.probe_devices",
    "gpus_app.sampling.keep_sampling",
    "models_app.host_tasks.ask_router",
    "models_app.host_tasks.browse_folder",
    "models_app.host_tasks.find_checker",
    "models_app.host_tasks.look_at_folders",
    "models_app.host_tasks.look_at_router",
    "models_app.host_tasks.probe_backends",
    "models_app.host_tasks.scan_folders",
    "models_app.host_tasks.test_launch",
    "models_app.host_tasks.verify_memory",
    "models_app.host_tasks.write_config",
    "models_app.import_file.fetch_file",
    "models_app.program_search.find_programs",
    "models_app.speech.ask_speech_server",
    "models_app.target_look.look_at_file",
    "models_app.target_look.look_at_target",
    "quartermaster_site.jobs.host_tasks.leave_cancel_mark",
]
A_QUERY = """
import os
os.environ["DJANGO_SETTINGS_MODULE"] = "quartermaster_site.settings"
import django
django.setup()
from django.core.exceptions import ImproperlyConfigured
from django.db import connection
from gpus_app.models import Host
print(connection.settings_dict["ENGINE"])
try:
    Host.objects.exists()
except ImproperlyConfigured:
    print("refused")
"""


@pytest.fixture
def run(tmp_path):
    def python(code):
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("QM_", "DJANGO_"))}
        env = {**clean, "QM_ROLE": "host", "QM_DATA_DIR": str(tmp_path / "data"), "PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            [sys.executable, "-c", code], env=env, cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.split()

    return python


def test_host_tasks_run_where_django_is_not_installed(run):
    assert run(WITHOUT_DJANGO) == TASKS


def test_even_with_django_there_is_no_database(run):
    assert run(A_QUERY) == ["django.db.backends.dummy", "refused"]
