"""The shape of the code: sizes of modules, functions and templates, purity of the cores, top-level folders."""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("models_app", "gpus_app", "quartermaster_site")
MODULE_LINES = 300
FUNCTION_LINES = 40
TEMPLATE_LINES = 150
FORBIDDEN_WORDS = {"utils", "helpers", "manager", "handler"}
TOP_LEVEL = {"quartermaster_site", "models_app", "gpus_app", "templates", "static", "tests", "docs", "bench", ".ci"}


def modules():
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            if "migrations" not in path.parts:
                yield path


MODULES = list(modules())
TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))


def label(path: Path) -> str:
    return str(path.relative_to(ROOT))


@functools.cache
def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@functools.cache
def functions_of(path: Path) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [
        node for node in ast.walk(ast.parse(text_of(path))) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def test_modules_stay_small():
    """A longer one: is it one thing?"""
    lines = {label(path): text_of(path).count("\n") for path in MODULES if not is_data(path)}
    assert not {name: count for name, count in lines.items() if count > MODULE_LINES}


def is_data(path: Path) -> bool:
    """A module that holds tables only (no function longer than a few lines) may be longer."""
    return sum(length(node) for node in functions_of(path)) <= 60


def length(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function without its docstring."""
    assert node.end_lineno is not None
    total = node.end_lineno - node.lineno + 1
    first = node.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        assert first.end_lineno is not None
        total -= first.end_lineno - first.lineno + 1
    return total


def test_functions_stay_small():
    assert not {
        f"{label(path)}: {node.name}": length(node)
        for path in MODULES
        for node in functions_of(path)
        if length(node) > FUNCTION_LINES
    }


def test_templates_stay_small():
    lines = {label(path): text_of(path).count("\n") for path in TEMPLATES}
    assert not {name: count for name, count in lines.items() if count > TEMPLATE_LINES}


def test_modules_say_what_they_own():
    """In a docstring, and with a name that means something."""
    said = {path: ast.get_docstring(ast.parse(text_of(path))) for path in MODULES if text_of(path).strip()}
    assert not [label(path) for path, words in said.items() if not words]
    assert not [label(path) for path in MODULES if path.stem in FORBIDDEN_WORDS]


def test_cores_import_without_django():
    """Every core module loads in a process where Django and Celery cannot be imported."""
    names = [
        label(path).removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        for path in MODULES
        if "core" in path.relative_to(ROOT).parts
    ]
    program = (
        "import sys, importlib\n"
        "for name in ('django', 'celery', 'kombu', 'redis'): sys.modules[name] = None\n"
        f"for name in {names!r}: importlib.import_module(name)\n"
    )
    result = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


def test_headless_start_is_fast_and_light():
    """Importing the command line pulls in neither YAML, JSON Schema nor psutil."""
    program = (
        "import sys, models_app.core.cli; print([n for n in ('yaml', 'jsonschema', 'psutil') if n in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_top_level_folders_are_the_fixed_ones():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.fail("the sources are not in a git checkout")
    folders = {line.split("/")[0] for line in listed.stdout.splitlines() if "/" in line}
    assert folders <= TOP_LEVEL


def test_only_env_reads_the_environment():
    """`QM_*` variables are read in `env.py` and in the command lines, nowhere else."""
    allowed = {"quartermaster_site/env.py", "models_app/core/cli.py", "models_app/spawn.py"}
    offenders = [
        label(path)
        for path in MODULES
        if "os.environ" in path.read_text(encoding="utf-8") and label(path) not in allowed
    ]
    assert not [name for name in offenders if not name.startswith("quartermaster_site/")]


def test_no_machine_paths_in_the_tree():
    pattern = r"/wor[k]/|/roo[t]/|pypi-mor[e]"
    found = subprocess.run(
        ["git", "grep", "-nIE", pattern, "--", ".", ":!*.lock"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert found.stdout == ""


def test_forms_with_a_token_see_the_request():
    """A part included with `only` has no token to put into its form, and a real server refuses the form."""
    folder = ROOT / "templates"
    for page in folder.rglob("*.html"):
        for part in re.findall(r'{% include "([^"]+)"[^%]* only %}', page.read_text(encoding="utf-8")):
            assert "csrf_token" not in (folder / part).read_text(encoding="utf-8"), (page, part)
