"""`${…}` in values: routers expand it, so text from files and people must not hold it (config-yaml.md 10.1, 12.7)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from models_app.core.export.document import Entry, texts_of
from models_app.core.launch.macros import PORT, unsafe_macro

RESERVED = frozenset({"PID", "PORT", "MODEL_ID"})
MACRO = re.compile(r"\$\{([A-Za-z0-9_-]+)\}")
ENVIRONMENT = "${env."
ENVIRONMENT_NAME = re.compile(r"\$\{env\.([A-Za-z_][A-Za-z0-9_]*)\}")

EXPECTED = {"proxy": PORT, "cmdStop": "${PID}"}
"""Field -> the macro that belongs there."""
REFERENCE_FIELDS = frozenset({"cmdStop", "proxy", "checkEndpoint", "filters", "name", "description", "metadata"})
"""Besides `cmd`: where the reference's reader looks for macros. Environment macros it takes anywhere."""


def neutral(text: str) -> str:
    """The text with its macros taken apart, for comments."""
    return text.replace("${", "$ {")


def macro_in_entry(entry: Entry, everywhere: bool) -> str:
    """The first macro that a reader would expand in an entry, other than the one `${PORT}` of its command and what a
    person means where it belongs: the port in an address, the process in what stops it.

    `everywhere` is today's llama-swap; without it only the fields of the reference are searched.
    """
    command = " ".join(entry.command)
    once = command.count(PORT) == 1
    if found := unsafe_macro(command, allow_port=once):
        return found
    for name, text in _searched(entry, everywhere):
        expected = EXPECTED.get(name, "") if once else ""
        if found := unsafe_macro(text.replace(expected, "") if expected else text):
            return found
    return ENVIRONMENT if any(ENVIRONMENT in text for text in (entry.id, *texts_of(entry.fields))) else ""


def _searched(entry: Entry, everywhere: bool) -> Iterator[tuple[str, str]]:
    """Every text with the name of its field."""
    if everywhere:
        yield "", entry.id
    for name, value in entry.fields.items():
        if everywhere or name in REFERENCE_FIELDS:
            yield from ((name, text) for text in texts_of(value))
