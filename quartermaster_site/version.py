"""The product's version, from the one place that states it."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

PROTOCOL = 1
"""Of the messages between server and agents. It is raised when one side would no longer understand the other."""
PROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"


@cache
def product_version() -> str:
    """`development` where the project file is not beside the code."""
    try:
        with PROJECT.open("rb") as stream:
            return str(tomllib.load(stream)["project"]["version"])
    except (OSError, KeyError, tomllib.TOMLDecodeError):
        return "development"
