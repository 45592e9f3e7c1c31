from __future__ import annotations

import pytest
from django.core.management import call_command


@pytest.mark.django_db
def test_no_migration_is_missing():
    call_command("makemigrations", check=True, dry_run=True, verbosity=0)


def test_one_initial_migration_an_app():
    from pathlib import Path

    root = Path(__file__).resolve().parents[2]
    for folder in ("gpus_app", "models_app", "quartermaster_site/access", "quartermaster_site/jobs"):
        names = sorted(path.name for path in (root / folder / "migrations").glob("0*.py"))
        assert names[0] == "0001_initial.py"


@pytest.mark.django_db
def test_the_system_checks_are_quiet():
    call_command("check", databases=["default"], fail_level="WARNING")
