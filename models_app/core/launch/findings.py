"""What is worth saying about a person's launch text before it runs (launch.md 11, 14, 15; web.md 5.5)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from models_app.core.errors import LaunchError
from models_app.core.fields import OVERRIDE_FIELDS
from models_app.core.launch.compose import inline_warnings
from models_app.core.launch.flag_table import FlagTable, Word, read_words
from models_app.core.launch.ownership import fields_behind, owned_by
from models_app.core.launch.tokens import POSIX, split_command
from models_app.core.launch.validate import UNKNOWN, plumbing_warnings, validate_tokens

BAD, WARN, NOTE = "bad", "warn", "note"
_SHELL = re.compile(r"^(?:\||\|\||&&?|;|[0-9]?>{1,2}.*|<.*)$|\$\{?[A-Za-z_]")
_SECRET = re.compile(r"(?i)api-key|token$|secret|password")
_ROUTER_PORT = "${PORT}"


@dataclass(frozen=True, slots=True)
class TextFinding:
    """One remark. `argument` is the flag or word as typed; `word` says the severity, `suggestions` what was meant."""

    level: str
    word: str
    argument: str
    text: str
    suggestions: tuple[str, ...] = ()


def text_findings(
    table: FlagTable,
    text: str,
    *,
    is_moe: bool | None = None,
    has_tiers: bool = False,
    help_spellings: Sequence[str] | None = None,
    rules: str = POSIX,
) -> tuple[TextFinding, ...]:
    """Remarks about a text, the worst first. `help_spellings` is None where the build's help was not read."""
    if not text.strip():
        return ()
    try:
        words = read_words(table, split_command(text, rules))
    except LaunchError as error:
        reason = f"The text cannot be taken apart: {error}. It is appended as it is, and owns nothing."
        return (TextFinding(BAD, "broken", "", reason),)
    found = [
        *_unknown(table, words, help_spellings),
        *_plumbing(words),
        *(TextFinding(WARN, "warning", "", f"{message}.") for message in inline_warnings(table, words)),
        *_secrets(words),
        *_flattened(words, has_tiers),
        *_shell(words),
        *_owned(words, is_moe),
    ]
    order = (BAD, WARN, NOTE)
    return tuple(sorted(found, key=lambda finding: order.index(finding.level)))


def _unknown(table: FlagTable, words: Sequence[Word], help_spellings: Sequence[str] | None) -> list[TextFinding]:
    issues = validate_tokens(table, [word.text for word in words], help_spellings)
    return [
        TextFinding(BAD if issue.kind == UNKNOWN else WARN, issue.kind, issue.token, issue.message, issue.suggestions)
        for issue in issues
    ]


def _plumbing(words: Sequence[Word]) -> list[TextFinding]:
    flags = {word.row.knob: word.text for word in words if word.row is not None and not word.is_value}
    return [
        TextFinding(WARN, "warning", flags.get(knob, ""), f"This belongs to the router: {consequence}.")
        for knob, consequence in plumbing_warnings(owned_by(words))
    ]


def _secrets(words: Sequence[Word]) -> list[TextFinding]:
    text = "This looks like a secret. It is masked on pages and in the audit log, and stands readable in the config."
    flags = (word.flag.name for word in words if word.flag is not None and not word.is_value)
    return [TextFinding(WARN, "warning", name, text) for name in flags if _SECRET.search(name)]


def _flattened(words: Sequence[Word], has_tiers: bool) -> list[TextFinding]:
    if not has_tiers:
        return []
    text = "Every context tier, and every variant without a text of its own, gets this one window."
    return [
        TextFinding(WARN, "warning", word.text, text)
        for word in words
        if word.row is not None and word.row.knob == "ctx" and not word.is_value
    ]


def _shell(words: Sequence[Word]) -> list[TextFinding]:
    text = "No shell reads this: it reaches the server as a plain word."
    return [
        TextFinding(NOTE, "note", word.text, text)
        for word in words
        if word.flag is None and _SHELL.search(word.text) and _ROUTER_PORT not in word.text
    ]


def _owned(words: Sequence[Word], is_moe: bool | None) -> list[TextFinding]:
    labels = {field.key: field.label for field in OVERRIDE_FIELDS}
    found = []
    for word in words:
        if word.row is None or word.is_value or word.row.additive:
            continue
        names = " and ".join(f"“{labels[field.key]}”" for field in fields_behind(word.row.knob, is_moe))
        if names:
            text = f"Owns {names}: that setting is locked while this text applies."
            found.append(TextFinding(NOTE, "note", word.text, text))
    return found
