"""A command of a file as settings of ours: known flags as fields where they differ from the plan, the rest as text."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from models_app.core.fields import Field
from models_app.core.launch.flag_table import FlagRow, FlagTable, read_words
from models_app.core.launch.tokens import join_tokens, quote
from models_app.core.plans.chosen import READABLE, typed_value
from models_app.core.state.values import field_problem

STEP_TOKENS = 4096
MODEL_KNOBS = frozenset({"model", "diffusionModel", "port"})


@dataclass(frozen=True, slots=True)
class Chunk:
    """A flag with its values as the file has them. `row` is None for a flag that the table does not know."""

    row: FlagRow | None
    words: tuple[str, ...]
    values: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[str, ...]:
        """What it says, whatever its spelling."""
        if self.row is None:
            return self.words
        return (self.row.knob, *self.values) if self.row.values else (self.row.knob, self.row.canonical)


def chunks(table: FlagTable, words: Sequence[str]) -> list[Chunk]:
    """The words of a command behind its program, flag by flag."""
    found: list[Chunk] = []
    for word in read_words(table, words):
        if found and (word.is_value or word.flag is None):
            last = found.pop()
            found.append(Chunk(last.row, (*last.words, word.text), (*last.values, word.text)))
        elif word.flag is None:
            found.append(Chunk(None, (word.text,)))
        else:
            found.append(Chunk(word.row, (word.text,), (word.flag.value,) if word.flag.inline else ()))
    return found


def text_of_chunks(found: Sequence[Chunk], rules: str) -> str:
    """One flag a line, words quoted only where they must be. A backslash at the end of a line would join it anyway."""
    lines: list[str] = []
    for chunk in found:
        line = join_tokens(list(chunk.words), rules)
        if lines and lines[-1].endswith("\\"):
            lines[-1] += f" {line}"
        else:
            lines.append(line)
    return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class AsSettings:
    """Fields by key, and what no field can say, in its order and spelling."""

    values: Mapping[str, Any]
    text: str


def as_settings(
    table: FlagTable, argv: Sequence[str], planned: Sequence[str], keys: Collection[str], rules: str
) -> AsSettings:
    """`argv` and `planned` begin with the program. `keys` are the fields that the model, or the variant, has."""
    ours = {chunk.key for chunk in chunks(table, planned[1:])}
    given = [chunk for chunk in chunks(table, argv[1:]) if not _is_plumbing(chunk)]
    new = [chunk for chunk in given if chunk.key not in ours]
    slots = _slots([*chunks(table, planned[1:]), *given])
    values: dict[str, Any] = {}
    rest: list[Chunk] = []
    for chunk in new:
        field = _field(chunk, keys)
        value = _value(chunk, field, slots) if field is not None and _stands_once(chunk, given) else None
        if field is None or value is None:
            rest.append(chunk)
        else:
            values[field.key] = value
    return AsSettings(values, text_of_chunks(rest, rules))


def _is_plumbing(chunk: Chunk) -> bool:
    return chunk.row is not None and chunk.row.knob in MODEL_KNOBS


def _field(chunk: Chunk, keys: Collection[str]) -> Field | None:
    field = READABLE.get(chunk.row.knob) if chunk.row is not None and len(chunk.values) == 1 else None
    return field if field is not None and field.key in keys else None


def _stands_once(chunk: Chunk, given: Sequence[Chunk]) -> bool:
    return (
        sum(other.row is not None and chunk.row is not None and other.row.knob == chunk.row.knob for other in given)
        == 1
    )


def _value(chunk: Chunk, field: Field, slots: int) -> Any:
    """The value of the field, None where it cannot say the same as the flag."""
    value = typed_value(field, chunk.values[0])
    if field.key == "ctx":
        value = value // slots if isinstance(value, int) and value > 0 and value % (slots * STEP_TOKENS) == 0 else None
    if value is None or not field.is_set(value) or field_problem(field, value):
        return None
    if isinstance(value, int | float) and float(chunk.values[0]) != value * (slots if field.key == "ctx" else 1):
        return None
    return value


def _slots(found: Sequence[Chunk]) -> int:
    """Requests side by side as the last word about them has it."""
    texts = [chunk.values[0] for chunk in found if chunk.row and chunk.row.knob == "parallel" and chunk.values]
    return max(1, int(texts[-1])) if texts and texts[-1].isascii() and texts[-1].isdigit() else 1


def whole_text(argv: Sequence[str], plumbing: Sequence[str], table: FlagTable, rules: str) -> str:
    """Everything behind the program, as the text of a command that is kept as it is.

    What we would put there ourselves, at that place and in that spelling, is left to us.
    """
    words = list(argv[1:])
    ahead = list(plumbing)
    rest = words[len(ahead) :] if words[: len(ahead)] == ahead else words
    found = chunks(table, rest)
    if not rest or (len(rest) < len(words) and any(_is_plumbing(chunk) for chunk in found)):
        found = chunks(table, words)
    return text_of_chunks(found, rules)


def quoted(words: Sequence[str], rules: str) -> str:
    """A command for people to read."""
    return " ".join(_quotes(words, rules))


def _quotes(words: Sequence[str], rules: str) -> Iterator[str]:
    for word in words:
        yield quote(word, rules)
