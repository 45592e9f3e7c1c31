"""What a flag table is: one row per flag of a server binary, found by any of its spellings (launch.md 6)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from models_app.core.launch.tokens import FlagToken, split_flag_token

_SCALED = re.compile(r":[-+]?\.?\d[^:/]*$")
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class FlagRow:
    """One flag. `knob` is the setting that it controls: rows of one knob replace each other.

    `values` counts the tokens that follow. An `additive` flag in a person's text leaves the generated ones in place.
    """

    canonical: str
    others: tuple[str, ...]
    knob: str
    values: int = 1
    additive: bool = False
    joined: bool = False
    """A first value that ends in `:SCALE` is the whole value: what current builds of llama-server read."""

    @property
    def spellings(self) -> tuple[str, ...]:
        return (self.canonical, *self.others)

    @property
    def long(self) -> str:
        """The first long spelling, else the canonical one."""
        return next((name for name in self.spellings if name.startswith("--")), self.canonical)


@dataclass(frozen=True, slots=True)
class FlagTable:
    """The flags of one binary. Rows keep their order: lists of knobs follow it."""

    name: str
    rows: tuple[FlagRow, ...]
    folds_underscores: bool = False
    """In tokens that start with `--` the binary reads `_` as `-`."""
    by_spelling: dict[str, FlagRow] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        index: dict[str, FlagRow] = {}
        for row in self.rows:
            for spelling in row.spellings:
                if spelling in index:
                    raise ValueError(f"{self.name}: {spelling} is in the table twice")
                index[spelling] = row
        object.__setattr__(self, "by_spelling", index)

    def lookup(self, spelling: str) -> FlagRow | None:
        """The row of a spelling, None for a flag that the table does not know."""
        return self.by_spelling.get(self.folded(spelling))

    def folded(self, spelling: str) -> str:
        """A spelling as the binary looks it up."""
        return spelling.replace("_", "-") if self.folds_underscores and spelling.startswith("--") else spelling

    @property
    def knobs(self) -> tuple[str, ...]:
        """All knobs, in table order, each once."""
        return tuple(dict.fromkeys(row.knob for row in self.rows))


@dataclass(frozen=True, slots=True)
class Word:
    """One token of a command with what the table says about it.

    `row` is the flag it is (or, with `is_value`, the flag it belongs to); None for words of no known flag.
    """

    text: str
    row: FlagRow | None = None
    flag: FlagToken | None = None
    is_value: bool = False


def read_words(table: FlagTable, tokens: Iterable[str]) -> list[Word]:
    """Each token in order. A known flag takes its values even when they start with `-`; an unknown flag takes none."""
    words: list[Word] = []
    owner: FlagRow | None = None
    pending, complete = 0, False
    for token in tokens:
        if pending and not (complete and not _NUMBER.fullmatch(token)):
            words.append(Word(token, owner, is_value=True))
            # `FNAME:SCALE` is all, unless a number follows: then the name of the file only looks like it.
            complete = owner is not None and owner.joined and bool(_SCALED.search(token))
            pending -= 1
            continue
        pending, complete = 0, False
        if not token.startswith("-"):
            words.append(Word(token))
            continue
        flag = split_flag_token(token)
        owner = table.lookup(flag.name)
        words.append(Word(token, owner, flag))
        if owner is not None and not flag.inline:
            pending = owner.values
    return words


def row(spec: str, knob: str, values: int = 1, *, additive: bool = False, joined: bool = False) -> FlagRow:
    """A table row from its spellings, canonical first, separated by blanks."""
    canonical, *others = spec.split()
    return FlagRow(canonical, tuple(others), knob, values, additive, joined)
