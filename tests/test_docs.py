"""Documentation held true: settings, process variables, verbs, registries and links."""

from __future__ import annotations

import getpass
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from models_app.core.classes import CLASSES
from tests.documents import DOCS, PAGES

ROOT = DOCS.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", PAGES)
def test_generated_pages_are_current(name):
    assert (DOCS / name).read_text(encoding="utf-8") == PAGES[name](), "run: python -m tests.documents"


def test_every_process_variable_is_documented():
    source = (ROOT / "quartermaster_site" / "env.py").read_text(encoding="utf-8")
    named = {name.removesuffix("_FILE") for name in re.findall(r'"(QM_[A-Z_]+)"', source)}
    page = (DOCS / "process.md").read_text(encoding="utf-8")
    assert sorted(name for name in named if f"`{name}`" not in page) == []


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd here")
def test_systemd_understands_the_unit(tmp_path):
    """With this user and this checkout in the place of those that the page names."""
    (unit,) = re.findall(r"```ini\n(.*?)```", (DOCS / "agents.md").read_text(encoding="utf-8"), re.S)
    unit = unit.replace("User=quartermaster", f"User={getpass.getuser()}").replace("/opt/quartermaster", str(ROOT))
    file = tmp_path / "quartermaster-agent.service"
    file.write_text(unit, encoding="utf-8")
    ran = subprocess.run(["systemd-analyze", "verify", str(file)], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")


def test_every_verb_is_documented():
    usage = subprocess.run([str(ROOT / "quartermaster"), "--help"], capture_output=True, text=True, check=True).stdout
    verbs = re.findall(r"^  ([a-z]+) ", usage, re.M)
    page = (DOCS / "commands.md").read_text(encoding="utf-8")
    assert len(verbs) > 8
    assert [verb for verb in verbs if f"`{verb}" not in page and f"## {verb}" not in page] == []


def test_every_class_is_in_the_formats_page():
    page = (DOCS / "formats.md").read_text(encoding="utf-8")
    assert [entry.slug for entry in CLASSES if f"`{entry.slug}`" not in page] == []


@pytest.mark.parametrize("page", [ROOT / "README.md", *sorted(DOCS.glob("*.md"))], ids=lambda path: path.name)
def test_links_lead_somewhere(page: Path):
    text = page.read_text(encoding="utf-8")
    targets = [link.split("#")[0] for link in re.findall(r"\]\(([^)]+)\)", text) if "://" not in link]
    assert [target for target in targets if target and not (page.parent / target).exists()] == []


def test_readme_names_the_two_commands():
    assert "./quartermaster up --models" in README
    assert "./quartermaster test" in README
