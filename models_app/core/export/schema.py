"""The JSON schemas of the dialects. Draft 7 is named: by llama-swap's `$schema` address the library picks another."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from jsonschema import Draft7Validator

FOLDER = Path(__file__).parent / "schemas"
MAX_PROBLEMS = 200
"""A file with more wrong places than this is not a router's file."""
MAX_SHOWN = 80


class Problem(NamedTuple):
    """One place that breaks the schema."""

    path: tuple[str | int, ...]
    message: str


@cache
def validator(dialect: str) -> Draft7Validator:
    """The validator of `<dialect>.json`. The library is heavy, so it is loaded only when something is validated."""
    from jsonschema import Draft7Validator

    schema = json.loads((FOLDER / f"{dialect}.json").read_text(encoding="utf-8"))
    return Draft7Validator(schema)


def problems(dialect: str, config: Any) -> Iterator[Problem]:
    """Everything the schema of a dialect forbids, at most `MAX_PROBLEMS`."""
    for count, error in enumerate(validator(dialect).iter_errors(config)):
        if count >= MAX_PROBLEMS:
            return
        yield Problem(tuple(error.absolute_path), _shortened(error.message))


def is_valid(dialect: str, config: Any) -> bool:
    return next(problems(dialect, config), None) is None


def _shortened(message: str) -> str:
    """The library quotes the whole wrong value: keep the end, which says what is wrong."""
    return message if len(message) <= 2 * MAX_SHOWN else f"{message[:MAX_SHOWN]} … {message[-MAX_SHOWN:]}"
