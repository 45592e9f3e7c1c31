"""A person's launch text laid over the generated lines (launch.md 9)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from models_app.core.catalog import ArgToken
from models_app.core.errors import LaunchError
from models_app.core.launch.flag_table import FlagTable, Word, read_words
from models_app.core.launch.ownership import owned_by
from models_app.core.launch.tokens import POSIX, command_lines, join_tokens, split_command

GENERATED = "generated"
CUSTOM = "custom"
REPLACED = "replaced"
PLUMBING = {"model", "diffusionModel", "port"}
"""Knobs without which no server could be reached, or serve the model that was asked for."""


@dataclass(frozen=True, slots=True)
class Composition:
    """The command that will run, and where each of its words comes from.

    `tokens` are all generated words, replaced ones included, then the custom ones; values of a kept flag have no knob.
    `error` says why the text could not be taken apart; it is then appended as it is, and owns nothing.
    """

    lines: tuple[str, ...]
    tokens: tuple[ArgToken, ...]
    owned: frozenset[str] = frozenset()
    generated: str = ""
    custom: str = ""
    error: str = ""
    warnings: tuple[str, ...] = ()
    alone: bool = False
    """The text is the whole command."""

    @property
    def effective(self) -> str:
        return " ".join(self.lines)

    @property
    def argv(self) -> tuple[str, ...]:
        return tuple(token.text for token in self.tokens if token.source != REPLACED)

    @property
    def replaced(self) -> tuple[str, ...]:
        return tuple(token.text for token in self.tokens if token.source == REPLACED)


def compose(
    table: FlagTable, lines: Sequence[str], text: str, rules: str = POSIX, *, alone: bool = False
) -> Composition:
    """Generated lines without what the text owns, then the text without its comment lines.

    With `alone` the text is the whole command: of the generated lines only program, model and port stay, those that the
    text does not name.
    """
    alone = alone and bool(command_lines(text))
    if alone:
        lines = plumbing(table, lines, rules)
    custom_lines = command_lines(text)
    generated = " ".join(lines)
    if not custom_lines:
        return Composition(tuple(lines), _tokens_of(table, lines, rules), generated=generated, custom=text)
    base = Composition(tuple(lines), (), generated=generated, custom=text, alone=alone)
    try:
        argv = split_command(text, rules)
    except LaunchError as error:
        tokens = _tokens_of(table, lines, rules)
        return replace(base, lines=(*lines, *custom_lines), tokens=tokens, error=str(error))
    if _splits_differently(custom_lines, argv, rules):
        custom_lines = [join_tokens(argv, rules)]
    return _laid_over(base, table, read_words(table, argv), custom_lines, rules)


def _laid_over(
    base: Composition, table: FlagTable, words: Sequence[Word], custom_lines: Sequence[str], rules: str
) -> Composition:
    """The generated lines of `base` without what the words own, and the words behind them."""
    owned = owned_by(words)
    kept: list[str] = []
    tokens: list[ArgToken] = []
    for line in base.lines:
        rest, line_tokens = _without_owned(table, line, owned, rules)
        tokens += line_tokens
        if rest:
            kept.append(rest)
    tokens += [_token(word, CUSTOM) for word in words]
    warnings = inline_warnings(table, words)
    return replace(base, lines=(*kept, *custom_lines), tokens=tuple(tokens), owned=owned, warnings=warnings)


def plumbing(table: FlagTable, lines: Sequence[str], rules: str = POSIX) -> list[str]:
    """The program, and the lines that name its model and port."""
    program, *others = lines
    return [program, *(line for line in others if _knobs(table, line, rules) <= PLUMBING)]


def _knobs(table: FlagTable, line: str, rules: str) -> set[str]:
    words = _words_of_line(table, line, rules) or [Word(line)]
    return {word.row.knob if word.row is not None else word.text for word in words}


def _splits_differently(lines: list[str], argv: list[str], rules: str) -> bool:
    """Whether taking the comments and line joins out changed a word: a quote or an escape that spans lines."""
    try:
        return split_command("\n".join(lines), rules) != argv
    except LaunchError:
        return True


def inline_warnings(table: FlagTable, words: Iterable[Word]) -> tuple[str, ...]:
    """Warnings for `--flag=value`: llama-server looks up the whole token and refuses it (launch.md 15)."""
    if not table.folds_underscores:
        return ()
    return tuple(
        f"{word.flag.name}={word.flag.value} is refused by current builds of llama-server: "
        f"write {word.flag.name} {word.flag.value}"
        for word in words
        if word.flag is not None and word.flag.inline and word.row is not None
    )


def _words_of_line(table: FlagTable, line: str, rules: str) -> list[Word] | None:
    """The words of a generated line, None where it cannot be split."""
    try:
        return read_words(table, split_command(line, rules))
    except LaunchError:
        return None


def _without_owned(table: FlagTable, line: str, owned: frozenset[str], rules: str) -> tuple[str, list[ArgToken]]:
    """What is left of a line, and its tokens. A line that lost nothing keeps its exact bytes."""
    if not line.strip():
        return "", []
    words = _words_of_line(table, line, rules)
    if words is None:
        return line, [ArgToken(line)]
    kept: list[str] = []
    tokens: list[ArgToken] = []
    for word in words:
        if word.row is not None and word.row.knob in owned:
            tokens.append(ArgToken(word.text, REPLACED, word.row.knob))
        else:
            tokens.append(_token(word, GENERATED))
            kept.append(word.text)
    return (line if len(kept) == len(words) else join_tokens(kept, rules)), tokens


def _tokens_of(table: FlagTable, lines: Iterable[str], rules: str) -> tuple[ArgToken, ...]:
    return tuple(token for line in lines for token in _without_owned(table, line, frozenset(), rules)[1])


def _token(word: Word, source: str) -> ArgToken:
    knob = word.row.knob if word.row is not None and not word.is_value else ""
    return ArgToken(word.text, source, knob)
