"""The one tokenizer of launch texts, and its inverse (launch.md 7)."""

from __future__ import annotations

import re
import shlex
from typing import NamedTuple

from models_app.core.errors import LaunchError

POSIX = "posix"
WINDOWS = "windows"

_PLAIN = re.compile(r"[^\s\"'\\]+")
_ESCAPED = re.compile(r"\"|\\(?=[\"\\]|$)")
_SPECIAL = re.compile(r"[\"'\\#]|[^\t\n -~]")
"""What needs more than splitting at blanks; most lines hold none of it."""
_BLANKS = " \t\r\n\v\f"


def rules_for(os_family: str) -> str:
    """The rules by which programs of an operating system (linux, darwin, windows) split a command."""
    return WINDOWS if os_family == "windows" else POSIX


class FlagToken(NamedTuple):
    """A token that starts with `-`, taken apart. Only `--name=value` has an inline value."""

    name: str
    value: str
    inline: bool


def is_flag(token: str) -> bool:
    return token.startswith("-")


def split_flag_token(token: str) -> FlagToken:
    """`--name=value` splits at the first `=`; a single-dash token never does."""
    if token.startswith("--"):
        name, mark, value = token.partition("=")
        return FlagToken(name, value, bool(mark))
    return FlagToken(token, "", False)


def is_comment(line: str) -> bool:
    return line.lstrip().startswith("#")


def command_lines(text: str) -> list[str]:
    """The lines of a launch text that hold arguments: no comments, no blank lines, line joins removed.

    A trailing backslash only joins lines, and whatever follows a line is a separator anyway.
    """
    lines = []
    for line in text.replace("\r\n", "\n").split("\n"):
        line = line.rstrip("\r")
        if is_comment(line):
            continue
        if line.strip().endswith("\\"):
            line = line.rstrip()[:-1].rstrip()
        if line.strip():
            lines.append(line)
    return lines


def split_command(text: str, rules: str = POSIX) -> list[str]:
    """The words of a launch text. Raises `LaunchError` for an open quote and for a text without a word."""
    if not _SPECIAL.search(text) and text.strip():
        return text.split()
    joined = "\n".join(
        f"{line.strip()[:-1]} " if line.strip().endswith("\\") else line
        for line in text.split("\n")
        if not is_comment(line)
    )
    if rules == WINDOWS:
        words = _split_windows(joined)
    else:
        try:
            words = shlex.split(joined, comments=False, posix=True)
        except ValueError as error:
            raise LaunchError(f"cannot split the command: {str(error).lower()}") from error
    if not words:
        raise LaunchError("empty command")
    return words


def _split_windows(text: str) -> list[str]:
    """Words by the rules of Windows: a backslash is literal unless it escapes a double quote."""
    words: list[str] = []
    word: list[str] | None = None
    quoted = False
    index = 0
    while index < len(text):
        char = text[index]
        if char == "\\" and text[index + 1 : index + 2] == '"':
            word = [*(word or []), '"']
            index += 1
        elif char == '"':
            quoted = not quoted
            word = word or []
        elif char in _BLANKS and not quoted:
            if word is not None:
                words.append("".join(word))
            word = None
        else:
            word = word if word is not None else []
            word.append(char)
        index += 1
    if quoted:
        raise LaunchError("cannot split the command: no closing quotation")
    if word is not None:
        words.append("".join(word))
    return words


def quote(token: str, rules: str = POSIX) -> str:
    """`token` as one word of a command text: as it is where that is safe, else in double quotes.

    Where no backslash stands before a quote, another backslash or the end, both rules read the same form alike.
    """
    if _PLAIN.fullmatch(token) and not token.startswith("#"):
        return token
    if rules == WINDOWS:
        inside = token.rstrip("\\")  # a backslash before the closing quote would escape it
        return '"' + inside.replace('"', '\\"') + '"' + token[len(inside) :]
    return '"' + _ESCAPED.sub(r"\\\g<0>", token) + '"'


def join_tokens(tokens: list[str], rules: str = POSIX) -> str:
    return " ".join(quote(token, rules) for token in tokens)
