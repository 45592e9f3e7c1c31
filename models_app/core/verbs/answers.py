"""How verbs answer: one JSON object a line, errors in the place of a result, names fit for a terminal."""

from __future__ import annotations

import json
from typing import Any, TextIO

from models_app.core.errors import HeaderError, QuartermasterError, UsageError

OK, FAILED, USAGE = 0, 1, 2
"""Exit codes."""


def write_json(stream: TextIO, answer: Any) -> None:
    """One object, one line, ASCII only: a path that is no valid text survives as escapes."""
    stream.write(json.dumps(answer, separators=(",", ":")) + "\n")
    stream.flush()


def failure(file: str, error: QuartermasterError) -> dict[str, Any]:
    """What stands in the place of a file's result."""
    if isinstance(error, HeaderError):
        details = {"code": error.code, "message": error.message, "offset": error.offset}
    else:
        code = "usage" if isinstance(error, UsageError) else "failed"
        details = {"code": code, "message": str(error), "offset": None}
    return {"file": file, "error": details}


def shown(text: str) -> str:
    """A name for a terminal: no control characters, no broken surrogates, one line."""
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)
