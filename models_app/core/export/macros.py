"""`${…}` in values: routers expand it, so text from files and people must not hold it (config-yaml.md 10.1, 12.7)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from models_app.core.export.document import Entry, texts_of

PORT = "${PORT}"
RESERVED = frozenset({"PID", "PORT", "MODEL_ID"})
MACRO = re.compile(r"\$\{([A-Za-z0-9_-]+)\}")
ENVIRONMENT = re.compile(r"\$\{env\.")
ENVIRONMENT_NAME = re.compile(r"\$\{env\.([A-Za-z_][A-Za-z0-9_]*)\}")

REFERENCE_FIELDS = frozenset({"cmdStop", "proxy", "checkEndpoint", "filters", "name", "description", "metadata"})
"""Besides `cmd`: where the reference's reader looks for macros. Environment macros it takes anywhere."""


def found_macro(text: str) -> str:
    """The first macro in a text, "" for none."""
    found = MACRO.search(text) or ENVIRONMENT.search(text)
    return found[0] if found else ""


def neutral(text: str) -> str:
    """The text with its macros taken apart, for comments."""
    return text.replace("${", "$ {")


def macro_in_entry(entry: Entry, everywhere: bool) -> str:
    """The first macro that a reader would expand in an entry, other than the one `${PORT}` of its command.

    `everywhere` is today's llama-swap; without it only the fields of the reference are searched.
    """
    command = " ".join(entry.command)
    if command.count(PORT) == 1:
        command = command.replace(PORT, "")
    for text in _searched(entry, command, everywhere):
        if found := found_macro(text):
            return found
    return _environment_macro(entry)


def _searched(entry: Entry, command: str, everywhere: bool) -> Iterator[str]:
    yield command
    if everywhere:
        yield entry.id
    for name, value in entry.fields.items():
        if everywhere or name in REFERENCE_FIELDS:
            yield from texts_of(value)


def _environment_macro(entry: Entry) -> str:
    for text in (entry.id, *texts_of(entry.fields)):
        if found := ENVIRONMENT.search(text):
            return found[0]
    return ""
