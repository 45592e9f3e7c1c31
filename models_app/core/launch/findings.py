"""What is worth saying about a person's launch text before it runs (launch.md 11, 14, 15; web.md 5.5)."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from models_app.core.errors import LaunchError
from models_app.core.fields import OVERRIDE_FIELDS
from models_app.core.launch.compose import inline_warnings
from models_app.core.launch.flag_table import FlagTable, Word, read_words
from models_app.core.launch.macros import PORT
from models_app.core.launch.ownership import fields_behind, owned_by
from models_app.core.launch.tokens import POSIX, command_lines, split_command
from models_app.core.launch.validate import PLUMBING, UNKNOWN, UNVERIFIED, plumbing_warnings, validate_tokens

BAD, WARN, NOTE = "bad", "warn", "note"
_SHELL = re.compile(r"^(?:\||\|\||&&?|;|[0-9]?>{1,2}.*|<.*)$|\$\{?[A-Za-z_]")
_SECRET = re.compile(r"(?i)api-key|token$|secret|password")
_UNREAD = "The help of this build was not read"
_PORT_TAKEN = (
    f" takes the port from the router, which starts each server on a port of its own and calls it there: no config "
    f"could be written. Leave it out, or give {PORT} as its value."
)
_PORT_TWICE = f"Custom launch arguments: {PORT} may stand only once, as the value of the flag of the port."


@dataclass(frozen=True, slots=True)
class TextFinding:
    """One remark. `argument` is the flag or word as typed, or several with blanks between; `word` says the severity,
    `suggestions` what was meant. With `confirm` a save asks first.
    """

    level: str
    word: str
    argument: str
    text: str
    suggestions: tuple[str, ...] = ()
    confirm: bool = False


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
    if not command_lines(text):
        return ()
    try:
        words = read_words(table, split_command(text, rules))
    except LaunchError as error:
        reason = f"The text cannot be taken apart: {error}. It owns nothing, and no config can be written with it."
        return (TextFinding(BAD, "broken", "", reason),)
    found = [
        *_unknown(table, words, help_spellings),
        *_loose(words),
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
    if help_spellings is None:
        return [_unread(dict.fromkeys(issue.token for issue in issues))]
    found = {issue.token: issue for issue in issues}  # a flag that stands twice is said once
    return [
        TextFinding(BAD, UNKNOWN, issue.token, issue.message, issue.suggestions, confirm=True)
        if issue.kind == UNKNOWN
        else TextFinding(WARN, "older build", issue.token, issue.message)
        for issue in found.values()
    ]


def _loose(words: Sequence[Word]) -> list[TextFinding]:
    """Words that belong to no flag, such as the program of a pasted command. Behind a flag whose number of values we do
    not know they may belong to it.
    """
    text = "This belongs to no flag, and the server ends at such a word. Of a pasted command, leave the program out."
    found: dict[str, TextFinding] = {}
    open_ended = False
    for word in words:
        if word.flag is not None:
            open_ended = word.row is None
        elif not word.is_value and not open_ended and not _SHELL.search(word.text):
            found.setdefault(word.text, TextFinding(BAD, "no flag", word.text, text, confirm=True))
    return list(found.values())


def _unread(names: Collection[str]) -> TextFinding:
    """The one remark where the help of the build is not known."""
    if not names:
        return TextFinding(NOTE, "note", "", f"{_UNREAD}: whether it has these flags is not known.")
    text = "This is not known to us, and the help of this build was not read: whether it is a flag cannot be told."
    return TextFinding(WARN, UNVERIFIED, " ".join(names), text)


def _plumbing(words: Sequence[Word]) -> list[TextFinding]:
    flags = {word.row.knob: word.text for word in words if word.row is not None and not word.is_value}
    return [
        TextFinding(
            WARN,
            "warning",
            flags.get(knob, ""),
            f"This belongs to the router: {consequence}.",
            confirm=knob != "port",  # the port is judged by `text_problem`: it is right or refused
        )
        for knob, consequence in plumbing_warnings(owned_by(words))
    ]


def doubtful_flags(table: FlagTable, words: Sequence[str], help_spellings: Sequence[str] | None) -> tuple[str, ...]:
    """Flags of a person's words, in their order, that a host's file is not written with unasked (V-08).

    Those that neither we nor the build know, and those that belong to the router. The port is right or refused.
    """
    read = read_words(table, words)
    issues = () if help_spellings is None else validate_tokens(table, words, help_spellings)
    unknown = {issue.token for issue in issues if issue.kind == UNKNOWN}
    doubtful = {
        word.flag.name: None
        for word in read
        if word.flag is not None
        and (word.flag.name in unknown or (word.row and word.row.knob in PLUMBING and word.row.knob != "port"))
    }
    return tuple(doubtful)


def text_problem(table: FlagTable, text: str, rules: str = POSIX) -> str:
    """Why no config could be written with this text, "" when one could: its quotations close, and the command has the
    port of the router exactly once.
    """
    if not command_lines(text):
        return ""
    try:
        words = read_words(table, split_command(text, rules))
    except LaunchError as error:
        return f"Custom launch arguments: {error}, so no config could be written. Close the quotation."
    named = sum(word.text.count(PORT) for word in words)
    flag = next((word.flag.name for word in words if word.flag and word.row and word.row.knob == "port"), "")
    if not flag:
        return _PORT_TWICE if named else ""
    if named == 1:
        return ""
    return _PORT_TWICE if named else f"Custom launch arguments: {flag}{_PORT_TAKEN}"


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
        if word.flag is None and _SHELL.search(word.text) and PORT not in word.text
    ]


def _owned(words: Sequence[Word], is_moe: bool | None) -> list[TextFinding]:
    """One remark for all flags that own a setting: a pasted command has dozens of them."""
    labels = {field.key: field.label for field in OVERRIDE_FIELDS}
    flags: dict[str, None] = {}  # in the order of the text, each once
    settings: dict[str, None] = {}
    for word in words:
        if word.row is None or word.is_value or word.row.additive:
            continue
        names = [f"“{labels[field.key]}”" for field in fields_behind(word.row.knob, is_moe)]
        if names:
            flags[word.text] = None
            settings.update(dict.fromkeys(names))
    if not flags:
        return []
    locked = "that setting is locked" if len(settings) == 1 else "these settings are locked"
    text = f"Owns {', '.join(settings)}: {locked} while this text applies."
    return [TextFinding(NOTE, "note", " ".join(flags), text)]
